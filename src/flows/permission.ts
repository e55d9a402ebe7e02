// Stores permission requests of agents and their answers, and announces each request in the chat in which the
// work was requested.
// PD2: a request is decided once: the first answer counts, in whatever process it arrives.

import { spawnChainOf } from "../access/spawn-chain.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { PermissionDecision, PermissionQuestion } from "../core/shapes/permission.ts";
import { isInHouse } from "../core/shapes/route.ts";
import { cut, quoted } from "../core/text/cut.ts";
import { markdownLine } from "../core/text/safe-text.ts";
import type { Unit } from "../engine/unit.ts";
import {
  decidePermission,
  deletePermission,
  insertPermission,
  openPermissions,
} from "../store/queries/permissions.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import { placeOfRun } from "./conversation/party.ts";
import { type OutboxListener, queueNote } from "./delivery/outbox.ts";

const OPEN_MAX = 200;
/** Maximum number of open requests of one session, so that one agent cannot block others. */
const OPEN_OF_SESSION_MAX = 20;
const TITLE_MAX_CHARS = 300;
const DETAIL_MAX_CHARS = 4_000;
/** Maximum length of the arguments in the note to a chat. The page and the command line show them in full. */
const NOTE_DETAIL_MAX_CHARS = 400;
/** Number of characters of an id that people write to answer in a chat. */
const SHORT_ID_CHARS = 8;

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

/** Writes the note in Markdown. Title and arguments are escaped, so that they appear as they are. */
function noteText({ id, agentId, title, detail }: PermissionQuestion, askMs: number): string {
  const shortId = shortPermissionId(id);
  const shown = detail === undefined ? "" : `\n${markdownLine(cut(detail, NOTE_DETAIL_MAX_CHARS))}`;
  return (
    `Agent ${agentId} asks for permission: ${markdownLine(title)}${shown}\n\n` +
    `An owner answers with /allow ${shortId} or /deny ${shortId} within ${minutes(askMs)}.`
  );
}

function minutes(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.round(ms / 60_000)} minutes`;
}

/**
 * Writes a note to the chat that the work came from, if it came from a chat, even if other chats have written
 * to the same sessions since.
 */
async function noteInChat(
  ports: { readonly outbound: OutboxListener },
  unit: Unit,
  question: PermissionQuestion,
): Promise<void> {
  const asker = await getSession(unit.tx, question.sessionKey);
  const run = await getRun(unit.tx, question.runId);
  for (const { key } of asker === undefined ? [] : await spawnChainOf(unit.tx, asker)) {
    const session = await getSession(unit.tx, key);
    if (session === undefined) return;
    const route = placeOfRun(session, key === asker?.key ? run : undefined) ?? session.spawn?.route;
    if (route === undefined) continue;
    const text = noteText(question, question.expiresAt - question.askedAt);
    if (!isInHouse(route))
      await queueNote(ports, unit, { sessionKey: key, route, text, about: "permission" });
    return;
  }
}

/** Stores a request. Returns undefined if too many are open. */
export async function openPermission(
  ports: { readonly outbound: OutboxListener },
  unit: Unit,
  { attempt, askMs, rawInput, title, kind, sessionKey, agentId, runId }: PermissionRequest,
): Promise<PermissionQuestion | undefined> {
  const { redactor, now: askedAt } = unit;
  const known = await openPermissions(unit.tx, askedAt);
  const ofSession = known.filter((one) => one.sessionKey === sessionKey);
  if (known.length >= OPEN_MAX || ofSession.length >= OPEN_OF_SESSION_MAX) return undefined;
  const question: PermissionQuestion = {
    id: unit.newId(),
    sessionKey,
    agentId,
    runId,
    title: redactor.cut(title, TITLE_MAX_CHARS),
    ...optional({
      kind,
      detail: rawInput == null ? undefined : redactor.cut(JSON.stringify(rawInput), DETAIL_MAX_CHARS),
    }),
    askedAt,
    expiresAt: askedAt + askMs,
  };
  await insertPermission(unit.tx, question, attempt);
  await noteInChat(ports, unit, question);
  unit.publish({ kind: "permission", id: question.id, sessionKey, change: "asked" });
  return question;
}

/** Denies a request that nobody answered in time (PD2). */
export async function expirePermission(unit: Unit, id: string): Promise<void> {
  await decidePermission(unit.tx, id, { decision: "deny", by: "", atMs: unit.now });
}

/**
 * Deletes a request whose agent has received the decision. If this fails, the row stays, but it is not an
 * open request, and it is deleted later.
 */
export async function closePermission(
  unit: Unit,
  { id, sessionKey }: Pick<PermissionQuestion, "id" | "sessionKey">,
): Promise<void> {
  await deletePermission(unit.tx, id);
  unit.publish({ kind: "permission", id, sessionKey, change: "settled" });
}

/** The answer to a request. */
export interface PermissionAnswer {
  /** Id of the request, or the beginning of the id. */
  readonly id: string;
  readonly decision: PermissionDecision;
  /** Name of the person who answers, for operators. */
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
    const error = `${others.length + 1} permission requests begin with ${quoted(id, 80)}`;
    return fail("permission_not_found", error, { hint: "Give more of the id." });
  }
  if (found === undefined || !(await decidePermission(unit.tx, found.id, { decision, by, atMs: unit.now }))) {
    return fail("permission_not_found", `there is no open permission request ${quoted(id, 80)}`, {
      hint: "It may have been answered, or have expired.",
    });
  }
  unit.publish({ kind: "permission", id: found.id, sessionKey: found.sessionKey, change: "settled" });
  return ok(found);
}
