// Defines the context of a command, its permission checks, and the formats of names and numbers in answers.
// MO1: text from other people (labels, names, messages) appears in an answer only as code, or as escaped
//      words on one line. So this text cannot become a link, a mention or a heading.

import { type AccessContext, keyRulesOf, sessionViewer } from "../../access/access.ts";
import { spawnChainOf } from "../../access/spawn-chain.ts";
import type { Choice, CommandCall } from "../../core/rules/command.ts";
import { identityOf, type Viewer } from "../../core/rules/visibility.ts";
import type { Failure, Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { displayKey, isReservedKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import { markdownLine, safeLine } from "../../core/text/safe-text.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import type { PromptFiles } from "../../flows/instructions.ts";

export interface CommandParts {
  readonly engine: Engine;
  readonly settings: Settings;
  /** Reads and restores instruction files. Absent: none enters a prompt. */
  readonly guidance?: PromptFiles | undefined;
  /** Checks whether a model with this name can run. A failure lists the valid names. */
  checkModel(name: string): Result<string>;
}

export interface CommandRequest extends CommandCall {
  readonly sender: { readonly channel: string; readonly id: string; readonly isOwner: boolean };
  readonly chatType: "direct" | "group" | "channel";
  readonly sessionKey: string;
  readonly route: Route;
  readonly accountId: string;
  /**
   * The operator who sent the command, if it did not come from a chat platform. The command is limited by the
   * operator's rights and by the session's rights.
   */
  readonly operator?: Extract<Viewer, { kind: "operator" }>;
}

export interface CommandAnswer {
  /** Markdown. */
  readonly text: string;
  readonly choices?: readonly Choice[];
  /** True if the sender may not give the command, or it is too late for it. It has changed nothing. */
  readonly isRefused?: boolean;
}

export interface CommandContext {
  readonly parts: CommandParts;
  readonly unit: Unit;
  readonly request: CommandRequest;
}

export interface ConversationContext extends CommandContext {
  readonly session: Session;
}

const NAME_CHARS_MAX = 60;
const TEXT_CHARS_MAX = 400;

type Masking = Pick<Unit, "redactor">;

/** Formats a name, a key or a value as code. */
export function code({ redactor }: Masking, text: string, charsMax = NAME_CHARS_MAX): string {
  const line = safeLine(redactor.mask(text)).replaceAll("`", "'").trim();
  return `\`${line === "" ? " " : cut(line, charsMax)}\``;
}

/** Formats a session key as code. The key is never shortened, because people copy it. */
export function keyCode(here: Pick<ConversationContext, "parts" | "session" | "unit">, key: string): string {
  return code(here.unit, displayKey(key, here.session.agentId, keyRulesOf(here.parts.settings)), 512);
}

/** Shortens a person's message to one escaped line. */
export function excerpt({ redactor }: Masking, text: string, charsMax = TEXT_CHARS_MAX): string {
  return markdownLine(redactor.line(text, charsMax));
}

/** Formats a number with its noun: `1 message`, `3 messages`. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Formats a failure as a sentence for the sender of the command. */
export function why({ error, hint }: Failure): string {
  const text = safeLine(hint === undefined ? error : `${error}. ${hint}`);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Returns the name of the sender in the format of settings and runs, `<channel>:<id>`. */
export function senderName({ sender }: CommandRequest): string {
  return `${sender.channel}:${sender.id}`;
}

/** Returns whether the sender of the command started this run. */
export function begunBy(request: CommandRequest, run: Pick<Run, "input">): boolean {
  return run.input.sender === senderName(request);
}

/**
 * Returns whether the sender may use commands that only owners may use in groups. If a direct chat shares its
 * conversation with groups, it counts as a group.
 */
export function isTrusted({ chatType, sender, sessionKey, operator }: CommandRequest): boolean {
  if (sender.isOwner || operator !== undefined) return true;
  return chatType === "direct" && !isReservedKey(sessionKey);
}

export function accessOf({ parts, unit }: CommandContext): AccessContext {
  return { db: unit.tx, settings: parts.settings };
}

/**
 * Returns the viewer with the rights of this conversation. If an operator sent the command, the operator's
 * rights limit the viewer, too.
 */
export async function viewerOf(here: ConversationContext): Promise<Viewer> {
  const { parts, unit, session, request } = here;
  const chain = await spawnChainOf(unit.tx, session);
  if (request.operator === undefined) return sessionViewer(chain, parts.settings);
  return { ...request.operator, as: identityOf(chain, parts.settings) };
}
