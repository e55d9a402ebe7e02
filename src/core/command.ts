// Owns which commands people have, and when a message is one: when it is nothing but the command.
// CM1: only `/name arguments` on a single line is a command: nothing inside a longer text, a quote or a code
//      block can be one.
// CM2: `/name@somebody` is a command for whoever is called so, and for nobody else.
// CM3: a word that names no command is text for the agent, unless it came out of a platform's own menu.

import { LINE_BREAK } from "./safe-text.ts";

export interface CommandWord {
  readonly name: string;
  /** At most 100 characters, one line: platforms show it in their menus. */
  readonly description: string;
  /** How it is written, with its arguments. */
  readonly usage: string;
  readonly ownerOnly: boolean;
  /** Everybody may give it in a direct chat. */
  readonly ownerOnlyInGroups: boolean;
}

type Whose = Partial<Pick<CommandWord, "ownerOnly" | "ownerOnlyInGroups">>;

const word = <N extends string>(name: N, usage: string, description: string, whose: Whose = {}) => ({
  name,
  usage: usage === "" ? `/${name}` : `/${name} ${usage}`,
  description,
  ownerOnly: whose.ownerOnly ?? false,
  ownerOnlyInGroups: whose.ownerOnlyInGroups ?? false,
});

const IN_GROUPS = { ownerOnlyInGroups: true };
const OWNER = { ownerOnly: true };

/** Every command, in the order of menus. */
export const COMMANDS = [
  word("help", "[command]", "What commands there are, or how one of them is written"),
  word("status", "", "What this conversation is doing, its model and what it has used"),
  word("stop", "", "Stop what is running here"),
  word("new", "", "Begin a new conversation; the earlier one is kept", IN_GROUPS),
  word("reset", "", "The same as /new", IN_GROUPS),
  word("model", "[name | default]", "Show or choose the model of this conversation", IN_GROUPS),
  word("think", "[level | default]", "Show or choose how long the model thinks"),
  word("verbose", "[on | off | full]", "Show or choose how much is told of the work"),
  word("send", "on | off | inherit", "Whether text may leave this conversation (owner)", OWNER),
  word("sessions", "", "The sessions that this conversation can see"),
  word(
    "subagents",
    "list | cancel <id | all> | log <id>",
    "List, cancel or read the sub-agents of this chat",
  ),
  word(
    "session",
    "[unbind | idle <hours | off> | max-age <hours | off>]",
    "The session that this place is bound to, and for how long",
  ),
  word("whoami", "", "Who you are here, in the words of the settings"),
  word("pair", "approve <code>", "Let in somebody who was given a code (owner)", OWNER),
] as const satisfies readonly CommandWord[];

export type CommandName = (typeof COMMANDS)[number]["name"];

/** A command that somebody gave. */
export interface CommandCall {
  readonly command: CommandName;
  /** What stands behind the name, trimmed; may be empty. */
  readonly args: string;
}

/** A line with more behind the slash is a text. */
const LINE_CHARS_MAX = 300;
const COMMAND_LINE = /^\/([a-z][a-z0-9_-]{0,31})(?:@([^\s@]{1,64}))?(?:[ \t]+(\S.*))?$/iu;

export function findCommand(name: string): (typeof COMMANDS)[number] | undefined {
  return COMMANDS.find((command) => command.name === name.toLowerCase());
}

interface HowGiven {
  /** Whether a name behind the command's own (`/name@somebody`) is ours. */
  isOurs(name: string): boolean;
  /** It came out of a menu of the platform's own: a word that is no command is answered, too. */
  readonly fromMenu?: boolean;
}

/** The command that a whole message is, if it is one. */
export function parseCommand(text: string, given: HowGiven): CommandCall | undefined {
  const line = text.trim();
  if (line.length > LINE_CHARS_MAX || LINE_BREAK.test(line)) return undefined;
  const [, name, whose, args = ""] = COMMAND_LINE.exec(line) ?? [];
  if (name === undefined || (whose !== undefined && !given.isOurs(whose))) return undefined;
  const found = findCommand(name);
  if (found !== undefined) return { command: found.name, args: args.trim() };
  return given.fromMenu === true ? { command: "help", args: name } : undefined;
}
