// Shows names of sessions (names.ts) and other untrusted text, isolated from the text around it.
// NM1: names may come from anybody. They are shown as text on one line. Characters that reorder or hide text
//      are escaped. The writing direction of a name does not affect the text around it.

import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import { safeLine, safeText } from "../../../src/core/text/safe-text.ts";
import { hrefOf } from "../route.ts";
import { nameOf } from "./names.ts";

/** Shows untrusted text on one line. `as`: the element around it, which has the other attributes. */
export function Name(props: {
  text: string;
  title?: string | undefined;
  as?: "b" | "code" | "dd" | "div" | "dt" | "h3" | "h4" | "li" | "p" | "span" | "strong" | "td" | "th";
  class?: string;
}) {
  const { text, title, as: Box, ...attributes } = props;
  const name = (
    <bdi class="name" title={title === undefined ? undefined : safeLine(title)}>
      {safeLine(text)}
    </bdi>
  );
  return Box === undefined ? name : <Box {...attributes}>{name}</Box>;
}

/** Shows untrusted text with its lines. */
export function Lines(props: { text: string; as?: "code" | "p" | "pre"; class?: string; role?: "alert" }) {
  const { text, as: Box = "p", ...attributes } = props;
  return (
    <Box {...attributes}>
      <bdi>{safeText(text)}</bdi>
    </Box>
  );
}

/** Links to a conversation, or to a message in it. Only text if the reader may not see the session. */
export function SessionLink(props: {
  sessionKey: string;
  /** Text of the link. Default: the session's name. */
  name?: string;
  messageId?: string | undefined;
  /** -1: the Tab key skips the link, because an ancestor handles the keys. */
  tabIndex?: -1 | undefined;
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
