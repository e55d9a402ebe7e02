// Shows one item of a conversation: a text, an agent's work, the end of a run, a day, or a folded group of
// silent turns.

import { Component } from "preact";
import { useContext } from "preact/hooks";
import { isSilent } from "../../../src/core/rules/turn-rules.ts";
import type { Labels } from "../../../src/core/shapes/labels.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { agentIn } from "../agents/face.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { may } from "../gateway.ts";
import { StepChips } from "../labels/chips.tsx";
import { Button } from "../parts/button.tsx";
import { clockTime, counted, duration, tokens } from "../parts/format.ts";
import { Fold } from "../parts/lazy.tsx";
import { Lines, Name, SessionLink } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { State } from "../parts/state.tsx";
import { Cost, Time } from "../parts/time.tsx";
import { outcomeWord, receiptWord } from "../parts/words.ts";
import { edit } from "./drafts.ts";
import { fork, mayFork } from "./fork.ts";
import type { Item, TextItem, WorkItem } from "./items.ts";
import { OpenSession } from "./open-session.ts";
import { type Origin, originOf, sentNoteIn } from "./origin.ts";
import { Copy } from "./text/copy.tsx";
import { Picture } from "./text/picture.tsx";
import { Prose } from "./text/text.tsx";
import type { Message, Run } from "./thread.ts";
import { JobCard } from "./work/job-card.tsx";
import { jobResultOf } from "./work/job-result.ts";
import { SentFileView, sentFilesIn } from "./work/sent-file.tsx";
import { Steps } from "./work/steps.tsx";

export function Byline(props: {
  origin: Origin;
  atMs?: number;
  receipt?: Run["receipt"] | undefined;
  labels?: Labels | undefined;
}) {
  const { origin, atMs, receipt, labels } = props;
  const { manner, who, sessionKey, to, marks } = origin;
  const isSession = manner === "session";
  const chips = marks.map((mark) => (
    <Name as="span" key={mark} class={`chip ${isSession ? "tone-waiting" : ""}`} text={mark} />
  ));
  return (
    <div class="line byline">
      {isSession && chips}
      {isSession && <AgentMark id={agentIn(who)} />}
      {manner === "agent" && <AgentMark id={who} />}
      {!isSession && <Name as="strong" text={manner === "agent" ? agentName(who) : who} />}
      {sessionKey !== undefined && <SessionLink sessionKey={sessionKey} />}
      {to !== undefined && <span class="soft">to</span>}
      {to !== undefined && <SessionLink sessionKey={to} />}
      {!isSession && chips}
      {receipt !== undefined && <span class="chip">{receiptWord(receipt)}</span>}
      <StepChips labels={labels} />
      {atMs !== undefined && <Time class="number end soft small" at={atMs} />}
    </div>
  );
}

function Part({ message, block }: { message: Message; block: Message["content"][number] }) {
  if (block.type === "image")
    return <Picture messageId={message.id} index={message.content.indexOf(block as never)} block={block} />;
  if (block.type !== "text" || block.text.trim() === "") return null;
  if (message.role === "assistant" && isSilent(block.text)) return <p class="soft">no reply</p>;
  return <Prose text={block.text} />;
}

/** Returns the result of a sub-agent if the runtime wrote the message to report one. */
function jobOf(message: Message) {
  const provenance = message.role === "user" ? message.provenance : undefined;
  if (provenance?.kind !== "inter_session" || provenance.sourceTool !== "sessions_spawn") return undefined;
  const job = jobResultOf(textOf(message));
  return job && { job, sessionKey: provenance.sourceSessionKey };
}

/** The buttons show while the pointer or the focus is on the text, and always on touch screens. */
function Tools({ id, text, isOwn }: { id: string; text: string; isOwn: boolean }) {
  const { sessionKey, isEarlier } = useContext(OpenSession);
  return (
    <div class="entry-tools">
      {mayFork() && (
        <Button
          text="Fork"
          class="quiet small"
          title="Fork from here"
          onClick={() => void fork(sessionKey, id)}
        />
      )}
      {isOwn && !isEarlier && may("operator.write") && (
        <Button
          text="Edit"
          class="quiet small"
          aria-label="Edit message"
          onClick={() => edit(sessionKey, text)}
        />
      )}
      <Copy text={() => text} name="message" />
    </div>
  );
}

