// Finds messages by their words in all sessions; a hit leads to the message.

import "./search.css";
import { useMemo, useState } from "preact/hooks";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { settled, tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago } from "../parts/format.ts";
import { SessionLink } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { Time } from "../parts/time.tsx";
import { hrefOf } from "../route.ts";

/** Time after the last key press before the search starts. */
const TYPED_MS = 200;
const QUERY_MAX_CHARS = 500;
const HITS = 50;

function Hits({ query, onClose }: { query: string; onClose: () => void }) {
  const { value, problem, again } = useReading(query, () => ask("sessions.search", { query, limit: HITS }));
  if (value === undefined) return <Awaited problem={problem} again={again} words="Searching…" />;
  if (value.hits.length === 0) return <p class="empty">No matches</p>;
  return (
    <ul class="search-hits">
      {value.hits.map(({ sessionKey, messageId, timestamp, excerpt, earlier }) => (
        <li key={messageId}>
          <div class="search-hit-head">
            <SessionLink sessionKey={sessionKey} />
            {earlier === true && <span class="chip">before a reset</span>}
            <Time class="soft" at={timestamp}>
              {ago(timestamp, tick.value)}
            </Time>
          </div>
          {earlier === true ? (
            <bdi class="search-text">{safeText(excerpt)}</bdi>
          ) : (
            <a
              class="search-text"
              href={hrefOf({ view: "sessions", key: sessionKey, messageId })}
              onClick={onClose}
            >
              <bdi>{safeText(excerpt)}</bdi>
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

export function MessageSearch({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const typed = useMemo(() => settled<string>(TYPED_MS, (text) => setQuery(text.trim())), []);
  return (
    <Dialog title="Search messages" onClose={onClose}>
      <label>
        Words
        <input
          type="search"
          dir="auto"
          maxLength={QUERY_MAX_CHARS}
          onInput={(event) => typed(event.currentTarget.value)}
        />
      </label>
      {query === "" ? (
        <p class="empty">Finds messages that contain all these words, newest first.</p>
      ) : (
        <Hits query={query} onClose={onClose} />
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
