// Shows the names of sessions (names.ts), and isolates text from outside from the text around it.
// NM1: names come from anybody: they are shown as text, on one line, with characters that reorder or hide
//      text written out, and isolated from the writing direction around them.

import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { hrefOf } from "../route.ts";
import { nameOf } from "./names.ts";

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
  /** Default: the session's name. */
  name?: string;
  messageId?: string | undefined;
  /** -1: the element around it handles the keyboard. */
  tabIndex?: -1;
}) {
  const { sessionKey, name = nameOf(sessionKey), messageId, tabIndex } = props;
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
