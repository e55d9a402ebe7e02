// The conversation of one session: header, messages, composer.

import "./conversation.css";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { linkState } from "../gateway.ts";
import { Awaited, Failed } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Composer } from "./composer.tsx";
import { Header } from "./header.tsx";
import { type Item, itemsOf } from "./items.ts";
import { MessageList } from "./list.tsx";
import { type Fate, SessionReader } from "./reader.ts";
import { Tail } from "./tail.tsx";
import type { Thread } from "./thread.ts";

const FATES: Readonly<Record<Fate, string>> = {
  reset: "This session was reset. A new conversation has started.",
  deleted: "This session was deleted. You see the messages that were loaded before.",
  message_missing: "That message is not in this conversation. You see the newest messages.",
};

/** Returns a reader of this session, open while the component is mounted. */
function useReader(sessionKey: string, messageId: string | undefined): SessionReader {
  const reader = useMemo(() => new SessionReader(sessionKey), [sessionKey]);
  const opened = useRef<string>(undefined);
  useEffect(() => {
    opened.current = messageId;
    reader.open(messageId);
    return () => reader.close();
  }, [reader]);
  useEffect(() => {
    if (messageId !== undefined && messageId !== opened.current) reader.around(messageId);
    opened.current = messageId;
  }, [messageId]);
  return reader;
}

/** A button that scrolls to the newest messages, if the reader is elsewhere. */
function ToLatest({ reader }: { reader: SessionReader }) {
  if (reader.following.value) return null;
  const { value: unseen } = reader.unseen;
  return (
    <button type="button" class="to-latest" onClick={() => reader.latest()}>
      {unseen === 0 ? "↓ Latest" : `↓ Latest, ${counted(unseen, "new message")}`}
    </button>
  );
}

/** Returns the text for screen readers when a run has ended. */
function endedWords(items: readonly Item[]): string {
  const last = items.at(-1);
  return last?.kind !== "end" ? "" : last.run.state === "ok" ? "Answered." : "The run did not succeed.";
}

function Shown({ reader, thread }: { reader: SessionReader; thread: Thread }) {
  const before = useRef<Item[]>([]);
  const items = useMemo(() => itemsOf(thread, before.current), [thread]);
  before.current = items;
  const agentId = thread.now?.session.agentId ?? /^agent:([^:]+)/.exec(thread.sessionKey)?.[1] ?? "agent";
  const { fate } = reader;
  return (
    <div class="conversation">
      <Header thread={thread} />
      {fate.value !== undefined && (
        <p class="fate" role="status">
          {FATES[fate.value]}
        </p>
      )}
      <div class="conversation-body">
        <MessageList
          items={items}
          agentId={agentId}
          jump={reader.jump.value.count}
          target={reader.jump.value.messageId}
          atNewest={thread.nextAfter === undefined}
          onFollow={(follows) => reader.follow(follows)}
          onNearStart={() => reader.older()}
          onNearEnd={() => reader.newer()}
          head={
            thread.nextBefore !== undefined ? (
              <p class="loading">Loading older messages…</p>
            ) : (
              <p class="beginning soft">
                {items.length === 0 ? "No messages yet" : "Start of the conversation"}
              </p>
            )
          }
          tail={<Tail reader={reader} agentId={agentId} />}
        />
        <ToLatest reader={reader} />
        <p class="visually-hidden" role="status">
          {endedWords(items)}
        </p>
      </div>
      {reader.problem.value !== undefined && linkState.value === "connected" && (
        <Failed problem={reader.problem.value} onRetry={() => reader.news()} />
      )}
      {fate.value !== "deleted" && (
        <Composer
          thread={thread}
          onSent={() => {
            reader.news();
            reader.latest();
          }}
        />
      )}
    </div>
  );
}

export function Conversation(props: { sessionKey: string; messageId?: string | undefined }) {
  const { sessionKey, messageId } = props;
  const reader = useReader(sessionKey, messageId);
  const thread = reader.thread.value;
  if (thread !== undefined) return <Shown reader={reader} thread={thread} />;
  return <Awaited problem={reader.problem.value} again={() => reader.news()} />;
}
