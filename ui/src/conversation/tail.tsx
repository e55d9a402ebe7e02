// Shows active and queued runs below the stored messages: streamed text, and queued messages.

import { useComputed } from "@preact/signals";
import { optional } from "../../../src/core/optional.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { ask, may } from "../gateway.ts";
import { complain } from "../parts/notices.tsx";
import { State } from "../parts/state.tsx";
import { Byline } from "./entry.tsx";
import type { Live } from "./live.ts";
import { originOf } from "./origin.ts";
import type { SessionReader } from "./reader.ts";
import { GrowingProse } from "./text/text.tsx";
import { currentRun, type Now, type Thread } from "./thread.ts";

/** `headed`: true if the run's header is not already shown above. */
function Speaking({ live, agentId, headed }: { live: Live; agentId: string; headed: boolean }) {
  return (
    <li class={`entry entry-agent entry-live ${headed ? "" : "entry-more"}`}>
      {headed && <Byline origin={{ manner: "agent", who: agentId, marks: [] }} />}
      <GrowingProse text={live.text} />
    </li>
  );
}

/** A running run without streamed text. */
function Working({ state, retry }: { state: string; retry: string | undefined }) {
  const words = retry === undefined ? "working" : safeText(retry);
  return (
    <li class="entry-working">
      <State state={state} text={state === "waiting" ? "waiting for another session" : words} />
    </li>
  );
}

function Queued({ one, thread }: { one: Now["queue"][number]; thread: Thread }) {
  const { runId, text, provenance, senderName } = one;
  const message = {
    id: runId,
    role: "user",
    content: [],
    timestamp: 0,
    ...optional({ provenance, senderName }),
  } as const;
  const cancel = (): void => {
    ask("chat.abort", { sessionKey: thread.sessionKey, runId }).catch(complain);
  };
  return (
    <li class="entry entry-queued">
      <Byline origin={originOf(message, thread.runs[runId], "")} />
      <div class="plain-text" dir="auto">
        {text === undefined ? "(a long message)" : safeText(text)}
      </div>
      <div class="bar">
        <State state="queued" />
        {may("operator.write") && (
          <button type="button" class="quiet" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
    </li>
  );
}

/**
 * Returns true if the transcript already contains this text, although the last events about it have not
 * arrived yet.
 */
function isWritten(thread: Thread, { runId, text }: Live): boolean {
  const last = thread.messages.findLast((one) => one.runId === runId && one.role === "assistant");
  return last !== undefined && textOf(last).trim().startsWith(text.value.trim());
}

export function Tail({ reader, agentId }: { reader: SessionReader; agentId: string }) {
  const thread = reader.thread.value;
  // A string, because equal strings cause no redraw: after most deltas the value is the same.
  const written = useComputed(() => {
    const { value } = reader.thread;
    const lives = reader.live.list.value;
    return value === undefined
      ? ""
      : lives.flatMap((live) => (isWritten(value, live) ? live.runId : [])).join(" ");
  }).value.split(" ");
  if (thread === undefined) return null;
  const last = thread.messages.at(-1);
  const running = currentRun(thread);
  const queue = thread.now?.queue ?? [];
  const heard = reader.live.list.value.filter(({ runId }) => !written.includes(runId));
  return (
    <ol class="entries entries-tail" aria-label="In progress">
      {heard.map((live) => (
        <Speaking
          key={live.runId}
          live={live}
          agentId={agentId}
          headed={last?.runId !== live.runId || last.role === "user"}
        />
      ))}
      {heard.length === 0 && running !== undefined && (
        <Working
          state={running[1].state}
          retry={reader.retry.value?.runId === running[0] ? reader.retry.value?.words : undefined}
        />
      )}
      {queue.map((one) => (
        <Queued key={one.runId} one={one} thread={thread} />
      ))}
    </ol>
  );
}
