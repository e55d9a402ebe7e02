// Reads how the transcript of a fork continues another one. The shared messages are stored once, in the
// transcript in which they were written.
// FK1: the transcript of a fork consists of the other transcript up to and including `forked_at`, and of its
//      own entries. The first own entry is a marker. A transcript without this marker is not a fork, and
//      reading it needs no extra query.

import { sql } from "kysely";
import { toolCallsOf } from "../../../core/shapes/message.ts";
import type { Db, Tx } from "../../sql.ts";
import { IS_INHERITED } from "./inherited.ts";
import { ENTRY_COLUMNS, readMessage } from "./stored-entry.ts";

/**
 * Maximum number of parts that are read. It exceeds any real depth of forks, and ends the search if damaged
 * data contains a cycle.
 */
export const PARTS_MAX = 16;

/** Maximum number of results of a message's calls that are looked for. */
const RESULTS_MAX = 1_000;

/** The part of a transcript that is stored under one session id. */
export interface TranscriptPart {
  readonly sessionId: string;
  /** Position of the last entry of the part. Undefined: the part has no end yet. */
  readonly upTo?: number;
}

/** Selects the entries of a part. */
export function entriesIn(db: Db, { sessionId, upTo }: TranscriptPart) {
  const query = db.selectFrom("messages").where("session_id", "=", sessionId);
  return upTo === undefined ? query : query.where("seq", "<=", upTo);
}

/** Returns the id of the first own entry of a fork's transcript. */
export function forkMarkerId(sessionId: string): string {
  return `${sessionId}:fork`;
}

/**
 * Returns the part that precedes a transcript's own entries, or undefined if the transcript is not a fork.
 */
export async function partBefore(db: Db, sessionId: string): Promise<TranscriptPart | undefined> {
  return await db
    .selectFrom("session_ids")
    .innerJoin("messages", "messages.id", "session_ids.forked_at")
    .select(["messages.session_id as sessionId", "messages.seq as upTo"])
    .where("session_ids.session_id", "=", sessionId)
    .executeTakeFirst();
}

/** Returns the parts of a transcript, oldest first. The last one holds its own entries. */
export async function partsOf(db: Db, sessionId: string): Promise<readonly TranscriptPart[]> {
  const parts: TranscriptPart[] = [{ sessionId }];
  for (let first = sessionId; parts.length < PARTS_MAX; ) {
    const before = await partBefore(db, first);
    if (before === undefined) break;
    parts.unshift(before);
    first = before.sessionId;
  }
  return parts;
}

/**
 * Returns the part of a transcript that has this message, and the following parts. Returns an empty list if
 * no part has the message.
 */
export async function partsFrom(
  db: Db,
  sessionId: string,
  message: { readonly seq: number; readonly session_id: string },
): Promise<readonly TranscriptPart[]> {
  const { seq, session_id } = message;
  if (session_id === sessionId) return [{ sessionId }];
  const parts = await partsOf(db, sessionId);
  const at = parts.findIndex((one) => one.sessionId === session_id && seq <= (one.upTo ?? seq));
  return at < 0 ? [] : parts.slice(at);
}

/** The last message that a fork shares. */
export interface ForkPoint {
  readonly sessionId: string;
  readonly messageId: string;
}

interface PointRow {
  readonly id: string;
  readonly seq: number;
  readonly sessionId: string;
  readonly role: string;
}

function pointsIn(db: Db) {
  return db
    .selectFrom("messages")
    .select(["id", "seq", "session_id as sessionId", "role"])
    .where("role", "!=", "compaction");
}

/** Returns the message, if it belongs to a transcript that the session has or had. */
async function findMessage(
  db: Db,
  session: { readonly key: string; readonly sessionId: string },
  messageId: string,
): Promise<PointRow | undefined> {
  const row = await pointsIn(db).where("id", "=", messageId).executeTakeFirst();
  if (row === undefined) return undefined;
  const owner = await db
    .selectFrom("session_ids")
    .select("session_key")
    .where("session_id", "=", row.sessionId)
    .where(sql<boolean>`not ${IS_INHERITED}`)
    .executeTakeFirst();
  if (owner?.session_key === session.key) return row;
  const place = { seq: row.seq, session_id: row.sessionId };
  return (await partsFrom(db, session.sessionId, place)).length > 0 ? row : undefined;
}

/**
 * Returns the last row that a fork at `row` shares, or undefined if it shares none. A message with tool calls
 * is shared only together with the results of all its calls. If a result is missing, the fork ends before
 * that message.
 */
async function wholeCalls(db: Db, row: PointRow): Promise<PointRow | undefined> {
  if (row.role === "user") return row;
  const near = pointsIn(db).where("session_id", "=", row.sessionId);
  const caller = await near
    .where("role", "=", "assistant")
    .where("seq", "<=", row.seq)
    .orderBy("seq", "desc")
    .limit(1)
    .executeTakeFirst();
  if (caller === undefined) return row;
  const stored = db.selectFrom("messages").select(ENTRY_COLUMNS).where("seq", "=", caller.seq);
  const calls = toolCallsOf(readMessage(await stored.executeTakeFirstOrThrow())).length;
  if (calls === 0) return row;
  // All results of a message follow it, and each call has at most one, so counting them is enough.
  const next = near.where("role", "=", "assistant").where("seq", ">", caller.seq).orderBy("seq").limit(1);
  const end = (await next.executeTakeFirst())?.seq ?? Number.MAX_SAFE_INTEGER;
  const results = await near
    .where("role", "=", "toolResult")
    .where("seq", ">", caller.seq)
    .where("seq", "<", end)
    .orderBy("seq")
    .limit(RESULTS_MAX)
    .execute();
  if (results.length >= calls) return results.at(-1);
  return near.where("seq", "<", caller.seq).orderBy("seq", "desc").limit(1).executeTakeFirst();
}

/**
 * Finds the last message that a fork at this message shares. "missing": the session does not have this
 * message. "nothing": the fork would share no message.
 */
export async function forkPointAt(
  db: Db,
  session: { readonly key: string; readonly sessionId: string },
  messageId: string,
): Promise<ForkPoint | "missing" | "nothing"> {
  const row = await findMessage(db, session, messageId);
  if (row === undefined) return "missing";
  const last = await wholeCalls(db, row);
  return last === undefined ? "nothing" : { sessionId: last.sessionId, messageId: last.id };
}

/** Links the empty transcript of a new fork to the message after which it continues. */
export async function linkFork(
  tx: Tx,
  sessionId: string,
  { from, at }: { readonly from: string; readonly at: string },
): Promise<void> {
  await tx
    .updateTable("session_ids")
    .set({ forked_from: from, forked_at: at })
    .where("session_id", "=", sessionId)
    .execute();
}
