// Owns the commands that people give in a chat: which message is one, who may give it, and who does it.
// CO1: a command is done in the unit that its caller gives, whole or not at all: its answer is true once that
//      unit is committed.
// CO2: who may give it is decided here, for every door, before anything is read or changed.
// CO3: what is shown of sessions is what the session of the chat may see (I9), safe to show, with secrets
//      masked.

import { type CommandCall, type CommandName, findCommand, parseCommand } from "../core/command.ts";
import type { Unit } from "../engine/unit.ts";
import type { InboundMessage } from "./channel.ts";
import {
  type CommandContext,
  type CommandParts,
  type CommandRequest,
  type Here,
  isTrusted,
} from "./commands/context.ts";
import {
  beginAnew,
  chooseModel,
  chooseSending,
  chooseThinking,
  chooseVerbosity,
} from "./commands/conversation.ts";
import { help, hereOf, sessions, status, whoAmI } from "./commands/look.ts";
import { binding, pair } from "./commands/place.ts";
import { stop, subagents } from "./commands/work.ts";

type Act =
  | { readonly needs: "nothing"; do(context: CommandContext): string | Promise<string> }
  /** It is about a conversation: before the first message there is none. */
  | { readonly needs: "session"; do(here: Here): Promise<string> };

const anywhere = (act: (context: CommandContext) => string | Promise<string>): Act => ({
  needs: "nothing",
  do: act,
});
const inSession = (act: (here: Here) => Promise<string>): Act => ({ needs: "session", do: act });

const ACTS: { readonly [N in CommandName]: Act } = {
  help: anywhere(help),
  whoami: anywhere(whoAmI),
  status: inSession(status),
  sessions: inSession(sessions),
  stop: inSession(stop),
  subagents: inSession(subagents),
  new: inSession(beginAnew),
  reset: inSession(beginAnew),
  model: inSession(chooseModel),
  think: inSession(chooseThinking),
  verbose: inSession(chooseVerbosity),
  send: inSession(chooseSending),
  session: inSession(binding),
  pair: anywhere(pair),
};

/** The command that a message is, if it is one: never a caption, an edit or what somebody else wrote. */
export function readCommand(message: InboundMessage): CommandCall | undefined {
  if (message.media.length > 0 || message.edit !== undefined || message.forwarded === true) return undefined;
  const { accountName, mentioned, nativeCommand = false } = message;
  const isOurs = (name: string): boolean =>
    accountName === undefined ? mentioned : name.toLowerCase() === accountName.toLowerCase();
  return parseCommand(message.text, { isOurs, fromMenu: nativeCommand });
}

/** Why this person may not give this command here; undefined: they may. */
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
 * Does what a command says, in the unit. Returns the text of the answer, in Markdown. What can't be done is
 * an answer too, and has changed nothing.
 */
export async function performCommand(
  parts: CommandParts,
  unit: Unit,
  request: CommandRequest,
): Promise<string> {
  const refusal = refusalOf(request);
  if (refusal !== undefined) return refusal;
  const context: CommandContext = { parts, unit, request };
  const act = ACTS[request.command];
  if (act.needs === "nothing") return act.do(context);
  const here = await hereOf(context);
  return here === undefined ? "There is no conversation here yet: say something first." : act.do(here);
}
