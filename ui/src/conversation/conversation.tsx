// Owns the conversation of one session.

import { useEffect } from "preact/hooks";
import { safeText } from "../../../src/core/safe-text.ts";
import { ask, on } from "../gateway.ts";
import { Failed } from "../parts/failure.tsx";
import { Name, shortKey } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";

const PAGE_MESSAGES = 100;

export function Conversation({ sessionKey }: { sessionKey: string; messageId?: string | undefined }) {
  const history = useReading(sessionKey, () => ask("chat.history", { sessionKey, limit: PAGE_MESSAGES }));
  useEffect(
    () => on("chat", (chat) => chat.sessionKey === sessionKey && chat.state !== "delta" && history.again()),
    [sessionKey, history.again],
  );
  if (history.value === undefined)
    return history.problem === undefined ? (
      <p class="loading">Loading…</p>
    ) : (
      <Failed problem={history.problem} onRetry={history.again} />
    );
  return (
    <>
      <h2>
        <Name text={shortKey(sessionKey)} title={sessionKey} />
      </h2>
      <ol class="messages">
        {history.value.messages.map((message) => (
          <li key={message.id}>
            <strong>{message.role}</strong>{" "}
            {message.content.map((block) =>
              block.type === "text" ? safeText(block.text) : `[${block.type}]`,
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
