// Owns how sessions are called on the page, and how text from outside is kept from disturbing what is around.
// NM1: names come from anybody: they are shown as text, on one line, with what would reorder or hide text
//      written out, and isolated from the direction of their surroundings.

import { safeLine } from "../../../src/core/safe-text.ts";
import { NOT_VISIBLE } from "../../../src/core/visibility.ts";
import { hrefOf } from "../route.ts";

/** The gateway takes no longer labels. */
export const LABEL_MAX_CHARS = 200;

/** As much of a uuid as tells it from others. */
const UUID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** A key as people read it: `research` for `agent:research:main`, `research · subagent 1a2b3c4d`. */
export function shortKey(key: string): string {
  const main = /^agent:([^:]+):main$/.exec(key)?.[1];
  if (main !== undefined) return main;
  const [, agent, rest] = /^agent:([^:]+):(.+)$/.exec(key) ?? [];
  const plain = (rest ?? key).replace(UUID, "$1").replaceAll(":", " ");
  return agent === undefined ? plain : `${agent} · ${plain}`;
}

/** What a session is called: its label, else its name, else its key in short. */
export function sessionName(session: {
  readonly key: string;
  readonly label?: string | undefined;
  readonly displayName?: string | undefined;
}): string {
  return session.label || session.displayName || shortKey(session.key);
}

/** Text from outside on one line. */
export function Name({ text, title }: { text: string; title?: string | undefined }) {
  return (
    <bdi class="name" title={title === undefined ? undefined : safeLine(title)}>
      {safeLine(text)}
    </bdi>
  );
}

/**
 * A session's name as the way to its conversation, or to one message of it. There is no way to one that the
 * reader may not see.
 */
export function SessionLink(props: {
  sessionKey: string;
  name?: string;
  messageId?: string | undefined;
  /** -1: what is around it has keys of its own. */
  tabIndex?: -1;
}) {
  const { sessionKey, name = shortKey(sessionKey), messageId, tabIndex } = props;
  const shown = <Name text={name} title={sessionKey} />;
  if (sessionKey === NOT_VISIBLE) return <span class="soft">{shown}</span>;
  return (
    <a
      class="session-link"
      href={hrefOf({ view: "sessions", key: sessionKey, messageId })}
      tabIndex={tabIndex}
    >
      {shown}
    </a>
  );
}
