// The first view: the sessions beside the conversation of one of them; on a phone one at a time.

import { lazy } from "../parts/lazy.tsx";
import { route } from "../route.ts";
import { SessionsPanel } from "./panel.tsx";

const Conversation = lazy(async () => (await import("../conversation/conversation.tsx")).Conversation);

export function SessionsView() {
  const at = route.value;
  if (at.view !== "sessions") return null;
  const { key, messageId } = at;
  return (
    <div class={`split ${key === undefined ? "no-choice" : "chosen"}`}>
      <section class="split-list" aria-label="Sessions">
        <SessionsPanel selected={key} />
      </section>
      <section class="split-main" aria-label="Conversation">
        {key === undefined ? (
          <p class="empty">Choose a session to read it.</p>
        ) : (
          <Conversation key={key} sessionKey={key} messageId={messageId} />
        )}
      </section>
    </div>
  );
}
