// Owns the answers that were given to calls with an idempotency key.
// ID1: the same call with the same key gets the same answer, also after a restart.
// ID2: the same key of the same owner with other parameters or for another method is a conflict.
// ID3: a key belongs to its owner. Keys of two owners never meet, however alike they are.
// ID4: work that must not be done twice reserves its key first, with the answer for the case that its process
//      dies. That process answers; once it is dead, the key has the answer for this case for good.

import { prepared } from "./prepared.ts";
import type { Db, Tx } from "./sql.ts";
import type { IdempotencyTable } from "./tables.ts";

export interface KeyedCall {
  readonly key: string;
  /** The owner of the key, a token or a device: a hash, never the token. */
  readonly owner: string;
  /** The row that an older version wrote for this call. Such rows expire, and none is written any more. */
  readonly older?: { readonly key: string; readonly caller: string };
  readonly method: string;
  readonly paramsHash: string;
}

/** The key with its owner, as it is stored. The keys of callers hold no control characters. */
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
  /** The process that still works on it. `answer` is for the case that this process dies. */
  readonly begunBy?: string;
}

/** `none`: not answered yet. `conflict`: its owner used the key for another method or other parameters. */
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
 * Keeps the first answer. False: the key has an answer already, and nothing changed. `answer` must be JSON.
 * Waits for a transaction that is about to answer the same key.
 */
export async function rememberAnswer(tx: Tx, call: KeyedCall, answer: unknown, at: number): Promise<boolean> {
  const { numAffectedRows } = await REMEMBER(tx, rowOf(call, answer, at, null));
  return (numAffectedRows ?? 0n) > 0n;
}

/**
 * Reserves the key for work that must not be done twice. `ifLost`: the answer in case the process dies.
 * False: the key is taken. The same process may ask again, when the answer to its commit was lost.
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

/** Makes the answer for a lost process the answer for good, unless that process has given its own. */
export async function settleKey(tx: Tx, call: KeyedCall, begunBy: string): Promise<void> {
  await tx
    .updateTable("idempotency")
    .set({ begun_by: null })
    .where("key", "=", ownedKey(call))
    .where("begun_by", "=", begunBy)
    .execute();
}

/** Forgets the answers given before `beforeMs`. Returns how many. */
export async function pruneAnswers(tx: Tx, beforeMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom("idempotency")
    .where("created_at", "<", beforeMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
