// Asks the owner for permission on behalf of an agent: a row that every process shows and answers, and a note
// in the chat that the work came from.
// PD1: in each of these cases a request is denied: no answer in time, a run that ends, a gateway that stops,
//      a store that fails.
// PD2: a request is decided once, whoever answers first and in whichever process.

import { spawnChainOf } from "../access/spawn-chain.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { PermissionDecision, PermissionQuestion } from "../core/shapes/permission.ts";
import { isInHouse } from "../core/shapes/route.ts";
import { quoted } from "../core/text/cut.ts";
import { safeLine } from "../core/text/safe-text.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import {
  decidePermission,
  decisionOf,
  deletePermission,
  insertPermission,
  openPermissions,
} from "../store/queries/permissions.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import { pause } from "../world/pause.ts";
import type { Log, World } from "../world.ts";
import { type OutboxListener, queueNote } from "./delivery/outbox.ts";

const OPEN_MAX = 200;
/** Maximum number of open requests of one session, so that one agent cannot block others. */
const OPEN_OF_SESSION_MAX = 20;
const TITLE_MAX_CHARS = 300;
const DETAIL_MAX_CHARS = 4_000;
/** Arguments in the note to a chat; the page and the command line show all of them. */
const NOTE_DETAIL_MAX_CHARS = 400;
/** A waiting agent reads its request at this interval: events are hints, and one may be lost. */
const LOOK_AGAIN_MS = 10_000;
/** Characters of an id that are enough to answer in a chat. */
const SHORT_ID_CHARS = 8;

export interface PermissionParts {
  readonly engine: Pick<Engine, "commit" | "store" | "bus" | "now">;
  readonly world: Pick<World, "clock">;
  /** Notified of a note to a chat. */
  readonly outbound: OutboxListener;
}

export interface PermissionRequest {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  /** The attempt of the run that asks. A later attempt asks again. */
  readonly attempt: number;
  readonly title: string;
  readonly kind?: string | undefined;
  readonly rawInput: unknown;
  readonly askMs: number;
}

/** Returns the id with which people answer a request in a chat. */
export function shortPermissionId(id: string): string {
  return id.slice(0, SHORT_ID_CHARS);
}

function noteText({ id, agentId, title, detail }: PermissionQuestion, askMs: number): string {
  const shortId = shortPermissionId(id);
  const shown = detail === undefined ? "" : `\n${safeLine(detail).slice(0, NOTE_DETAIL_MAX_CHARS)}`;
  return (
    `Agent ${agentId} asks for permission: ${safeLine(title)}${shown}\n\n` +
    `An owner answers with /allow ${shortId} or /deny ${shortId} within ${minutes(askMs)}.`
  );
}

