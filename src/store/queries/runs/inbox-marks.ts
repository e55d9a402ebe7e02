// Owns the marks of messages in inboxes: when a message was offered to its program, acknowledged, and
// answered or expired; and of messages to peers: when the peer accepted them. Each mark is set only once. A
// message that expects no answer, for example a notice, counts as ended from the start.

import { type Selectable, sql } from "kysely";
import type { InboxMark, InboxOutcome, Run } from "../../../core/shapes/run.ts";
import type { InboxMarkTable } from "../../schema/tables.ts";
import { type Db, present, type Tx } from "../../sql.ts";

type Marked = Pick<Run, "runId" | "sessionKey" | "sessionId">;

/** Adds a message to an inbox. Pass `endedAt` for a message that expects no answer. */
export async function insertMark(tx: Tx, run: Marked, endedAt: number | null): Promise<void> {
  const { runId, sessionKey, sessionId } = run;
  await tx
    .insertInto("inbox_marks")
    .values({
      run_id: runId,
      session_key: sessionKey,
      session_id: sessionId,
      offered_at: null,
      in_turn_at: null,
      ended_at: endedAt,
      outcome: null,
    })
    .execute();
}

/** The columns of a mark. */
type MarkColumns = Pick<Selectable<InboxMarkTable>, "offered_at" | "in_turn_at" | "ended_at" | "outcome">;

/** Returns the mark in a row. */
export function toMark({ offered_at, in_turn_at, ended_at, outcome }: MarkColumns): InboxMark {
  return {
    ...present("offeredAt", offered_at),
    ...present("inTurnAt", in_turn_at),
    ...present("endedAt", ended_at),
    ...present("outcome", outcome as InboxOutcome | null),
  };
}

/** Returns the marks of these messages, by run id. */
export async function marksOf(db: Db, runIds: readonly string[]): Promise<Map<string, InboxMark>> {
  if (runIds.length === 0) return new Map();
  const rows = await db.selectFrom("inbox_marks").selectAll().where("run_id", "in", runIds).execute();
  return new Map(rows.map((row) => [row.run_id, toMark(row)]));
}

/** Marks messages as offered. Returns those that had not been offered before. */
export async function offerMarks(tx: Tx, runIds: readonly string[], at: number): Promise<string[]> {
  if (runIds.length === 0) return [];
  const rows = await tx
    .updateTable("inbox_marks")
    .set({ offered_at: at })
    .where("run_id", "in", runIds)
    .where("offered_at", "is", null)
    .returning("run_id")
    .execute();
  return rows.map((row) => row.run_id);
}

