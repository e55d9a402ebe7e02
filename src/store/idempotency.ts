// Owns the answers that were given to calls with an idempotency key.
// ID1: the same call with the same key gets the same answer, also after a restart.
// ID2: the same key of the same owner with other parameters or for another method is a conflict.
// ID3: a key belongs to its owner. Keys of two owners never meet, however alike they are.

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
    .select(["key", "caller", "method", "params_hash", "answer_json"])
    .where("key", "in", [key, older]),
);

/** `none`: not answered yet. `conflict`: its owner used the key for another method or other parameters. */
export async function recallAnswer(
  db: Db,
  call: KeyedCall,
): Promise<"none" | "conflict" | { answer: unknown }> {
  const { method, paramsHash, older } = call;
  const key = ownedKey(call);
  const { rows } = await ANSWER(db, { key, older: older?.key ?? key });
  const row = rows.find((one) => one.key === key) ?? rows.find((one) => one.caller === older?.caller);
  if (row === undefined) return "none";
  const isSame = row.method === method && row.params_hash === paramsHash;
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
    key: ownedKey(call),
    caller: call.owner,
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
