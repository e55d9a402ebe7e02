// Owns the answers to calls with an idempotency key.
// The same call with the same key gets the same answer, also after a restart.
// A key that its owner used with other parameters or for another method is a conflict.
// ID3: a key belongs to its owner. Equal keys of two owners are independent.
// ID4: a call that must not run twice reserves its key first, with the answer for a crash of its process. The
//      process replaces that answer; if it dies, the answer becomes final.

import { prepared } from "../prepared.ts";
import type { IdempotencyTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

export interface KeyedCall {
  readonly key: string;
  /** Owner of the key, a token or a device: a hash, never the token. */
  readonly owner: string;
  /** The row that an older version wrote for this call. These rows expire; this version writes none. */
  readonly older?: { readonly key: string; readonly caller: string };
  readonly method: string;
  readonly paramsHash: string;
}

/** Returns the stored form of a key with its owner. Keys of callers contain no control characters. */
export function ownedKey({ owner, key }: Pick<KeyedCall, "owner" | "key">): string {
  return `${owner}\n${key}`;
}

const ANSWER = prepared((db, { key, older }: { key: string; older: string }) =>
  db
    .selectFrom("idempotency")
    .select(["key", "caller", "method", "params_hash", "answer_json", "begun_by"])
    .where("key", "in", [key, older]),
);

export interface KnownAnswer {
  readonly answer: unknown;
  /** The process that still works on the call. `answer` applies if it dies. */
  readonly begunBy?: string;
}

/**
 * Returns the stored answer. `none`: not answered yet. `conflict`: the owner used the key for another method
 * or other parameters.
 */
export async function recallAnswer(db: Db, call: KeyedCall): Promise<"none" | "conflict" | KnownAnswer> {
  const { method, paramsHash, older } = call;
  const key = ownedKey(call);
  const { rows } = await ANSWER(db, { key, older: older?.key ?? key });
  const row = rows.find((one) => one.key === key) ?? rows.find((one) => one.caller === older?.caller);
  if (row === undefined) return "none";
  if (row.method !== method || row.params_hash !== paramsHash) return "conflict";
  return {
    answer: JSON.parse(row.answer_json),
    ...(row.begun_by === null ? {} : { begunBy: row.begun_by }),
  };
}

const REMEMBER = prepared((tx, row: IdempotencyTable) =>
  tx
    .insertInto("idempotency")
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column("key")
        .doUpdateSet({ answer_json: row.answer_json, begun_by: null })
        .where("idempotency.begun_by", "is not", null)
        .where("idempotency.method", "=", row.method)
        .where("idempotency.params_hash", "=", row.params_hash),
    ),
);

function rowOf(call: KeyedCall, answer: unknown, at: number, begunBy: string | null): IdempotencyTable {
  return {
    key: ownedKey(call),
    caller: call.owner,
    method: call.method,
    params_hash: call.paramsHash,
    answer_json: JSON.stringify(answer ?? null),
    created_at: at,
    begun_by: begunBy,
  };
}

/**
 * Stores the first answer, which must be JSON. False: the key already has one, and nothing changed. Waits for
 * another transaction that answers the same key.
 */
export async function rememberAnswer(tx: Tx, call: KeyedCall, answer: unknown, at: number): Promise<boolean> {
  const { numAffectedRows } = await REMEMBER(tx, rowOf(call, answer, at, null));
  return (numAffectedRows ?? 0n) > 0n;
}

/**
 * Reserves the key of a call that must not run twice. `ifLost`: the answer if the process dies. False: the
 * key is taken. The same process may reserve it again if the response to its commit was lost.
 */
export async function reserveKey(
  tx: Tx,
  call: KeyedCall,
  { ifLost, at, processId }: { ifLost: unknown; at: number; processId: string },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("idempotency")
    .values(rowOf(call, ifLost, at, processId))
    .onConflict((conflict) =>
      conflict
        .column("key")
        .doUpdateSet({ created_at: at })
        .where("idempotency.begun_by", "=", processId)
        .where("idempotency.method", "=", call.method)
        .where("idempotency.params_hash", "=", call.paramsHash),
    )
    .executeTakeFirstOrThrow();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Makes the reserved answer of a dead process final, unless that process has stored another one. */
export async function settleKey(tx: Tx, call: KeyedCall, begunBy: string): Promise<void> {
  await tx
    .updateTable("idempotency")
    .set({ begun_by: null })
    .where("key", "=", ownedKey(call))
    .where("begun_by", "=", begunBy)
    .execute();
}

/** Deletes answers from before `beforeMs`. Returns their number. */
export async function pruneAnswers(tx: Tx, beforeMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom("idempotency")
    .where("created_at", "<", beforeMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
