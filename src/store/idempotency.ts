// Owns the answers that were given to calls with an idempotency key.
// ID1: the same call with the same key gets the same answer, also after a restart.
// ID2: the same key with other parameters, for another method or from another caller is a conflict.

import { prepared } from "./prepared.ts";
import type { Db, Tx } from "./sql.ts";
import type { IdempotencyTable } from "./tables.ts";

export interface KeyedCall {
  readonly key: string;
  /** Which token asked: a hash, never the token. */
  readonly caller: string;
  readonly method: string;
  readonly paramsHash: string;
}

const ANSWER = prepared((db, { key }: { key: string }) =>
  db
    .selectFrom("idempotency")
    .select(["caller", "method", "params_hash", "answer_json"])
    .where("key", "=", key),
);

/**
 * `none`: not answered yet. `conflict`: the key was used by another caller, for another method or with other
 * parameters.
 */
export async function recallAnswer(
  db: Db,
  call: KeyedCall,
): Promise<"none" | "conflict" | { answer: unknown }> {
  const [row] = (await ANSWER(db, { key: call.key })).rows;
  if (row === undefined) return "none";
  const { caller, method, paramsHash } = call;
  const isSame = row.caller === caller && row.method === method && row.params_hash === paramsHash;
  return isSame ? { answer: JSON.parse(row.answer_json) } : "conflict";
}

const REMEMBER = prepared((tx, row: IdempotencyTable) =>
  tx
    .insertInto("idempotency")
    .values(row)
    .onConflict((conflict) => conflict.column("key").doNothing()),
);

/**
 * Keeps the first answer. False: the key has an answer already, and nothing changed. `answer` must be JSON.
 * Waits for a transaction that is about to answer the same key.
 */
export async function rememberAnswer(tx: Tx, call: KeyedCall, answer: unknown, at: number): Promise<boolean> {
  const { numAffectedRows } = await REMEMBER(tx, {
    key: call.key,
    caller: call.caller,
    method: call.method,
    params_hash: call.paramsHash,
    answer_json: JSON.stringify(answer ?? null),
    created_at: at,
  });
  return (numAffectedRows ?? 0n) > 0n;
}

/** Forgets the answers given before `beforeMs`. Returns how many. */
export async function pruneAnswers(tx: Tx, beforeMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom("idempotency")
    .where("created_at", "<", beforeMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
