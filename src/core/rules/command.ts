// Defines the commands that people can send, and the buttons that stand for some, and parses commands.
// CM1: a command is a one-line message of the form `/name arguments`. Longer texts, quotes and code blocks
//      never contain a command.
// CM2: `/name@bot` is a command only for the bot with that name.
// CM3: an unknown command name is normal text for the agent, unless the person chose it in a platform's menu.

import { LINE_BREAK } from "../text/safe-text.ts";

export interface CommandWord {
  readonly name: string;
  /** Maximum 100 characters on one line, because platforms show it in their menus. */
  readonly description: string;
  readonly usage: string;
  readonly ownerOnly: boolean;
  /** True if only owners may use the command in groups. In a direct chat everybody may use it. */
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

export const COMMANDS = [
  word("help", "[command]", "List the commands, or explain one of them"),
  word("status", "", "Show what this conversation is doing, its model and its usage"),
  word("stop", "", "Stop the current run"),
  word("new", "", "Start a new conversation and keep the earlier one", IN_GROUPS),
  word("reset", "", "Same as /new", IN_GROUPS),
  word("fresh", "", "Same as /new", IN_GROUPS),
  word("compact", "", "Summarise the older messages", IN_GROUPS),
  word("fork", "", "Continue this conversation in a new session (owner)", OWNER),
  word("model", "[name | default]", "Show or choose the model of this conversation", IN_GROUPS),
  word("think", "[level | default]", "Show or choose how long the model thinks"),
  word("verbose", "[on | off | full]", "Show or choose how much of the work is shown"),
  word("send", "on | off | inherit", "Allow or block outgoing text of this conversation (owner)", OWNER),
  word("sessions", "", "List the sessions that this conversation can see"),
  word(
    "subagents",
    "list | cancel <id | all> | log <id>",
    "List, cancel or read the sub-agents of this chat",
  ),
  word(
    "session",
    "[unbind | idle <hours | off> | max-age <hours | off>]",
    "Show the session that this chat is bound to, or change its expiry",
  ),
  word("whoami", "", "Show your sender id and chat id"),
  word("approvals", "", "List the permission requests of agents (owner)", OWNER),
  word(
    "allow",
    "<id> [chain | session | always | <number>]",
    "Allow an agent's permission request (owner)",
    OWNER,
  ),
  word("deny", "<id>", "Deny a permission request, or undo a lasting permission (owner)", OWNER),
  word("pair", "approve <code>", "Approve a person by pairing code (owner)", OWNER),
] as const satisfies readonly CommandWord[];

export type CommandName = (typeof COMMANDS)[number]["name"];

/** Commands that need operator.admin because their method does. Commands for owners need it, too. */
const FOR_ADMINS: readonly CommandName[] = ["new", "reset", "fresh"];

/**
 * Returns the rights that an operator's token needs for a command: the same as for the command's RPC method.
 * `everySession`: the token must cover all sessions.
 */
export function rightsFor(command: CommandName) {
  const forAdmins = FOR_ADMINS.includes(command) || findCommand(command)?.ownerOnly === true;
  const scope = forAdmins ? ("operator.admin" as const) : ("operator.write" as const);
  return { scope, everySession: command === "pair" };
}

export interface CommandCall {
  readonly command: CommandName;
  /** Trimmed text after the command name; may be empty. */
  readonly args: string;
}

/** Maximum length of a command line. A longer line is normal text. */
const LINE_CHARS_MAX = 300;
const COMMAND_LINE = /^\/([a-z][a-z0-9_-]{0,31})(?:@([^\s@]{1,64}))?(?:[ \t]+(\S.*))?$/iu;

export function findCommand(name: string): (typeof COMMANDS)[number] | undefined {
  return COMMANDS.find((command) => command.name === name.toLowerCase());
}

interface HowGiven {
  /** Returns whether the name after `@` (`/name@bot`) is the name of this bot. */
  isOurs(name: string): boolean;
  /**
   * True if the person chose the command in the platform's menu. An unknown name then gets an answer as well.
   */
  readonly fromMenu?: boolean;
}

/** Parses a message. Returns undefined if it is not a command. */
export function parseCommand(text: string, given: HowGiven): CommandCall | undefined {
  const line = text.trim();
  if (line.length > LINE_CHARS_MAX || LINE_BREAK.test(line)) return undefined;
  const [, name, whose, args = ""] = COMMAND_LINE.exec(line) ?? [];
  if (name === undefined || (whose !== undefined && !given.isOurs(whose))) return undefined;
  const found = findCommand(name);
  if (found !== undefined) return { command: found.name, args: args.trim() };
  return given.fromMenu === true ? { command: "help", args: name } : undefined;
}

/**
 * A button below a text that goes to a chat. A press counts as a command of the person who pressed it. A
 * platform without buttons shows only the text, so the text has to name the commands.
 */
export interface Choice {
  readonly label: string;
  /** The command: `/name arguments`, at most 64 bytes, which is Telegram's limit. */
  readonly command: string;
}

/** The buttons of a text, and the pressed button that it answers. */
export interface Controls {
  readonly choices?: readonly Choice[];
  /**
   * The message whose button was pressed, as its channel describes it (`Press` of channels/channel.ts). The
   * text is added to that message, and the choices replace its buttons.
   */
  readonly answers?: string;
}
