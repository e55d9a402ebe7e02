// Shows details of an item below its row: a permission request with its buttons, or the reason, the last
// message of the session, and an answer field.

import { useEffect, useRef, useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { plainLine } from "../../../src/core/text/plain-line.ts";
import { begunRequest, draftOf, keepDraft, requestOf } from "../conversation/drafts.ts";
import { Prose } from "../conversation/text/text.tsx";
import { ask } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { Button } from "../parts/button.tsx";
import { Awaited } from "../parts/failure.tsx";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { causeOf, consequenceOf, describeFailure } from "../setup/failed-run.ts";
import { Change } from "./change.tsx";
import { readAgain } from "./model.ts";
import { moved } from "./moved.ts";
import { Asked } from "./permission.tsx";
import { SnoozeChoice } from "./triage.tsx";

/** Number of messages that are read from the end of a transcript. They usually contain its last text. */
const LAST_MESSAGES = 8;

/** Shows a field for an answer. It has the same unsent text as the composer of the session. */
function Answer({ sessionKey, answers }: { sessionKey: string; answers: number }) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (answers > 0) field.current?.focus();
  }, [answers]);
  const text = draftOf(sessionKey);
  const [busy, setBusy] = useState(false);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy || text.trim() === "") return;
    setBusy(true);
    try {
      await ask("chat.send", { sessionKey, message: text, idempotencyKey: requestOf(sessionKey) });
      keepDraft(sessionKey, "");
      say("Sent.");
    } catch (problem) {
      complain(problem);
    }
    setBusy(false);
    await readAgain();
  };
  return (
    <form class="row" onSubmit={send}>
      <textarea
        ref={field}
        aria-label="Your answer"
        placeholder="Answer…"
        class="fill"
        rows={2}
        value={text}
        readOnly={busy}
        onInput={(event) => keepDraft(sessionKey, event.currentTarget.value)}
        onKeyDown={(event) => {
          if (pressed("composer", event) !== "send") return;
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }}
      />
      <Button text="Send" type="submit" class="primary" disabled={busy || text.trim() === ""} />
    </form>
  );
}

interface PeekProps {
  readonly item: AttentionItem;
  /** Incremented when the reader wants to answer. */
  readonly answers: number;
}

function Last({ item, answers }: PeekProps) {
  const { summary, sessionKey, code, actions, waitingFor = [] } = item;
  const behind = useReading(`${item.id} ${item.since}`, async () => {
    if (sessionKey === undefined) return "";
    const page = { sessionKey, limit: LAST_MESSAGES, includeRuns: true };
    const { messages, runs = {} } = await ask("chat.history", page);
    // The answer has arrived, though the page was loaded again before it heard so.
    if (begunRequest(sessionKey) in runs) keepDraft(sessionKey, "");
    const texts = messages.map((one) => (one.role === "toolResult" ? "" : textOf(one)));
    return texts.findLast((text) => text.trim() !== "") ?? "";
  });
  const { value: text = "" } = behind;
  const isFailed = code !== undefined && actions.includes("retry");
  const cause = isFailed ? causeOf(code) : describeFailure(code, "");
  // The summary is one line without marks, and may be cut.
  const isTold = plainLine(text).includes(summary.replace(/…$/, ""));
  return (
    <>
      {!isTold && <Name as="p" text={summary} />}
      {cause !== "" && (
        <p>
          {cause} {isFailed && consequenceOf(undefined, true)}
        </p>
      )}
      {waitingFor.length > 0 && (
        <p class="line soft">
          Waits for{" "}
          {waitingFor.map((key) => (
            <span key={key} class="chip">
              <SessionLink sessionKey={key} />
            </span>
          ))}
        </p>
      )}
      <Awaited {...behind} words="Loading the last message…" />
      {text !== "" && (
        <figure class="stack">
          <figcaption class="soft">Last message</figcaption>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region needs the keyboard */}
          <section class="sunken inbox-text" aria-label="Last message" tabIndex={0}>
            <Prose text={text} />
          </section>
        </figure>
      )}
      {actions.includes("dismiss") && (
        <p>
          <SnoozeChoice items={[item]} />
        </p>
      )}
      {sessionKey !== undefined && actions.includes("answer") && (
        <Answer sessionKey={sessionKey} answers={answers} />
      )}
    </>
  );
}

export function Peek({ id, ...props }: PeekProps & { id: string }) {
  const { item } = props;
  return (
    <div class="stack inbox-peek" id={id}>
      {item.kind === "instructions" && <Change item={item} />}
      {item.kind === "permission" && <Asked items={[item]} held={moved.value.has(item.id)} />}
      {item.kind !== "instructions" && item.kind !== "permission" && <Last {...props} />}
    </div>
  );
}
