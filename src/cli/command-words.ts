// Rewrites the gateway's hints for users of a terminal, so that they name commands instead of tools and
// methods.

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
  agents_list: "npx parley-gateway agents",
  "chains.list": "npx parley-gateway call chains.list",
  "deliveries.list": "npx parley-gateway deliveries",
  "device.token.list": "npx parley-gateway devices",
  session_status: "npx parley-gateway sessions show",
  sessions_history: "npx parley-gateway sessions history",
  sessions_list: "npx parley-gateway sessions",
  sessions_search: "npx parley-gateway tool sessions_search",
  "sessions.reset": "npx parley-gateway sessions reset",
  sessions_send: "npx parley-gateway send",
  sessions_spawn: "npx parley-gateway tool sessions_spawn",
  "tokens.list": "npx parley-gateway tokens",
};

/** Error codes about tools. Their hints list names of tools, so these hints are not rewritten. */
const ABOUT_TOOLS: readonly string[] = ["tool_denied", "unknown_tool"];

/**
 * Returns the failure with a rewritten hint. If the message ends with the hint, the message is rewritten,
 * too. `more`: the commands of features.
 */
export function inCommands<T extends FailureText>(
  trouble: T,
  more: Readonly<Record<string, string>> = {},
): T {
  const { code, error, hint } = trouble;
  if (hint === undefined || ABOUT_TOOLS.includes(code)) return trouble;
  const commands = { ...COMMANDS, ...more };
  const names = Object.keys(commands).join("|").replaceAll(".", "\\.");
  // A name with the quotes around it, if it has some.
  const known = new RegExp(`(["\`]?)\\b(${names})\\b\\1`, "g");
  const rewritten = hint.replaceAll(known, (_, _quote, name: string) => `"${commands[name]}"`);
  const message = error.endsWith(hint) ? `${error.slice(0, -hint.length)}${rewritten}` : error;
  return { ...trouble, error: message, hint: rewritten };
}
