// Rewrites the gateway's hints for users of a terminal, so that they name commands instead of tools and
// methods.

/** The message and the hint of a failure. */
interface FailureText {
  readonly code: string;
  readonly error: string;
  readonly hint?: string;
}

/**
 * The command for each tool and method that occurs in hints. If there is no special command, it is `parley
 * tool` or `parley call`.
 */
const COMMANDS: Readonly<Record<string, string>> = {
  agents_list: "parley agents",
  "chains.list": "parley call chains.list",
  "cron.list": "parley cron",
  "deliveries.list": "parley deliveries",
  "device.token.list": "parley devices",
  session_status: "parley sessions show",
  sessions_history: "parley sessions history",
  sessions_list: "parley sessions",
  sessions_search: "parley tool sessions_search",
  "sessions.reset": "parley sessions reset",
  sessions_send: "parley send",
  sessions_spawn: "parley tool sessions_spawn",
  "tokens.list": "parley tokens",
};
const NAMES = Object.keys(COMMANDS).join("|").replaceAll(".", "\\.");
/** A name with the quotes around it, if it has some. */
const NAME = new RegExp(`(["\`]?)\\b(${NAMES})\\b\\1`, "g");

/** Error codes about tools. Their hints list names of tools, so these hints are not rewritten. */
const ABOUT_TOOLS: readonly string[] = ["tool_denied", "unknown_tool"];

/**
 * Returns the failure with a rewritten hint. If the message ends with the hint, the message is rewritten,
 * too.
 */
export function inCommands<T extends FailureText>(trouble: T): T {
  const { code, error, hint } = trouble;
  if (hint === undefined || ABOUT_TOOLS.includes(code)) return trouble;
  const rewritten = hint.replaceAll(NAME, (_, _quote, name: string) => `"${COMMANDS[name]}"`);
  const message = error.endsWith(hint) ? `${error.slice(0, -hint.length)}${rewritten}` : error;
  return { ...trouble, error: message, hint: rewritten };
}
