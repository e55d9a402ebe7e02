// Owns the table of incoming channel messages, including those that wait to become part of a run. Each
// message version is one row. If a platform sends it again, even after a restart, the insert finds the row.
// Messages that are to be joined into a run are locked, so that only one process joins them. For platforms
// that do not store the position up to which an account has been read, it is stored here.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import { held } from "../../locks.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";
import { deletePiece } from "../delete-piece.ts";

/** Identifies one version of a message. `edit` is empty for the original. */
export type InboundId = Pick<RecordOf<"inbound">, "channel" | "accountId" | "chatId" | "messageId" | "edit">;

/**
 * `pending` until the message is part of a run. `refused`: too many messages were waiting. `ignored`: the
 * message contained nothing new.
 */
export type InboundState = "pending" | "done" | "refused" | "ignored";

const COLUMNS = ["seq", "state", "edit", "body_json as body", "received_at as receivedAt"] as const;

export interface InboundRow {
  readonly seq: number;
  readonly state: string;
  readonly edit: string;
  /**
   * JSON. When the message is no longer pending, it contains only the text that later edits are compared
   * with.
   */
  readonly body: string;
  readonly receivedAt: number;
}

type NewInbound = InboundId &
  Pick<RecordOf<"inbound">, "burstKey" | "receivedAt"> & { readonly body: string };

const KEY = ["channel", "account_id", "chat_id", "message_id", "edit"] as const;
const INBOUND = recordsOf<InboundId & Pick<RecordOf<"inbound">, "burstKey" | "receivedAt" | "state">>()(
  "inbound",
  {
    key: KEY,
    columns: ["burst_key", "received_at", "state"],
  },
);

const PENDING = sql.lit("pending");

const versionsOf = (db: Db, { channel, accountId, chatId, messageId }: Omit<InboundId, "edit">) =>
  db
    .selectFrom("inbound")
    .select(COLUMNS)
    .where((eb) => eb.and({ channel, account_id: accountId, chat_id: chatId, message_id: messageId }));

/**
 * Stores a waiting message and returns its position. Returns undefined, and stores nothing, if the message is
 * known.
 */
export async function insertInbound(tx: Tx, message: NewInbound): Promise<number | undefined> {
  const row = await tx
    .insertInto("inbound")
    .values({ ...INBOUND.write({ ...message, state: "pending" }), body_json: message.body })
    .onConflict((conflict) => conflict.columns(KEY).doNothing())
    .returning("seq")
    .executeTakeFirst();
  return row?.seq;
}

/** Returns whether this message version has arrived before. */
export async function isKnown(db: Db, id: InboundId): Promise<boolean> {
  return (await versionsOf(db, id).where("edit", "=", id.edit).executeTakeFirst()) !== undefined;
}

/** Returns the other versions of a message in order of arrival. Locks them until the transaction ends. */
export function otherVersions(tx: Tx, id: InboundId): Promise<InboundRow[]> {
  return held(tx, versionsOf(tx, id).where("edit", "<>", id.edit).orderBy("seq")).execute();
}

export async function burstOf(tx: Tx, burstKey: string) {
  const row = await tx
    .selectFrom("inbound")
    .select((eb) => [
      eb.fn.countAll<number>().as("count"),
      eb.fn.min<number | null>("received_at").as("firstAt"),
      sql<number>`coalesce(sum(length(body_json)), 0)`.as("chars"),
    ])
    .where("state", "=", PENDING)
    .where("burst_key", "=", burstKey)
    .executeTakeFirstOrThrow();
  return { ...row, firstAt: row.firstAt ?? undefined };
}

/** Returns the waiting messages of a key in order. Locks them until the transaction ends. */
export function pendingOf(tx: Tx, burstKey: string): Promise<InboundRow[]> {
  const waiting = tx.selectFrom("inbound").select(COLUMNS).where("state", "=", PENDING);
  return held(tx, waiting.where("burst_key", "=", burstKey).orderBy("seq")).execute();
}

/** Replaces the text of a waiting message. */
export async function rewriteInbound(tx: Tx, seq: number, body: string): Promise<void> {
  await tx.updateTable("inbound").set({ body_json: body }).where("seq", "=", seq).execute();
}

/** Stores the final state of a message, and the body that later edits are compared with. */
export async function settleInbound(
  tx: Tx,
  seq: number,
  settled: {
    readonly state: Exclude<InboundState, "pending">;
    readonly body: string;
    readonly runId?: string;
  },
): Promise<void> {
  const { state, body, runId } = settled;
  await tx
    .updateTable("inbound")
    .set({ state, body_json: body, ...optional({ run_id: runId }) })
    .where("seq", "=", seq)
    .execute();
}

/** Deletes settled messages that arrived before this time: see `deletePiece`. */
export function pruneInbound(tx: Tx, beforeMs: number): Promise<boolean> {
  const which = sql`received_at < ${beforeMs} and state <> ${PENDING} order by received_at`;
  return deletePiece(tx, "inbound", ["seq"], which);
}

type Cursor = RecordOf<"channel_cursors">;
/** Identifies a stored position of an account. */
type CursorId = Omit<Cursor, "value">;

const CURSORS = recordsOf<Cursor>()("channel_cursors", {
  key: ["channel", "account_id", "name"],
  columns: ["value"],
});

export const getCursor = async (db: Db, id: CursorId) => (await CURSORS.find(db, id))?.value;

export const putCursor = (tx: Tx, id: CursorId, value: string) => CURSORS.put(tx, { ...id, value });
