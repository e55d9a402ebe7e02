// Owns the names of sessions on the page, and isolates text from outside from the text around it.
// NM1: names come from anybody: they are shown as text, on one line, with characters that reorder or hide
//      text written out, and isolated from the writing direction around them.

import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { hrefOf } from "../route.ts";

/** Captures the first part of a uuid, which is enough to tell it from others. */
const UUID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** Returns a short form of a key: `research` for `agent:research:main`, `research · subagent 1a2b3c4d`. */
export function shortKey(key: string): string {
  const main = /^agent:([^:]+):main$/.exec(key)?.[1];
  if (main !== undefined) return main;
  const [, agent, rest] = /^agent:([^:]+):(.+)$/.exec(key) ?? [];
  const plain = (rest ?? key).replace(UUID, "$1").replaceAll(":", " ");
  return agent === undefined ? plain : `${agent} · ${plain}`;
}

/** Returns a session's label, else its name, else the short form of its key. */
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
 * A session's name as a link to its conversation, or to one message of it. Plain text for a session that the
 * reader may not see.
 */
export function SessionLink(props: {
  sessionKey: string;
  name?: string;
  messageId?: string | undefined;
  /** -1: the element around it handles the keyboard. */
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