function TextEntry({ id, message, run, headed, last, labels, ...item }: TextItem) {
  const { sessionKey, agentId, target } = useContext(OpenSession);
  const marked = id === target;
  const note = sentNoteIn(sessionKey, message);
  const origin: Origin =
    note === undefined
      ? originOf(message, run, agentId)
      : { manner: "runtime", who: nameOf(sessionKey), to: note.to, marks: [] };
  const blocks = note === undefined ? item.blocks : [{ type: "text" as const, text: note.text }];
  const problem = message.role === "assistant" && last ? message.errorMessage : undefined;
  const job = jobOf(message);
  const text = blocks.flatMap((block) => (block.type === "text" ? block.text : [])).join("\n");
  return (
    <li
      class={`entry entry-${origin.manner} ${headed ? "" : "entry-more"} ${marked ? "entry-marked" : ""}`}
      data-id={id}
      aria-current={marked ? "true" : undefined}
    >
      {job !== undefined ? (
        <JobCard {...job} atMs={message.timestamp} labels={labels} />
      ) : (
        <>
          {headed && (
            <Byline
              origin={origin}
              atMs={message.timestamp}
              receipt={message.role === "user" ? run?.receipt : undefined}
              labels={labels}
            />
          )}
          {blocks.map((block, at) => (
            <Part key={at} block={block} message={message} />
          ))}
        </>
      )}
      {problem !== undefined && <Lines class="entry-error" text={problem} />}
      {text.trim() !== "" && <Tools id={message.id} text={text} isOwn={origin.manner === "own"} />}
    </li>
  );
}

function RunEnd({ id, run, silent }: { id: string; run: Run; silent: boolean }) {
  const { state, startedAt, endedAt, usage, model, code, error } = run;
  const { totalTokens = 0, cost } = usage ?? {};
  return (
    <li class="line run-end small soft" data-id={id}>
      <State state={state} text={silent && state === "ok" ? "no reply" : outcomeWord(state)} />
      {startedAt !== undefined && endedAt !== undefined && <span>{duration(endedAt - startedAt)}</span>}
      {totalTokens > 0 && <span>{tokens(totalTokens)} tokens</span>}
      {cost !== undefined && cost.total > 0 && <Cost usd={cost.total} />}
      {model !== undefined && <Name text={model} />}
      {error !== undefined && (
        <bdi class={state === "aborted" ? "soft" : "run-error"} title={code}>
          {safeText(error)}
        </bdi>
      )}
    </li>
  );
}

/** Shows turns that brought nothing new and got no reply, as one expandable line. */
function Quiet({ id, turns, items }: Extract<Item, { kind: "quiet" }>) {
  const { agentId, target } = useContext(OpenSession);
  const messages = items.flatMap((one) => (one.kind === "message" ? one.message : []));
  const origins = messages.map((message) => originOf(message, undefined, agentId));
  const names = new Set(
    origins.map(({ who, sessionKey, marks }) =>
      sessionKey === undefined ? [who, ...marks].join(" ") : nameOf(sessionKey),
    ),
  );
  const times = new Set([messages[0], messages.at(-1)].map((one) => clockTime(one?.timestamp ?? 0)));
  const hasTarget = items.some(
    (one) =>
      one.id === target || (one.kind === "work" && one.steps.some((step) => step.messageId === target)),
  );
  return (
    <li class="quiet-turns" data-id={id}>
      <Fold
        isOpen={hasTarget}
        lineClass="line small soft"
        line={
          <>
            <span>{counted(turns, "silent turn")}</span>
            <Name text={[...names].join(", ")} />
            <span class="number">{[...times].join(" – ")}</span>
          </>
        }
        inside={() => (
          <ol class="entries">
            {items.map((one) => (
              <Entry key={one.id} item={one} />
            ))}
          </ol>
        )}
      />
    </li>
  );
}

function WorkEntry({ message, run, headed, steps }: WorkItem) {
  const { agentId } = useContext(OpenSession);
  return (
    <li class={`entry entry-agent ${headed ? "" : "entry-more"}`}>
      {headed && <Byline origin={originOf(message, run, agentId)} atMs={message.timestamp} />}
      <Steps steps={steps} running={run !== undefined && run.endedAt === undefined && run.state} />
      {sentFilesIn(steps).map((file) => (
        <SentFileView key={file.fileId} file={file} />
      ))}
    </li>
  );
}

export class Entry extends Component<{ readonly item: Item }> {
  override shouldComponentUpdate({ item }: { readonly item: Item }): boolean {
    return item !== this.props.item;
  }

  override render({ item }: { readonly item: Item }) {
    switch (item.kind) {
      case "day":
      case "compaction":
        return (
          <li class="row day small soft" data-id={item.id} title={clockTime(item.atMs, true)}>
            {item.kind === "day"
              ? new Date(item.atMs).toLocaleDateString(undefined, { dateStyle: "full" })
              : "The model reads a summary of what is above"}
          </li>
        );
      case "end":
        return <RunEnd {...item} />;
      case "quiet":
        return <Quiet {...item} />;
      case "work":
        return <WorkEntry {...item} />;
      case "message":
        return <TextEntry {...item} />;
    }
  }
}
