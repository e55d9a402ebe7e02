// Shows the earlier conversations of a session, each of which a reset ended: a list of them, and each of
// them, read-only.

import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { ask } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { clockTime, counted } from "../parts/format.ts";
import { useReading } from "../parts/reading.ts";
import { Entry } from "./entry.tsx";
import { itemsOf } from "./items.ts";
import { OpenSession } from "./open-session.ts";
import { threadOf } from "./thread.ts";

const PAGE_MESSAGES = 200;

function Conversations({ onOpen }: { onOpen: (sessionId: string) => void }) {
  const { sessionKey } = useContext(OpenSession);
  const reading = useReading(sessionKey, () => ask("sessions.earlier", { key: sessionKey }));
  const { value } = reading;
  if (value === undefined) return <Awaited {...reading} />;
  if (value.conversations.length === 0) return <p>No earlier conversations: this session was never reset.</p>;
  return (
    <ul class="stack earlier-list">
      {value.conversations.map(({ sessionId, endedAt, messages, title = "Untitled" }) => (
        <li key={sessionId} class="line">
          <Button text={title} class="quiet" onClick={() => onOpen(sessionId)} />{" "}
          <span class="soft">{`${clockTime(endedAt, true)} · ${counted(messages, "message")}`}</span>
        </li>
      ))}
    </ul>
  );
}

/** `target`: the message to begin with, which is marked. */
function Transcript({ sessionId, target }: { sessionId: string; target: string | undefined }) {
  const { sessionKey, agentId } = useContext(OpenSession);
  const session = { sessionKey, sessionId, agentId, target, isEarlier: true };
  const [place, setPlace] = useState<{ around?: string; before?: string; after?: string }>(
    optional({ around: target }),
  );
  const list = useRef<HTMLOListElement>(null);
  const reading = useReading(`${sessionId} ${JSON.stringify(place)}`, () =>
    ask("chat.history", { sessionKey, sessionId, limit: PAGE_MESSAGES, includeRuns: true, ...place }),
  );
  const { value } = reading;
  useEffect(() => {
    list.current?.querySelector(".entry-marked")?.scrollIntoView({ block: "center" });
  }, [value]);
  if (value === undefined) return <Awaited {...reading} />;
  const { nextBefore: before, nextAfter: after } = value;
  return (
    <>
      {before !== undefined && <Button text="Older messages" onClick={() => setPlace({ before })} />}
      <OpenSession.Provider value={session}>
        <ol ref={list} class="stack earlier-messages">
          {itemsOf(threadOf(value)).map((item) => (
            <Entry key={item.id} item={item} />
          ))}
        </ol>
      </OpenSession.Provider>
      {after !== undefined && <Button text="Newer messages" onClick={() => setPlace({ after })} />}
    </>
  );
}

/** `at`: a message to show at first, instead of the list. */
export function Earlier({
  at,
  onClose,
}: {
  at: { sessionId: string; messageId: string } | undefined;
  onClose: () => void;
}) {
  const [sessionId, open] = useState(at?.sessionId);
  const target = sessionId === at?.sessionId ? at?.messageId : undefined;
  return (
    <Dialog title="Earlier conversations" onClose={onClose}>
      {sessionId === undefined ? (
        <Conversations onOpen={open} />
      ) : (
        <Transcript sessionId={sessionId} target={target} />
      )}
      <div class="actions">
        {sessionId !== undefined && <Button text="All conversations" onClick={() => open(undefined)} />}
        <Button text="Close" onClick={onClose} />
      </div>
    </Dialog>
  );
}