/** Marks a message as accepted by its peer. Returns false if it was before. */
export async function offerToPeer(tx: Tx, run: Marked, at: number): Promise<boolean> {
  const done = await tx
    .insertInto("inbox_marks")
    .values({
      ...{ run_id: run.runId, session_key: run.sessionKey, session_id: run.sessionId },
      ...{ offered_at: at, in_turn_at: null, ended_at: null, outcome: null },
    })
    .onConflict((conflict) => conflict.column("run_id").doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Marks messages as acknowledged by their program. Returns those that had not been acknowledged before. */
export async function acknowledgeMarks(tx: Tx, runIds: readonly string[], at: number): Promise<string[]> {
  if (runIds.length === 0) return [];
  const rows = await tx
    .updateTable("inbox_marks")
    .set({ in_turn_at: at, offered_at: sql<number>`coalesce(offered_at, ${at})` })
    .where("run_id", "in", runIds)
    .where("in_turn_at", "is", null)
    .returning("run_id")
    .execute();
  return rows.map((row) => row.run_id);
}

/**
 * Ends a message. An answer also counts as acknowledgement. Returns false if the message had already ended.
 */
export async function endMark(tx: Tx, run: Marked, outcome: InboxOutcome, at: number): Promise<boolean> {
  const { runId, sessionKey, sessionId } = run;
  const read = outcome === "expired" ? null : at;
  const done = await tx
    .insertInto("inbox_marks")
    .values({
      run_id: runId,
      session_key: sessionKey,
      session_id: sessionId,
      offered_at: read,
      in_turn_at: read,
      ended_at: at,
      outcome,
    })
    .onConflict((conflict) =>
      conflict
        .column("run_id")
        .doUpdateSet((eb) => ({
          offered_at: eb.fn.coalesce("inbox_marks.offered_at", "excluded.offered_at"),
          in_turn_at: eb.fn.coalesce("inbox_marks.in_turn_at", "excluded.in_turn_at"),
          ended_at: at,
          outcome,
        }))
        .where("inbox_marks.ended_at", "is", null),
    )
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Returns the messages in an inbox that still wait for an answer, oldest first. */
export async function openMarks(db: Db, sessionKey: string): Promise<string[]> {
  const rows = await db
    .selectFrom("inbox_marks")
    .select("run_id")
    .where("session_key", "=", sessionKey)
    .where("ended_at", "is", null)
    .orderBy("run_id")
    .execute();
  return rows.map((row) => row.run_id);
}

/**
 * Returns the two newest messages from `requesterKey` that wait for an answer in the inbox of `targetKey`.
 * With `runId`: this message, if it is one of them.
 */
export async function openQuestions(
  db: Db,
  asked: { readonly requesterKey: string; readonly targetKey: string; readonly runId?: string },
): Promise<string[]> {
  const waiting = db
    .selectFrom("inbox_marks as mark")
    .innerJoin("runs", "runs.run_id", "mark.run_id")
    .innerJoin("flows", "flows.flow_id", "runs.flow_id")
    .select("mark.run_id")
    .where("mark.session_key", "=", asked.targetKey)
    .where("mark.ended_at", "is", null)
    .where("flows.requester_key", "=", asked.requesterKey)
    .where("runs.state", "=", "ok");
  const wanted = asked.runId === undefined ? waiting : waiting.where("mark.run_id", "=", asked.runId);
  const rows = await wanted.orderBy("runs.lane_seq", "desc").limit(2).execute();
  return rows.map((row) => row.run_id);
}

/** Selects the messages that an inbox shows. */
const shownIn = (db: Db, inbox: Omit<Marked, "runId">) =>
  db
    .selectFrom("inbox_marks as mark")
    .innerJoin("runs", "runs.run_id", "mark.run_id")
    .where("mark.session_key", "=", inbox.sessionKey)
    .where("mark.session_id", "=", inbox.sessionId)
    .where("runs.state", "=", "ok");

/** Returns whether an inbox contains a message that its program has not acknowledged. */
export async function hasUnread(db: Db, inbox: Omit<Marked, "runId">): Promise<boolean> {
  const query = shownIn(db, inbox).select("mark.run_id").where("mark.in_turn_at", "is", null);
  return (await query.limit(1).executeTakeFirst()) !== undefined;
}

/** Counts the messages of an inbox that were never offered to its program. */
export async function countUnoffered(db: Db, inbox: Omit<Marked, "runId">): Promise<number> {
  // The first condition lets the query use an index. It follows from the second one.
  const fresh = shownIn(db, inbox).where("mark.in_turn_at", "is", null);
  const query = fresh.where("mark.offered_at", "is", null);
  const { n } = await query.select((eb) => eb.fn.countAll<number>().as("n")).executeTakeFirstOrThrow();
  return Number(n);
}

/**
 * Deletes the marks of messages that need no receipt, for example notices. Call this when the inbox loses its
 * transcript.
 */
export async function dropNoticeMarks(tx: Tx, sessionKey: string): Promise<void> {
  await tx
    .deleteFrom("inbox_marks")
    .where("session_key", "=", sessionKey)
    .where("in_turn_at", "is", null)
    .where("outcome", "is", null)
    .execute();
}
