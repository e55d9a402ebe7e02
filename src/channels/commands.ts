// Runs the commands that people write in a chat: recognises them, checks the sender's permission, and calls
// the handler.
// CO1: a command runs in the caller's transaction, completely or not at all. Its answer is sent only if that
//      transaction commits.
// CO2: permission is checked here, for every way to call a command, before anything is read or changed.
// An answer shows only sessions that the chat's session may see (I9). The text of an answer is escaped, and
// secrets in it are redacted.

import { type CommandCall, type CommandName, findCommand, parseCommand } from "../core/rules/command.ts";
import type { Unit } from "../engine/unit.ts";
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
import { help, hereOf, sessions, status, whoAmI } from "./commands/status.ts";
import { stop, subagents } from "./commands/work.ts";

/** An answer, or only its text. */
type Answer = string | CommandAnswer;

type Act =
  | { readonly needs: "nothing"; do(context: CommandContext): Answer | Promise<Answer> }
  /** A command that needs an existing conversation. A chat has no conversation before its first message. */
  | { readonly needs: "session"; do(here: ConversationContext): Promise<string> };

const anywhere = (act: (context: CommandContext) => Answer | Promise<Answer>): Act => ({
  needs: "nothing",
  do: act,
});
const inSession = (act: (here: ConversationContext) => Promise<string>): Act => ({
  needs: "session",
  do: act,
});

const ACTS: { readonly [N in CommandName]: Act } = {
  help: anywhere(help),
  whoami: anywhere(whoAmI),
  status: inSession(status),
  sessions: inSession(sessions),
  stop: inSession(stop),
  subagents: inSession(subagents),
  compact: inSession(compactHere),
  fork: inSession(forkHere),
  new: inSession(beginAnew),
  reset: inSession(beginAnew),
  model: inSession(chooseModel),
  think: inSession(chooseThinking),
  verbose: inSession(chooseVerbosity),
  send: inSession(chooseSending),
  session: inSession(binding),
  approvals: anywhere(approvals),
  allow: anywhere(allow),
  deny: anywhere(deny),
  pair: anywhere(pair),
};

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
  const act = ACTS[request.command];
  if (act.needs === "nothing") {
    const answer = await act.do(context);
    return typeof answer === "string" ? { text: answer } : answer;
  }
  const here = await hereOf(context);
  const none = "This chat has no conversation yet. Send a message first.";
  return { text: here === undefined ? none : await act.do(here) };
}
