// Shows active and queued runs below the stored messages: streamed text and thinking, and queued messages.

import { useComputed } from "@preact/signals";
import { useContext } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { ask, has, may } from "../gateway.ts";
import { Held } from "../inbox/held.tsx";
import { awaitedPermission, permissionsOf } from "../inbox/model.ts";
import { Asked } from "../inbox/permission.tsx";
import { lazy } from "../parts/lazy.tsx";
import { State } from "../parts/state.tsx";
import { causeOf, consequenceOf, FIX_WORDS } from "../setup/failed-run.ts";
import { ActButton } from "./act-button.tsx";
import { Byline } from "./entry.tsx";
import type { Live } from "./live.ts";
import { OpenSession } from "./open-session.ts";
import { originOf } from "./origin.ts";
import type { SessionReader } from "./reader.ts";
import { GrowingProse } from "./text/text.tsx";
import { currentRun, type Message, type Now, type Run, type Thread } from "./thread.ts";
import { LiveThought } from "./work/call-row.tsx";

const Fix = lazy(async () => (await import("../setup/fix.tsx")).Fix);

/** `headed`: this item must show the run's header, because no item above shows it. */
function Speaking({ lives, headed }: { lives: readonly Live[]; headed: boolean }) {
  const { agentId } = useContext(OpenSession);
  const thought = lives.find(({ kind }) => kind === "thinking");
  const live = lives.find(({ kind }) => kind === "text");
  return (
    <li class={`entry entry-agent entry-live ${headed ? "" : "entry-more"}`}>
      {headed && <Byline origin={{ manner: "agent", who: agentId, marks: [] }} />}
      {thought !== undefined && <LiveThought live={thought} done={live !== undefined} />}
      {live !== undefined && <GrowingProse text={live.text} />}
    </li>
  );
}

/** Shows that a run is working. Used if the run has no streamed text. */
function Working({ run: { state, hold }, retry }: { run: Run; retry: string | undefined }) {
  const words = retry === undefined ? "working" : safeText(retry);
  return (
    <li class="entry-working bar">
      {hold === "held" ? (
        <State state="held" text="held before the next tool call" />
      ) : (
        <State state={state} text={state === "waiting" ? "waiting for another session" : words} />
      )}
      {hold === "pending" && <State state="held" text="stops before the next tool call" />}
    </li>
  );
}

function Queued({ one, thread }: { one: Now["queue"][number]; thread: Thread }) {
  const { runId, text, provenance, senderName, steer } = one;
  const { sessionKey } = thread;
  const author = optional({ provenance, senderName });
  const message: Message = { id: runId, role: "user", content: [], timestamp: 0, ...author };
  return (
    <li class="stack entry entry-queued">
      <Byline origin={originOf(message, thread.runs[runId], "")} />
      <div class="plain-text" dir="auto">
        {text === undefined ? "(a long message)" : safeText(text)}
      </div>
      <div class="bar">
        <State state="queued" text={steer === true ? "read before the next step" : "queued"} />
        {may("operator.write") && (
          <Held of={runId}>
            {(isHeld) => (
              <ActButton
                text="Cancel"
                class="quiet"
                disabled={isHeld}
                act={() => ask("chat.abort", { sessionKey, runId })}
              />
            )}
          </Held>
        )}
      </div>
    </li>
  );
}

/** Returns the text or the thinking of a stored message. */
function storedText(message: Message, kind: Live["kind"]): string {
  if (kind === "text") return textOf(message);
  return message.content.flatMap((block) => (block.type === "thinking" ? block.thinking : [])).join("\n");
}

/**
 * Returns what the runs are streaming, by run, apart from what is already in the transcript, although the
 * last events about it have not arrived yet. The computed value is a string, because equal strings cause no
 * redraw: after most deltas it is the same.
 */
function useLives({ thread, live: { list } }: SessionReader) {
  const unwritten = useComputed(() => {
    const messages = thread.value?.messages ?? [];
    const isWritten = ({ runId, kind, text }: Live): boolean => {
      const last = messages.findLast((one) => one.runId === runId && one.role === "assistant");
      return last !== undefined && storedText(last, kind).trim().startsWith(text.value.trim());
    };
    return list.value.flatMap((live) => (isWritten(live) ? [] : live.id)).join(" ");
  }).value.split(" ");
  const shown = list.value.filter(({ id }) => unwritten.includes(id));
  return Map.groupBy(shown, ({ runId }) => runId);
}

function Failure({ row, thread: { runs, messages } }: { row: Now["session"]; thread: Thread }) {
  const { key: sessionKey, agentId, failure, spawnedBy } = row;
  if (failure === undefined) return null;
  const { runId, code, retriable } = failure;
  const mayRetry = retriable && may("operator.write") && has("runs.retry");
  const { usage: { totalTokens = 0 } = {}, model } = runs[runId] ?? {};
  const hasWritten = messages.some(
    (one) => one.runId === runId && one.role === "assistant" && storedText(one, "text") !== "",
  );
  return (
    <li class="stack entry-failure card">
      <strong>{causeOf(code)}</strong>
      <p>{consequenceOf(totalTokens > 0 || hasWritten, mayRetry)}</p>
      {!retriable && spawnedBy !== undefined && (
        <p>The session that asked was told: to repeat the job, ask there.</p>
      )}
      {retriable && (
        <div class="bar">
          {code in FIX_WORDS && <Fix {...{ code, agentId, sessionKey, model }} />}
          {mayRetry && (
            <ActButton
              text="Retry"
              of={runId}
              data-act="Retry the run"
              act={() => ask("runs.retry", { runId })}
            />
          )}
        </div>
      )}
    </li>
  );
}

export function Tail({ reader }: { reader: SessionReader }) {
  const thread = reader.thread.value;
  const active = useLives(reader);
  if (thread === undefined) return null;
  const { now, sessionKey } = thread;
  const last = thread.messages.at(-1);
  const [runId, run] = currentRun(thread) ?? [];
  const requests = permissionsOf(sessionKey);
  const { value: retry } = reader.retry;
  return (
    <ol class="entries entries-tail" aria-label="In progress">
      {[...active].map(([id, lives]) => (
        <Speaking key={id} lives={lives} headed={last?.runId !== id || last.role === "user"} />
      ))}
      {requests.length > 0 && (
        <li class="entry-working">
          <State state="waiting" text={awaitedPermission(requests)} tone="warn" />
          <Asked items={requests} />
        </li>
      )}
      {requests.length === 0 && run !== undefined && (active.size === 0 || run.hold !== undefined) && (
        <Working run={run} retry={retry?.runId === runId ? retry?.words : undefined} />
      )}
      {now !== undefined && <Failure row={now.session} thread={thread} />}
      {now?.queue.map((one) => (
        <Queued key={one.runId} one={one} thread={thread} />
      ))}
    </ol>
  );
}
