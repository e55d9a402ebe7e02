// Rewrites the gateway's hints for people at a terminal: agents have tools, people have commands.

/** The words of a failure. */
interface Told {
  readonly code: string;
  readonly error: string;
  readonly hint?: string;
}

/** By the name of the tool. A tool without a command of its own is called with `parley tool`. */
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

/** These failures are about tools: their hints list the tools that there are. */
const ABOUT_TOOLS: readonly string[] = ["tool_denied", "unknown_tool"];

/** A failure whose hint names commands instead of tools, also where the gateway's message ends with it. */
export function inCommands<T extends Told>(trouble: T): T {
  const { code, error, hint } = trouble;
  if (hint === undefined || ABOUT_TOOLS.includes(code)) return trouble;
  const told = hint.replaceAll(TOOL, (name) => `"${COMMANDS[name]}"`);
  const message = error.endsWith(hint) ? `${error.slice(0, -hint.length)}${told}` : error;
  return { ...trouble, error: message, hint: told };
}
