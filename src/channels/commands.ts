// Runs the commands that people write in a chat: recognises them, checks the sender's permission, and calls
// the handler.
// CO1: a command runs in the caller's transaction, completely or not at all. Its answer is sent only if that
//      transaction commits.
// CO2: permission is checked here, for every way to call a command, before anything is read or changed.
// An answer shows only sessions that the chat's session may see (I9). The text of an answer is escaped, and
// secrets in it are redacted.

import { type CommandCall, type CommandName, findCommand, parseCommand } from "../core/rules/command.ts";
import type { Unit } from "../engine/unit.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { InboundMessage } from "./channel.ts";
import { binding, pair } from "./commands/binding.ts";
import {
  type CommandAnswer,
  type CommandContext,
  type CommandParts,
  type CommandRequest,
  type ConversationContext,
  isTrusted,
} from "./commands/context.ts";
import {
  beginAnew,
  chooseModel,
  chooseSending,
  chooseThinking,
  chooseVerbosity,
  compactHere,
  forkHere,
} from "./commands/conversation.ts";
import { allow, approvals, deny } from "./commands/permission.ts";
import { help, sessions, status, whoAmI } from "./commands/status.ts";
import { stop, subagents } from "./commands/work.ts";

/** Commands that need no conversation. */
const ANYWHERE = { help, whoami: whoAmI, approvals, allow, deny, pair };
type Anywhere = keyof typeof ANYWHERE;

/** Commands that need an existing conversation. A chat has no conversation before its first message. */
const IN_SESSION: Record<Exclude<CommandName, Anywhere>, (here: ConversationContext) => Promise<string>> = {
  status,
  sessions,
  stop,
  subagents,
  compact: compactHere,
  fork: forkHere,
  new: beginAnew,
  reset: beginAnew,
  fresh: beginAnew,
  model: chooseModel,
  think: chooseThinking,
  verbose: chooseVerbosity,
  send: chooseSending,
  session: binding,
};

const isAnywhere = (command: CommandName): command is Anywhere => Object.hasOwn(ANYWHERE, command);

/**
 * Returns the command that a message contains, or undefined. Captions, edits and forwarded text never count
 * as commands.
 */
export function readCommand(message: InboundMessage): CommandCall | undefined {
  if (message.media.length > 0 || message.edit !== undefined || message.forwarded === true) return undefined;
  const { accountName, mentioned, nativeCommand = false } = message;
  const isOurs = (name: string): boolean =>
    accountName === undefined ? mentioned : name.toLowerCase() === accountName.toLowerCase();
  return parseCommand(message.text, { isOurs, fromMenu: nativeCommand });
}

/** Returns the reason why this person is not allowed to use this command here, or undefined. */
function refusalOf(request: CommandRequest): string | undefined {
  const word = findCommand(request.command);
  if (word?.ownerOnly === true && !request.sender.isOwner) return `/${word.name} is for owners only.`;
  if (word?.ownerOnlyInGroups === true && !isTrusted(request)) {
    const where = request.chatType === "direct" ? ": groups share this conversation" : " in a group";
    return `/${word.name} is for owners only${where}.`;
  }
  return undefined;
}

/**
 * Runs a command in the transaction and returns the answer in Markdown. If the command fails, it has changed
 * nothing, and the answer says why.
 */
export async function performCommand(
  parts: CommandParts,
  unit: Unit,
  request: CommandRequest,
): Promise<CommandAnswer> {
  const refusal = refusalOf(request);
  if (refusal !== undefined) return { text: refusal, isRefused: true };
  const context: CommandContext = { parts, unit, request };
  const { command } = request;
  if (isAnywhere(command)) {
    const answer = await ANYWHERE[command](context);
    return typeof answer === "string" ? { text: answer } : answer;
  }
  const session = await getSession(unit.tx, request.sessionKey);
  if (session === undefined) return { text: "This chat has no conversation yet. Send a message first." };
  return { text: await IN_SESSION[command]({ ...context, session }) };
}
