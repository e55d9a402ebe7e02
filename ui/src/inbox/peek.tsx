// Shows details of an item below its row: the reason, the last message of its session, and an answer field.

import { useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import type { PermissionQuestion } from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { draftOf, keepDraft } from "../conversation/drafts.ts";
import { ask } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { Awaited } from "../parts/failure.tsx";
import { duration } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { AllowLonger } from "./allow-longer.tsx";
import { readAgain } from "./model.ts";

const TEXT_MAX_CHARS = 2_000;
/** Number of messages that are read from the end of a transcript. They usually contain its last text. */
const LAST_MESSAGES = 8;

/**
 * Returns the details of an item: for a permission request the arguments of the call, otherwise the last
 * message.
 */
async function readBehind({ kind, ref, sessionKey }: AttentionItem): Promise<Behind> {
  if (kind === "permission") {
    const { permissions } = await ask("permissions.list", {});
    const question = permissions.find(({ id }) => id === ref);
    return { text: question?.detail ?? "", question };
  }
  if (sessionKey === undefined) return { text: "" };
  const { messages } = await ask("chat.history", { sessionKey, limit: LAST_MESSAGES });
  const texts = messages.map((one) => (one.role === "toolResult" ? "" : textOf(one)));
  return { text: texts.findLast((text) => text.trim() !== "")?.slice(0, TEXT_MAX_CHARS) ?? "" };
}

interface Behind {
  readonly text: string;
  readonly question?: PermissionQuestion | undefined;
}

/** Shows a field for an answer. It has the same unsent text as the composer of the session. */
function Answer({ sessionKey }: { sessionKey: string }) {
  const [text, setText] = useState(() => draftOf(sessionKey));
  const [busy, setBusy] = useState(false);
  const write = (value: string): void => {
    setText(value);
    keepDraft(sessionKey, value);
  };
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy || text.trim() === "") return;
    setBusy(true);
    try {
      await ask("chat.send", { sessionKey, message: text });
      write("");
      say("Sent.");
    } catch (problem) {
      complain(problem);
    }
    setBusy(false);
    await readAgain();
  };
  return (
    <form class="inbox-answer" onSubmit={send}>
      <textarea
        aria-label="Your answer"
        placeholder="Answer…"
        rows={2}
        value={text}
        readOnly={busy}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (pressed("composer", event) !== "send") return;
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }}
      />
      <button type="submit" class="primary" disabled={busy || text.trim() === ""}>
        Send
      </button>
    </form>
  );
}

export function Peek({ item, id }: { item: AttentionItem; id: string }) {
  const { summary, sessionKey, code, expiresAt, actions, waitingFor = [], kind } = item;
  const behind = useReading(`${item.id} ${item.since}`, () => readBehind(item));
  const { text = "", question } = behind.value ?? {};
  // The summary is one line.
  const isTold = text.replace(/\s+/g, " ").includes(summary);
  const left = expiresAt === undefined ? undefined : duration(Math.max(0, expiresAt - tick.value));
  return (
    <div class="inbox-peek" id={id}>
      {!(isTold && code === undefined && left === undefined) && (
        <p>
          {!isTold && <Name text={summary} />}
          {code !== undefined && <span class="chip">{code}</span>}
          {left !== undefined && <span class="chip tone-warn">denied in {left}</span>}
        </p>
      )}
      {waitingFor.length > 0 && (
        <p class="soft">
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
        <figure>
          <figcaption class="soft">{kind === "permission" ? "Arguments" : "Last message"}</figcaption>
          <pre class="inbox-text">
            <bdi>{safeText(text)}</bdi>
          </pre>
        </figure>
      )}
      {question !== undefined && actions.includes("approve") && (
        <div class="inbox-actions">
          <AllowLonger question={question} onDone={readAgain} />
        </div>
      )}
      {sessionKey !== undefined && actions.includes("answer") && <Answer sessionKey={sessionKey} />}
    </div>
  );
}
