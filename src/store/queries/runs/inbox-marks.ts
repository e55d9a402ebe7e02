// Owns the marks of messages in inboxes: when a message was offered to its program, acknowledged, and
// answered or expired; and of messages to peers: when the peer accepted them. Each mark is set only once. A
// message that expects no answer, for example a notice, counts as ended from the start.

import { sql } from "kysely";
import { hasMark, isSessionMessage, receiptOf } from "../../../core/rules/receipt.ts";
import type { InboxMark, InboxOutcome, Receipt, Run } from "../../../core/shapes/run.ts";
import { recordsOf } from "../../records.ts";
import { changesRows, countRows, type Db, type Tx } from "../../sql.ts";

type Marked = Pick<Run, "runId" | "sessionKey" | "sessionId">;

const COLUMNS = ["offered_at", "in_turn_at", "ended_at", "outcome"] as const;
const MARKS = recordsOf<InboxMark>()("inbox_marks", { key: [], columns: COLUMNS });
const MARKED = recordsOf<Marked & InboxMark>()("inbox_marks", {
  key: ["run_id"],
  columns: ["session_key", "session_id", ...COLUMNS],
});

/** Returns the mark in a row. */
export const toMark = MARKS.read;

/** Adds the mark of a message. Returns false if there is one. */
export const insertMark = (tx: Tx, { runId, sessionKey, sessionId }: Marked, mark: InboxMark) =>
  MARKED.add(tx, { runId, sessionKey, sessionId, ...mark });

/** Returns the marks of these messages, by run id. */
export async function marksOf(db: Db, runIds: readonly string[]): Promise<Map<string, InboxMark>> {
  if (runIds.length === 0) return new Map();
  const rows = await db.selectFrom("inbox_marks").selectAll().where("run_id", "in", runIds).execute();
  return new Map(rows.map((row) => [row.run_id, toMark(row)]));
}

/**
 * Marks messages as offered or, which implies it, as acknowledged by their program. Returns those that had
 * not been before.
 */
export async function advanceMarks(
  tx: Tx,
  runIds: readonly string[],
  state: "offered" | "in_turn",
  at: number,
): Promise<string[]> {
  if (runIds.length === 0) return [];
  const rows = await tx
    .updateTable("inbox_marks")
    .set({ offered_at: sql<number>`coalesce(offered_at, ${at})`, [`${state}_at`]: at })
    .where("run_id", "in", runIds)
    .where(`${state}_at`, "is", null)
    .returning("run_id")
    .execute();
  return rows.map((row) => row.run_id);
}

/**
 * Ends a message. An answer also counts as acknowledgement. Returns false if the message had already ended.
 */
export function endMark(tx: Tx, runId: string, outcome: InboxOutcome, at: number): Promise<boolean> {
  const readAt = outcome === "expired" ? null : at;
  const open = tx.updateTable("inbox_marks").where("run_id", "=", runId).where("ended_at", "is", null);
  const end = open.set({
    offered_at: sql<number | null>`coalesce(offered_at, ${readAt})`,
    in_turn_at: sql<number | null>`coalesce(in_turn_at, ${readAt})`,
    ended_at: at,
    outcome,
  });
  return changesRows(tx, end);
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
export const countUnoffered = (db: Db, inbox: Omit<Marked, "runId">) =>
  // The first condition lets the query use an index. It follows from the second one.
  countRows(shownIn(db, inbox).where("mark.in_turn_at", "is", null).where("mark.offered_at", "is", null));

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

/**
 * Returns the receipts of the messages that these runs delivered, by run id. Runs that delivered no message
 * between sessions are missing.
 */
export async function receiptsOf(db: Db, runs: readonly Run[]): Promise<Map<string, Receipt>> {
  const messages = runs.filter(isSessionMessage);
  const marked = messages.filter(hasMark);
  const marks = await marksOf(
    db,
    marked.map(({ runId }) => runId),
  );
  return new Map(
    messages.flatMap((run) => {
      const receipt = receiptOf({ run, mark: marks.get(run.runId) });
      return receipt === undefined ? [] : [[run.runId, receipt] as const];
    }),
  );
}
