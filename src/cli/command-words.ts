// Rewrites the gateway's hints for users of a terminal: names commands instead of tools.

/** The message and the hint of a failure. */
interface FailureText {
  readonly code: string;
  readonly error: string;
  readonly hint?: string;
}

/** The command for each tool. A tool without a command is called with `parley tool`. */
const COMMANDS: Readonly<Record<string, string>> = {
  agents_list: "parley agents",
  session_status: "parley sessions show",
  sessions_history: "parley sessions history",
  sessions_list: "parley sessions",
  sessions_search: "parley tool sessions_search",
  sessions_send: "parley send",
  sessions_spawn: "parley tool sessions_spawn",
};
const TOOL = new RegExp(`\\b(?:${Object.keys(COMMANDS).join("|")})\\b`, "g");

/** Error codes about tools. Their hints list tools, so they stay as they are. */
const ABOUT_TOOLS: readonly string[] = ["tool_denied", "unknown_tool"];

/** Returns the failure with commands in its hint, and in its message if that ends with the hint. */
export function inCommands<T extends FailureText>(trouble: T): T {
  const { code, error, hint } = trouble;
  if (hint === undefined || ABOUT_TOOLS.includes(code)) return trouble;
  const rewritten = hint.replaceAll(TOOL, (name) => `"${COMMANDS[name]}"`);
  const message = error.endsWith(hint) ? `${error.slice(0, -hint.length)}${rewritten}` : error;
  return { ...trouble, error: message, hint: rewritten };
}
