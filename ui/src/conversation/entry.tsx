// Shows one item of a conversation: a text, an agent's work, the end of a run, a day, or a folded group of
// silent turns.

import { Component } from "preact";
import { useContext, useState } from "preact/hooks";
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
import { Lines, Name, SessionLink } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { State } from "../parts/state.tsx";
import { Cost, Time } from "../parts/time.tsx";
import { outcomeWord, receiptWord } from "../parts/words.ts";
import { edit } from "./drafts.ts";
import { fork, mayFork } from "./fork.ts";
import { holds, type Item, type TextItem } from "./items.ts";
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

function Author({ origin }: { origin: Origin }) {
  const { manner, who, sessionKey, to, marks } = origin;
  const link = sessionKey !== undefined && <SessionLink sessionKey={sessionKey} />;
  const chips = marks.map((mark) => (
    <Name as="span" key={mark} class={`chip ${manner === "session" ? "tone-waiting" : ""}`} text={mark} />
  ));
  if (manner === "session")
    return (
      <>
        {chips}
        <AgentMark id={agentIn(sessionKey ?? "")} />
        {link}
      </>
    );
  return (
    <>
      {manner === "agent" && <AgentMark id={who} />}
      <Name as="strong" text={manner === "agent" ? agentName(who) : who} />
      {link}
      {to !== undefined && (
        <>
          <span class="soft">to</span>
          <SessionLink sessionKey={to} />
        </>
      )}
      {chips}
    </>
  );
}

export function Byline(props: {
  origin: Origin;
  atMs?: number;
  receipt?: Run["receipt"] | undefined;
  labels?: Labels | undefined;
}) {
  const { origin, atMs, receipt, labels } = props;
  return (
    <div class="line byline">
      <Author origin={origin} />
      {receipt !== undefined && <span class="chip">{receiptWord(receipt)}</span>}
      <StepChips labels={labels} />
      {atMs !== undefined && <Time class="soft small" at={atMs} />}
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
  return job === undefined ? undefined : { job, sessionKey: provenance.sourceSessionKey };
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

function TextEntry({ item }: { item: TextItem }) {
  const { id, message, run, headed, last, labels } = item;
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
  const text = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  return (
    <li
      class={`entry entry-${origin.manner} ${headed ? "" : "entry-more"} ${marked ? "entry-marked" : ""}`}
      data-id={id}
      aria-current={marked ? "true" : undefined}
    >
      {headed && job === undefined && (
        <Byline
          origin={origin}
          atMs={message.timestamp}
          receipt={message.role === "user" ? run?.receipt : undefined}
          labels={labels}
        />
      )}
      {job !== undefined && <JobCard {...job} atMs={message.timestamp} labels={labels} />}
      {(job === undefined ? blocks : []).map((block, at) => (
        <Part key={at} block={block} message={message} />
      ))}
      {problem !== undefined && <Lines class="entry-error" text={problem} />}
      {text.trim() !== "" && <Tools id={message.id} text={text} isOwn={origin.manner === "own"} />}
    </li>
  );
}

function RunEnd({ id, run, silent }: { id: string; run: Run; silent: boolean }) {
  const { state, startedAt, endedAt, usage, model, code, error } = run;
  const facts = [
    ...(startedAt === undefined || endedAt === undefined ? [] : [duration(endedAt - startedAt)]),
    ...(usage === undefined || usage.totalTokens === 0 ? [] : [`${tokens(usage.totalTokens)} tokens`]),
  ];
  const cost = usage?.cost.total ?? 0;
  return (
    <li class="line run-end small" data-id={id}>
      <State state={state} text={silent && state === "ok" ? "no reply" : outcomeWord(state)} />
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {cost > 0 && <Cost usd={cost} />}
      {model !== undefined && <Name text={model} />}
      {error !== undefined && (
        <bdi class={state === "aborted" ? "soft" : "run-error"} title={code}>
          {safeText(error)}
        </bdi>
      )}
    </li>
  );
}

/** Shows turns that nobody requested and that got no reply, as one expandable line. */
function Quiet({ item }: { item: Extract<Item, { kind: "quiet" }> }) {
  const { agentId, target } = useContext(OpenSession);
  const [chosen, setChosen] = useState<boolean>();
  const open = chosen ?? holds(item, target);
  const messages = item.items.flatMap((one) => (one.kind === "message" ? [one.message] : []));
  const who = new Set(
    messages.map((message) => {
      const { who, marks } = originOf(message, undefined, agentId);
      return [who, ...marks].join(" ");
    }),
  );
  const [first, last] = [messages[0], messages.at(-1)].map((one) => clockTime(one?.timestamp ?? 0));
  return (
    <li class="quiet-turns small" data-id={item.id}>
      <details open={open} onToggle={(event) => setChosen(event.currentTarget.open)}>
        <summary class="line soft">
          <span>{counted(item.turns, "silent turn")}</span>
          <Name text={[...who].join(", ")} />
          <span class="number">{first === last ? first : `${first} – ${last}`}</span>
        </summary>
        {open && (
          <ol class="entries">
            {item.items.map((one) => (
              <Entry key={one.id} item={one} />
            ))}
          </ol>
        )}
      </details>
    </li>
  );
}

function WorkEntry({ item }: { item: Extract<Item, { kind: "work" }> }) {
  const { message, run, headed, steps } = item;
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

interface EntryProps {
  readonly item: Item;
}

export class Entry extends Component<EntryProps> {
  override shouldComponentUpdate({ item }: EntryProps): boolean {
    return item !== this.props.item;
  }

  override render({ item }: EntryProps) {
    switch (item.kind) {
      case "day":
        return (
          <li class="row day" data-id={item.id}>
            {new Date(item.atMs).toLocaleDateString(undefined, { dateStyle: "full" })}
          </li>
        );
      case "compaction":
        return (
          <li class="row day" data-id={item.id} title={clockTime(item.atMs, true)}>
            The model reads a summary of what is above
          </li>
        );
      case "end":
        return <RunEnd {...item} />;
      case "quiet":
        return <Quiet item={item} />;
      case "work":
        return <WorkEntry item={item} />;
      case "message":
        return <TextEntry item={item} />;
    }
  }
}
