// Shows one item of a conversation: a message, the end of a run, a day.

import { isSilent } from "../../../src/core/rules/turn-rules.ts";
import { safeLine, safeText } from "../../../src/core/text/safe-text.ts";
import { clockTime, duration, money, size, tokens } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { RECEIPT_WORDS } from "../parts/receipt-words.ts";
import { State } from "../parts/state.tsx";
import { Time } from "../parts/time.tsx";
import type { Item, ToolResult } from "./items.ts";
import { type Origin, originOf } from "./origin.ts";
import { Prose } from "./text.tsx";
import type { Message, Run } from "./thread.ts";
import { ToolCard } from "./tool-card.tsx";

const STATE_WORDS: Readonly<Record<string, string>> = { ok: "done", error: "failed", timeout: "timed out" };

function Author({ origin }: { origin: Origin }) {
  const { manner, who, sessionKey, marks } = origin;
  const link = sessionKey !== undefined && <SessionLink sessionKey={sessionKey} />;
  const chips = marks.map((mark) => (
    <span key={mark} class={`chip ${manner === "session" ? "tone-waiting" : ""}`}>
      <Name text={mark} />
    </span>
  ));
  if (manner === "session")
    return (
      <>
        {chips}
        {link}
      </>
    );
  return (
    <>
      <strong>
        <Name text={who} />
      </strong>
      {link}
      {chips}
    </>
  );
}

/** Author, marks and time of a message. */
export function Byline({ origin, atMs }: { origin: Origin; atMs?: number }) {
  return (
    <div class="byline">
      <Author origin={origin} />
      {atMs !== undefined && (
        <Time class="soft" at={atMs}>
          {clockTime(atMs)}
        </Time>
      )}
    </div>
  );
}

type Block = Message["content"][number];
interface Parts {
  readonly message: Message;
  readonly run: Run | undefined;
  readonly results: readonly ToolResult[];
  readonly agentId: string;
}

function Part({ block, message, run, results, agentId }: Parts & { block: Block }) {
  switch (block.type) {
    case "text":
      if (block.text.trim() === "") return null;
      if (message.role === "assistant" && isSilent(block.text))
        return <p class="soft">{`no reply (${block.text.trim()})`}</p>;
      return <Prose text={block.text} />;
    case "thinking":
      if (block.thinking.trim() === "") return null;
      return (
        <details class="thinking">
          <summary class="soft">Thinking</summary>
          <div class="plain-text" dir="auto">
            {safeText(block.thinking)}
          </div>
        </details>
      );
    case "image":
      return (
        <span class="chip">
          {safeLine(block.mimeType)}
          {block.bytes ? `, ${size(block.bytes)}` : ""}
        </span>
      );
    case "toolCall":
      return (
        <ToolCard
          call={block}
          result={results.find(({ toolCallId }) => toolCallId === block.id)}
          calledAt={message.timestamp}
          running={run !== undefined && run.endedAt === undefined}
          agentId={agentId}
        />
      );
  }
}

function MessageEntry(props: Parts & { marked: boolean }) {
  const { message, run, agentId, marked } = props;
  const origin = originOf(message, run, agentId);
  return (
    <li
      class={`entry entry-${origin.manner} ${marked ? "entry-marked" : ""}`}
      data-id={message.id}
      aria-current={marked ? "true" : undefined}
    >
      <Byline origin={origin} atMs={message.timestamp} />
      {message.role === "user" && run?.receipt !== undefined && (
        <span class="chip">{RECEIPT_WORDS[run.receipt]}</span>
      )}
      {message.role === "toolResult" ? (
        <ToolCard
          call={undefined}
          result={message}
          calledAt={message.timestamp}
          running={false}
          agentId={agentId}
        />
      ) : (
        message.content.map((block, at) => <Part key={at} block={block} {...props} />)
      )}
      {message.role === "assistant" && message.errorMessage !== undefined && (
        <p class="entry-error">
          <bdi>{safeText(message.errorMessage)}</bdi>
        </p>
      )}
    </li>
  );
}

/** The outcome of a run, with time, tokens and cost. */
function RunEnd({ id, run }: { id: string; run: Run }) {
  const { state, startedAt, endedAt, usage, model, code, error } = run;
  const facts = [
    ...(startedAt === undefined || endedAt === undefined ? [] : [duration(endedAt - startedAt)]),
    ...(usage === undefined || usage.totalTokens === 0 ? [] : [`${tokens(usage.totalTokens)} tokens`]),
    ...(usage === undefined || usage.cost.total === 0 ? [] : [money(usage.cost.total)]),
  ];
  return (
    <li class="run-end" data-id={id}>
      <State state={state} text={STATE_WORDS[state] ?? state} />
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {model !== undefined && <Name text={model} />}
      {error !== undefined && (
        <bdi class="run-error">
          {safeText(error)}
          {code !== undefined && ` (${code})`}
        </bdi>
      )}
    </li>
  );
}

/** `marked`: a link led the reader to this item. */
export function Entry({ item, agentId, marked }: { item: Item; agentId: string; marked: boolean }) {
  switch (item.kind) {
    case "day":
      return (
        <li class="day" data-id={item.id}>
          {new Date(item.atMs).toLocaleDateString(undefined, { dateStyle: "full" })}
        </li>
      );
    case "compaction":
      return (
        <li class="day" data-id={item.id} title={clockTime(item.atMs, true)}>
          The model reads a summary of what is above
        </li>
      );
    case "end":
      return <RunEnd id={item.id} run={item.run} />;
    case "message": {
      const { message, run, results } = item;
      return <MessageEntry message={message} run={run} results={results} agentId={agentId} marked={marked} />;
    }
  }
}
