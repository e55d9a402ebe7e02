// The inbox and sessions views: the session list beside the inbox or a conversation. On a phone only one of
// them is visible.

import { Inbox } from "../inbox/inbox.tsx";
import { lazy } from "../parts/lazy.tsx";
import { route } from "../route.ts";
import { Welcome } from "../welcome.tsx";
import { SessionsPanel } from "./panel.tsx";

const Conversation = lazy(async () => (await import("../conversation/conversation.tsx")).Conversation);

const Dashboard = lazy(async () => (await import("./dashboard.tsx")).Dashboard);

export function SessionsView() {
  const at = route.value;
  const isInbox = at.view === "inbox";
  const { key, messageId, sessionId } = at.view === "sessions" ? at : {};
  if (!isInbox && at.view !== "sessions") return null;
  const state = isInbox ? "inbox-open" : key === undefined ? "no-choice" : "chosen";
  return (
    <div class={`split ${state}`}>
      <section class="split-list" aria-label="Sessions">
        <SessionsPanel selected={key} />
      </section>
      <section class="split-main" aria-label={isInbox ? "Inbox" : "Conversation"}>
        {isInbox ? (
          <Inbox />
        ) : key === undefined ? (
          <>
            <Welcome />
            <Dashboard />
          </>
        ) : (
          <Conversation
            key={key}
            sessionKey={key}
            messageId={sessionId === undefined ? messageId : undefined}
          />
        )}
      </section>
    </div>
  );
}