function minutes(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.round(ms / 60_000)} minutes`;
}

/** Writes a note to the chat of the session at the top of the requester's spawn chain, if it has one. */
async function noteInChat(
  { outbound }: PermissionParts,
  unit: Unit,
  question: PermissionQuestion,
): Promise<void> {
  const session = await getSession(unit.tx, question.sessionKey);
  const top = session && (await spawnChainOf(unit.tx, session)).at(-1);
  const root = top && (await getSession(unit.tx, top.key));
  const route = root?.lastRoute;
  if (root === undefined || route === undefined || isInHouse(route)) return;
  const text = noteText(question, question.expiresAt - question.askedAt);
  await queueNote({ outbound }, unit, { sessionKey: root.key, route, text, about: "permission" });
}

/** Stores a request. Returns undefined if too many are open. */
async function open(
  parts: PermissionParts,
  unit: Unit,
  { attempt, askMs, rawInput, title, kind, sessionKey, agentId, runId }: PermissionRequest,
): Promise<PermissionQuestion | undefined> {
  const { redactor, now: askedAt } = unit;
  const known = await openPermissions(unit.tx, askedAt);
  const ofSession = known.filter((one) => one.sessionKey === sessionKey);
  if (known.length >= OPEN_MAX || ofSession.length >= OPEN_OF_SESSION_MAX) return undefined;
  const question: PermissionQuestion = {
    id: unit.newId(),
    ...{ sessionKey, agentId, runId, title: redactor.cut(title, TITLE_MAX_CHARS) },
    ...optional({
      kind,
      detail: rawInput == null ? undefined : redactor.cut(JSON.stringify(rawInput), DETAIL_MAX_CHARS),
    }),
    ...{ askedAt, expiresAt: askedAt + askMs },
  };
  await insertPermission(unit.tx, question, attempt);
  await noteInChat(parts, unit, question);
  unit.publish({ kind: "permission", id: question.id, sessionKey, change: "asked" });
  return question;
}

/** Resolves with the decision, or with a denial when the request expires, is gone or the wait is aborted. */
async function decided(
  { engine, world }: PermissionParts,
  { id, expiresAt }: PermissionQuestion,
  signal: AbortSignal,
): Promise<PermissionDecision> {
  while (!signal.aborted) {
    const news = new AbortController();
    const stop = engine.bus.subscribe((event) => {
      if (event.kind === "permission" && event.id === id) news.abort();
    });
    try {
      const decision = await decisionOf(engine.store.db, id);
      const leftMs = expiresAt - engine.now();
      if (decision === "gone" || (decision === undefined && leftMs <= 0)) return "deny";
      if (decision !== undefined) return decision;
      await pause(world.clock, Math.min(leftMs, LOOK_AGAIN_MS), AbortSignal.any([signal, news.signal]));
    } finally {
      stop();
    }
  }
  return "deny";
}

/** Deletes a request whose agent has its decision. A row that stays is not open, and is deleted later. */
async function close({ engine }: PermissionParts, { id, sessionKey }: PermissionQuestion): Promise<void> {
  await engine.commit(async (unit) => {
    await deletePermission(unit.tx, id);
    unit.publish({ kind: "permission", id, sessionKey, change: "settled" });
  });
}

/** Resolves with the owner's decision, or with a denial if the owner does not decide in time (PD1). */
export async function askPermission(
  parts: PermissionParts,
  asked: PermissionRequest,
  { signal, log }: { signal: AbortSignal; log: Log },
): Promise<PermissionDecision> {
  const { engine } = parts;
  if (signal.aborted) return "deny";
  try {
    const question = await engine.commit((unit) => open(parts, unit, asked));
    if (question === undefined) return "deny";
    const { id, title: what } = question;
    log.warn({ permissionId: id, what }, "an agent asks for permission; answer with: parley permissions");
    const decision = await decided(parts, question, signal);
    // Not awaited: a run that is stopped ends without waiting for the store.
    close(parts, question).catch((error: unknown) => log.debug({ err: error }, "a permission request stays"));
    return decision;
  } catch (error) {
    log.error({ err: error }, "a permission request failed and counts as denied");
    return "deny";
  }
}

/** The answer to a request. */
export interface PermissionAnswer {
  /** Its id, or the beginning of it. */
  readonly id: string;
  readonly decision: PermissionDecision;
  /** Shown to operators. */
  readonly by: string;
}

/** Answers an open request of a session that the caller covers (PD2). */
export async function answerPermission(
  unit: Unit,
  { id, decision, by }: PermissionAnswer,
  covers: (sessionKey: string) => boolean,
): Promise<Result<PermissionQuestion>> {
  const open = (await openPermissions(unit.tx, unit.now)).filter((one) => covers(one.sessionKey));
  const [found, ...others] = open.filter((one) => one.id === id || (id.length >= 4 && one.id.startsWith(id)));
  if (found !== undefined && others.length > 0) {
    return fail(
      "permission_not_found",
      `${others.length + 1} permission requests begin with ${quoted(id, 80)}`,
      {
        hint: "Give more of the id.",
      },
    );
  }
  if (found === undefined || !(await decidePermission(unit.tx, found.id, { decision, by, atMs: unit.now }))) {
    return fail("permission_not_found", `there is no open permission request ${quoted(id, 80)}`, {
      hint: "It may have been answered, or have expired; permissions.list lists the open ones.",
    });
  }
  unit.publish({ kind: "permission", id: found.id, sessionKey: found.sessionKey, change: "settled" });
  return ok(found);
}
