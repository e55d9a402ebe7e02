// Shows the conversations of a session before its resets: a list, and each conversation, read-only.

import { useState } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { ask } from "../gateway.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Failed } from "../parts/failure.tsx";
import { clockTime, counted } from "../parts/format.ts";
import { useReading } from "../parts/reading.ts";
import { Entry } from "./entry.tsx";
import { itemsOf } from "./items.ts";
import { Shown } from "./text/picture.tsx";
import { threadOf } from "./thread.ts";

const PAGE_MESSAGES = 200;

type Open = (sessionId: string | undefined) => void;

function Conversations({ sessionKey, onOpen }: { sessionKey: string; onOpen: Open }) {
  const { value, problem } = useReading(sessionKey, () => ask("sessions.earlier", { key: sessionKey }));
  if (value === undefined) return problem === undefined ? <p>Loading…</p> : <Failed problem={problem} />;
  if (value.conversations.length === 0) return <p>No earlier conversations: this session was never reset.</p>;
  return (
    <ul class="earlier-list">
      {value.conversations.map(({ sessionId, endedAt, messages, title = "Untitled" }) => (
        <li key={sessionId}>
          <button type="button" class="quiet" onClick={() => onOpen(sessionId)}>
            {title}
          </button>{" "}
          <span class="soft">{`${clockTime(endedAt, true)} · ${counted(messages, "message")}`}</span>
        </li>
      ))}
    </ul>
  );
}

/** Pages of one conversation, oldest message first. */
function Transcript(props: { sessionKey: string; sessionId: string; agentId: string }) {
  const { sessionKey, sessionId, agentId } = props;
  const [before, setBefore] = useState<string>();
  const { value, problem } = useReading(`${sessionId} ${before}`, () =>
    ask("chat.history", {
      sessionKey,
      sessionId,
      limit: PAGE_MESSAGES,
      includeRuns: true,
      ...optional({ before }),
    }),
  );
  if (value === undefined) return problem === undefined ? <p>Loading…</p> : <Failed problem={problem} />;
  return (
    <>
      {value.nextBefore !== undefined && (
        <button type="button" onClick={() => setBefore(value.nextBefore)}>
          Older messages
        </button>
      )}
      {before !== undefined && (
        <button type="button" onClick={() => setBefore(undefined)}>
          Newest messages
        </button>
      )}
      <Shown.Provider value={{ sessionKey, sessionId }}>
        <ol class="earlier-messages">
          {itemsOf(threadOf(value)).map((item) => (
            <Entry key={item.id} item={item} agentId={agentId} target={undefined} />
          ))}
        </ol>
      </Shown.Provider>
    </>
  );
}

export function Earlier(props: { sessionKey: string; agentId: string; onClose: () => void }) {
  const { sessionKey, agentId, onClose } = props;
  const [sessionId, open] = useState<string>();
  return (
    <Dialog title="Earlier conversations" onClose={onClose}>
      {sessionId === undefined ? (
        <Conversations sessionKey={sessionKey} onOpen={open} />
      ) : (
        <Transcript sessionKey={sessionKey} sessionId={sessionId} agentId={agentId} />
      )}
      <div class="actions">
        {sessionId !== undefined && (
          <button type="button" onClick={() => open(undefined)}>
            All conversations
          </button>
        )}
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
