// Searches for messages by their words in all sessions. A match is a link to the message.

import { Button } from "../parts/button.tsx";
import "./search.css";
import { useMemo, useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/client/web.ts";
import { optional } from "../../../src/core/optional.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { settled } from "../clock.ts";
import { ask } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { messageWords } from "../overlay.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { Name, SessionLink } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { Time } from "../parts/time.tsx";
import { hrefOf } from "../route.ts";
import { AUTHORS } from "./origin.ts";

/** Time after the last key press at which the search starts. */
const TYPED_MS = 200;
const QUERY_MAX_CHARS = 500;
const HITS = 50;

type Author = PayloadOf<"sessions.search">["hits"][number]["author"];

/** Shows the author of a message with the same words as the conversation view. */
function ByAuthor({ author: { kind, name, sessionKey } }: { author: Author }) {
  const isSession = kind === "session" && sessionKey !== undefined;
  const who = kind === "agent" || kind === "person" ? (name ?? AUTHORS[kind]) : AUTHORS[kind];
  return (
    <span class="soft">
      {isSession ? "sent by " : <Name text={who} />}
      {isSession && <SessionLink sessionKey={sessionKey} />}
    </span>
  );
}

function Excerpt({ text, query }: { text: string; query: string }) {
  const words = query.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const parts = safeText(text).split(new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])(${words.join("|")})`, "iu"));
  return <bdi>{parts.map((part, at) => (at % 2 === 0 ? part : <mark key={at}>{part}</mark>))}</bdi>;
}

function Hits({ query, cursor, onClose }: { query: string; cursor?: string; onClose: () => void }) {
  const [more, setMore] = useState(false);
  const { value, problem, again } = useReading(query, () =>
    ask("sessions.search", { query, limit: HITS, ...optional({ cursor }) }),
  );
  if (value === undefined) return <Awaited problem={problem} again={again} words="Searching…" />;
  const { hits, nextCursor } = value;
  return (
    <>
      {hits.length > 0 ? (
        <ul class="rows search-hits">
          {hits.map(({ sessionKey, sessionId, messageId, author, timestamp, excerpt, earlier }) => (
            <li key={messageId}>
              <div class="line search-hit-head small">
                <SessionLink sessionKey={sessionKey} />
                <ByAuthor author={author} />
                {earlier === true && <span class="chip">before a reset</span>}
                <Time class="end soft" at={timestamp} as="ago" />
              </div>
              <a
                class="search-text"
                href={hrefOf({
                  view: "sessions",
                  key: sessionKey,
                  messageId,
                  sessionId: earlier === true ? sessionId : undefined,
                })}
                onClick={onClose}
              >
                <Excerpt text={excerpt} query={query} />
              </a>
            </li>
          ))}
        </ul>
      ) : (
        <p class="empty">{nextCursor === undefined ? "No matches" : "No matches in the newest messages"}</p>
      )}
      {nextCursor !== undefined &&
        (more ? (
          <Hits query={query} cursor={nextCursor} onClose={onClose} />
        ) : (
          <Button text="Search older messages" onClick={() => setMore(true)} />
        ))}
    </>
  );
}

export function MessageSearch({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState(messageWords.value.slice(0, QUERY_MAX_CHARS));
  const typed = useMemo(() => settled<string>(TYPED_MS, (text) => setQuery(text.trim())), []);
  return (
    <Dialog title="Search messages" onClose={onClose}>
      <input
        type="search"
        dir="auto"
        aria-label="Search messages"
        placeholder="Search messages"
        defaultValue={query}
        maxLength={QUERY_MAX_CHARS}
        onInput={(event) => typed(event.currentTarget.value)}
        onKeyDown={(event) => {
          // While the reader types, the matches are those of an earlier text.
          if (pressed("menu", event) === "choose" && event.currentTarget.value.trim() === query)
            document.querySelector<HTMLElement>(".search-text")?.click();
        }}
      />
      {query === "" ? (
        <p class="empty">Finds messages that contain all these words, newest first.</p>
      ) : (
        <Hits key={query} query={query} onClose={onClose} />
      )}
      <div class="actions">
        <Button text="Close" onClick={onClose} />
      </div>
    </Dialog>
  );
}
