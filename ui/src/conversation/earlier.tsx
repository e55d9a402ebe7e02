// Shows the earlier conversations of a session, each of which a reset ended: a list of them, and each of
// them, read-only.

import { useEffect, useRef, useState } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { ask } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
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
        <li key={sessionId} class="line">
          <Button text={title} class="quiet" onClick={() => onOpen(sessionId)} />{" "}
          <span class="soft">{`${clockTime(endedAt, true)} · ${counted(messages, "message")}`}</span>
        </li>
      ))}
    </ul>
  );
}

export interface EarlierPlace {
  readonly sessionId: string;
  readonly messageId: string;
}

/** `target`: the message to begin with, which is marked. */
function Transcript(props: {
  sessionKey: string;
  sessionId: string;
  agentId: string;
  target: string | undefined;
}) {
  const { sessionKey, sessionId, agentId, target } = props;
  const [place, setPlace] = useState<{ around?: string; before?: string; after?: string }>(
    optional({ around: target }),
  );
  const list = useRef<HTMLOListElement>(null);
  const { value, problem } = useReading(`${sessionId} ${JSON.stringify(place)}`, () =>
    ask("chat.history", { sessionKey, sessionId, limit: PAGE_MESSAGES, includeRuns: true, ...place }),
  );
  useEffect(() => {
    list.current?.querySelector(".entry-marked")?.scrollIntoView({ block: "center" });
  }, [value]);
  if (value === undefined) return problem === undefined ? <p>Loading…</p> : <Failed problem={problem} />;
  const { nextBefore: before, nextAfter: after } = value;
  return (
    <>
      {before !== undefined && <Button text="Older messages" onClick={() => setPlace({ before })} />}
      <Shown.Provider value={{ sessionKey, sessionId }}>
        <ol ref={list} class="earlier-messages">
          {itemsOf(threadOf(value)).map((item) => (
            <Entry key={item.id} item={item} agentId={agentId} target={target} />
          ))}
        </ol>
      </Shown.Provider>
      {after !== undefined && <Button text="Newer messages" onClick={() => setPlace({ after })} />}
    </>
  );
}

/** `at`: a message to show at first, instead of the list. */
export function Earlier(props: {
  sessionKey: string;
  agentId: string;
  at: EarlierPlace | undefined;
  onClose: () => void;
}) {
  const { sessionKey, agentId, at, onClose } = props;
  const [sessionId, open] = useState(at?.sessionId);
  const target = sessionId === at?.sessionId ? at?.messageId : undefined;
  return (
    <Dialog title="Earlier conversations" onClose={onClose}>
      {sessionId === undefined ? (
        <Conversations sessionKey={sessionKey} onOpen={open} />
      ) : (
        <Transcript sessionKey={sessionKey} sessionId={sessionId} agentId={agentId} target={target} />
      )}
      <div class="actions">
        {sessionId !== undefined && <Button text="All conversations" onClick={() => open(undefined)} />}
        <Button text="Close" onClick={onClose} />
      </div>
    </Dialog>
  );
}
