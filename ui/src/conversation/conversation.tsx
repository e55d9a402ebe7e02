// The conversation of one session: header, messages, composer.

import { Button } from "../parts/button.tsx";
import "./conversation.css";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { agentIn } from "../agents/face.ts";
import { linkState } from "../gateway.ts";
import { Examples } from "../parts/examples.tsx";
import { Awaited, Failed } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { Composer } from "./composer.tsx";
import { draftOf } from "./drafts.ts";
import { Header } from "./header.tsx";
import { type Item, itemsOf } from "./items.ts";
import { MessageList } from "./list.tsx";
import { OpenSession } from "./open-session.ts";
import { type Fate, SessionReader } from "./reader.ts";
import { Tail } from "./tail.tsx";
import { Code } from "./text/text.tsx";
import type { Thread } from "./thread.ts";

const FATES: Readonly<Record<Fate, string>> = {
  reset: "This session was reset. A new conversation has started.",
  deleted: "This session was deleted. You see the messages that were loaded before.",
  message_missing: "That message is not in this conversation. You see the newest messages.",
};

const ENDINGS: Readonly<Record<string, string>> = { ok: "Answered.", aborted: "The run was stopped." };

/** Returns a reader of this session. The reader is open as long as the component is mounted. */
function useReader(sessionKey: string, messageId: string | undefined): SessionReader {
  const reader = useMemo(() => new SessionReader(sessionKey), [sessionKey]);
  useEffect(() => {
    reader.open();
    return () => reader.close();
  }, [reader]);
  useEffect(() => {
    if (messageId !== undefined) reader.around(messageId);
  }, [reader, messageId]);
  return reader;
}

function ToLatest({ reader }: { reader: SessionReader }) {
  if (reader.following.value) return null;
  const { value: unseen } = reader.unseen;
  return (
    <Button
      text={unseen === 0 ? "↓ Latest" : `↓ Latest, ${counted(unseen, "new message")}`}
      class="floating to-latest"
      onClick={() => reader.latest()}
    />
  );
}

function Head(props: { thread: Thread; isEmpty: boolean; isClosed: boolean; onOlder: () => void }) {
  const { thread, isEmpty, isClosed, onOlder } = props;
  const { nextBefore, sessionId, sessionKey } = thread;
  if (nextBefore !== undefined)
    return (
      <p class="beginning small">
        <Button text="Older messages" class="quiet" onClick={onOlder} />
      </p>
    );
  if (!isEmpty) return <p class="beginning small soft">Start of the conversation</p>;
  return (
    <div class="empty">
      {sessionId === undefined ? (
        <p>
          There is no session <Name text={nameOf(sessionKey)} /> yet. Your first message starts it.
        </p>
      ) : (
        <p>No messages yet</p>
      )}
      {!isClosed && <Examples sessionKey={sessionKey} />}
    </div>
  );
}

function Body({ reader, thread }: { reader: SessionReader; thread: Thread }) {
  const before = useRef<Item[]>([]);
  const items = useMemo(() => itemsOf(thread, before.current), [thread]);
  before.current = items;
  const { sessionKey, sessionId } = thread;
  const agentId = thread.now?.session.agentId ?? (agentIn(sessionKey) || "agent");
  const target = reader.jump.value.messageId;
  const session = useMemo(
    () => ({ sessionKey, sessionId, agentId, target }),
    [sessionKey, sessionId, agentId, target],
  );
  const { fate } = reader;
  const last = items.at(-1);
  // For users of a screen reader.
  const ending = last?.kind !== "end" ? "" : (ENDINGS[last.run.state] ?? "The run did not succeed.");
  const isDeleted = fate.value === "deleted";
  const draft = isDeleted ? draftOf(sessionKey) : "";
  return (
    <OpenSession.Provider value={session}>
      <div class="conversation">
        <Header key={sessionKey} thread={thread} />
        {fate.value !== undefined && (
          <p class="banner" role="status">
            {FATES[fate.value]}
          </p>
        )}
        <div class="conversation-body">
          <MessageList
            items={items}
            reader={reader}
            jump={reader.jump.value}
            head={
              <Head
                thread={thread}
                isEmpty={items.length === 0}
                isClosed={isDeleted || thread.now?.session.archivedAt !== undefined}
                onOlder={() => reader.older()}
              />
            }
            tail={
              thread.nextAfter === undefined ? (
                <Tail reader={reader} />
              ) : (
                <p class="beginning small">
                  <Button text="Newer messages" class="quiet" onClick={() => reader.newer()} />
                </p>
              )
            }
          />
          <ToLatest reader={reader} />
          <p class="visually-hidden" role="status">
            {ending}
          </p>
        </div>
        {reader.problem.value !== undefined && linkState.value === "connected" && (
          <Failed problem={reader.problem.value} onRetry={() => reader.news()} />
        )}
        {draft !== "" && (
          <div class="composer">
            <Code name="Unsent message" text={draft} />
          </div>
        )}
        {!isDeleted && (
          <Composer
            thread={thread}
            onSent={() => {
              reader.news();
              reader.latest();
            }}
          />
        )}
      </div>
    </OpenSession.Provider>
  );
}

export function Conversation(props: { sessionKey: string; messageId: string | undefined }) {
  const reader = useReader(props.sessionKey, props.messageId);
  const thread = reader.thread.value;
  if (thread === undefined) return <Awaited problem={reader.problem.value} again={() => reader.news()} />;
  return <Body reader={reader} thread={thread} />;
}
