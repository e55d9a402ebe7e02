// Owns what a command is done with, who may do what, and how names and figures are written in an answer.
// MO1: what others wrote (labels, names, texts) stands in an answer as code or as plain words on one line: it
//      is no link, no mention and no heading there.

import type { CommandCall } from "../../core/command.ts";
import type { Failure, Result } from "../../core/errors.ts";
import type { Route } from "../../core/route.ts";
import type { Run } from "../../core/run.ts";
import { safeLine } from "../../core/safe-text.ts";
import type { Session } from "../../core/session.ts";
import { displayKey, isReservedKey } from "../../core/session-key.ts";
import type { Settings } from "../../core/settings.ts";
import { identityOf, type Viewer } from "../../core/visibility.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { type AccessContext, keyRulesOf, sessionViewer } from "../../flows/access.ts";
import type { Outbound } from "../../flows/outbox.ts";
import { spawnChainOf } from "../../flows/spawn-chain.ts";

/** What commands are done with. */
export interface CommandParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly outbound: Outbound;
  /** Whether a model of this name could run; a failure lists valid ones. */
  checkModel(name: string): Result<string>;
}

/** A command with who gave it, and where. */
export interface CommandRequest extends CommandCall {
  readonly sender: { readonly channel: string; readonly id: string; readonly isOwner: boolean };
  readonly chatType: "direct" | "group" | "channel";
  /** Whose conversation it is about. */
  readonly sessionKey: string;
  /** The place where it was given. */
  readonly route: Route;
  readonly accountId: string;
  /** An operator's own rights, which count besides the session's. */
  readonly operator?: Extract<Viewer, { kind: "operator" }>;
}

/** A command at the moment at which it is done. */
export interface CommandContext {
  readonly parts: CommandParts;
  readonly unit: Unit;
  readonly request: CommandRequest;
}

/** The same about a conversation that exists. */
export interface Here extends CommandContext {
  readonly session: Session;
}

const NAME_CHARS_MAX = 60;
const TEXT_CHARS_MAX = 400;
/** So many characters are read for each one of an excerpt: blanks that follow each other become one. */
const BLANKS_MAX = 4;

type Masking = Pick<Unit, "redactor">;

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}

/** A name, key or value as code. */
export function code({ redactor }: Masking, text: string, charsMax = NAME_CHARS_MAX): string {
  const line = safeLine(redactor.mask(text)).replaceAll("`", "'").trim();
  return `\`${line === "" ? " " : cut(line, charsMax)}\``;
}

/** A key in full: people copy it. */
export function keyCode(here: Pick<Here, "parts" | "session" | "unit">, key: string): string {
  return code(here.unit, displayKey(key, here.session.agentId, keyRulesOf(here.parts.settings)), 512);
}

/** A person's message on one line. */
export function excerpt({ redactor }: Masking, text: string, charsMax = TEXT_CHARS_MAX): string {
  const { text: masked } = redactor.beginning(text, charsMax * BLANKS_MAX);
  const flat = masked.replaceAll(/\s+/g, " ").trim();
  return safeLine(cut(flat, charsMax)).replaceAll(/[`*_~[\]<>@#|\\]/g, "\\$&");
}

/** `1 message`, `3 messages`. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Why something was not done, in words for whoever asked. */
export function why({ error, hint }: Failure): string {
  const text = safeLine(hint === undefined ? error : `${error}. ${hint}`);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Who gave the command, as settings and runs name people. */
export function senderName({ sender }: CommandRequest): string {
  return `${sender.channel}:${sender.id}`;
}

/** Whether a run was begun by whoever gave the command. */
export function begunBy(request: CommandRequest, run: Pick<Run, "input">): boolean {
  return run.input.sender === senderName(request);
}

/**
 * Whether somebody may do here what in groups is for owners only. A direct chat whose conversation groups
 * share is no way round that.
 */
export function isTrusted({ chatType, sender, sessionKey, operator }: CommandRequest): boolean {
  if (sender.isOwner || operator !== undefined) return true;
  return chatType === "direct" && !isReservedKey(sessionKey);
}

export function accessOf({ parts, unit }: CommandContext): AccessContext {
  return { db: unit.tx, settings: parts.settings };
}

/** The eyes of the conversation; an operator's own rights narrow them. */
export async function viewerOf(here: Here): Promise<Viewer> {
  const { parts, unit, session, request } = here;
  const chain = await spawnChainOf(unit.tx, session);
  if (request.operator === undefined) return sessionViewer(chain, parts.settings);
  return { ...request.operator, as: identityOf(chain, parts.settings) };
}
