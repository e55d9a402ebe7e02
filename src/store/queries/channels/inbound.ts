// Owns the table of incoming channel messages, including those that wait to become part of a run. Each
// message version is one row. If a platform sends it again, even after a restart, the insert finds the row.
// Messages that are to be joined into a run are locked, so that only one process joins them.

import { type Selectable, sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import { held } from "../../locks.ts";
import type { InboundTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";

/** Identifies one version of a message. */
export interface InboundId {
  readonly channel: string;
  readonly accountId: string;
  readonly chatId: string;
  readonly messageId: string;
  /** Version of an edited message; empty for the original. */
  readonly edit: string;
}

/**
 * `pending` until the message is part of a run. `refused`: too many messages were waiting. `ignored`: the
 * message contained nothing new.
 */
export type InboundState = "pending" | "done" | "refused" | "ignored";

export interface InboundRow {
  readonly seq: number;
  readonly state: InboundState;
  /**
   * JSON. When the message is no longer pending, it contains only the text that later edits are compared
   * with.
   */
  readonly body: string;
  readonly receivedAt: number;
}

interface NewInbound extends InboundId {
  readonly burstKey: string;
  readonly body: string;
  readonly receivedAt: number;
}

/** Maximum number of rows that one cleanup deletes. */
const PRUNED_MAX = 5_000;
const PENDING = sql.lit("pending");

function toInbound(row: Selectable<InboundTable>): InboundRow {
  const { seq, state, body_json: body, received_at: receivedAt } = row;
  return { seq, state: state as InboundState, body, receivedAt };
}

function versionsOf(db: Db, id: Omit<InboundId, "edit">) {
  return db
    .selectFrom("inbound")
    .selectAll()
    .where("channel", "=", id.channel)
    .where("account_id", "=", id.accountId)
    .where("chat_id", "=", id.chatId)
    .where("message_id", "=", id.messageId);
}

/**
 * Stores a waiting message and returns its position. Returns undefined, and stores nothing, if the message is
 * known.
 */
export async function insertInbound(tx: Tx, message: NewInbound): Promise<number | undefined> {
  const row = await tx
    .insertInto("inbound")
    .values({
      channel: message.channel,
      account_id: message.accountId,
      chat_id: message.chatId,
      message_id: message.messageId,
      edit: message.edit,
      state: "pending",
      burst_key: message.burstKey,
      body_json: message.body,
      run_id: null,
      received_at: message.receivedAt,
    })
    .onConflict((conflict) =>
      conflict.columns(["channel", "account_id", "chat_id", "message_id", "edit"]).doNothing(),
    )
    .returning("seq")
    .executeTakeFirst();
  return row?.seq;
}

/** Returns whether this message version has arrived before. */
export async function isKnown(db: Db, id: InboundId): Promise<boolean> {
  return (await versionsOf(db, id).where("edit", "=", id.edit).executeTakeFirst()) !== undefined;
}

/** Returns the other versions of a message in order of arrival. Locks them until the transaction ends. */
export async function otherVersions(tx: Tx, id: InboundId): Promise<(InboundRow & { edit: string })[]> {
  const rows = await held(tx, versionsOf(tx, id).where("edit", "<>", id.edit).orderBy("seq")).execute();
  return rows.map((row) => ({ ...toInbound(row), edit: row.edit }));
}

/** Messages that wait under the same key. */
interface Burst {
  readonly count: number;
  /** Total number of characters in their bodies. */
  readonly chars: number;
  /** Time at which the first message arrived. */
  readonly firstAt: number | undefined;
}

export async function burstOf(tx: Tx, burstKey: string): Promise<Burst> {
  const row = await tx
    .selectFrom("inbound")
    .select((eb) => [
      eb.fn.countAll<number>().as("n"),
      eb.fn.min("received_at").as("first_at"),
      sql<number>`coalesce(sum(length(body_json)), 0)`.as("chars"),
    ])
    .where("state", "=", PENDING)
    .where("burst_key", "=", burstKey)
    .executeTakeFirstOrThrow();
  const firstAt = row.first_at as number | null;
  return {
    count: Number(row.n),
    chars: Number(row.chars),
    firstAt: firstAt === null ? undefined : Number(firstAt),
  };
}

/** Returns the waiting messages of a key in order. Locks them until the transaction ends. */
export async function pendingOf(tx: Tx, burstKey: string): Promise<InboundRow[]> {
  const query = tx
    .selectFrom("inbound")
    .selectAll()
    .where("state", "=", PENDING)
    .where("burst_key", "=", burstKey)
    .orderBy("seq");
  return (await held(tx, query).execute()).map(toInbound);
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

/** Deletes a limited number of settled messages that arrived before this time. */
export async function pruneInbound(tx: Tx, beforeMs: number): Promise<void> {
  await tx
    .deleteFrom("inbound")
    .where("seq", "in", (eb) =>
      eb
        .selectFrom("inbound")
        .select("seq")
        .where("received_at", "<", beforeMs)
        .where("state", "<>", PENDING)
        .orderBy("received_at")
        .limit(PRUNED_MAX),
    )
    .execute();
}
