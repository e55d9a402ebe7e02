// Owns the answers to calls with an idempotency key. A repeated call with the same key gets the same answer,
// even after a restart. If the owner uses the key with other parameters or another method, that is a
// conflict.
// ID3: a key belongs to its owner. Two owners can use the same key independently.
// ID4: a call that must not run twice first reserves its key with an answer. The process replaces this answer
//      when the call is done. If the process dies before, the reserved answer becomes final.

import { sql } from "kysely";
import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { prepared } from "../prepared.ts";
import type { IdempotencyTable } from "../schema/tables.ts";
import { changesRows, type Db, kindOf, type Tx } from "../sql.ts";

export interface KeyedCall {
  readonly key: string;
  /** Owner of the key, a token or a device, as a hash. The token itself is never stored. */
  readonly owner: string;
  /**
   * Key and caller in the form that older versions stored. This version only reads such rows, until they
   * expire.
   */
  readonly older?: { readonly key: string; readonly caller: string };
  readonly method: string;
  readonly paramsHash: string;
}

/**
 * Returns the stored form of a key with its owner. Keys of callers contain no control characters, so the form
 * is unambiguous.
 */
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
  /** Process that still works on the call. If it dies, `answer` becomes final. */
  readonly begunBy?: string;
}

/**
 * Returns the stored answer. `none`: there is no answer yet. `conflict`: the owner used the key for another
 * method or with other parameters.
 */
export async function recallAnswer(db: Db, call: KeyedCall): Promise<"none" | "conflict" | KnownAnswer> {
  const { method, paramsHash, older } = call;
  const key = ownedKey(call);
  const { rows } = await ANSWER(db, { key, older: older?.key ?? key });
  const row = rows.find((one) => one.key === key) ?? rows.find((one) => one.caller === older?.caller);
  if (row === undefined) return "none";
  if (row.method !== method || row.params_hash !== paramsHash) return "conflict";
  return { answer: JSON.parse(row.answer_json), ...optional({ begunBy: row.begun_by ?? undefined }) };
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
 * Stores the first answer, which must be JSON. Returns false, and changes nothing, if the key already has
 * one. Waits for a concurrent transaction that stores an answer under the same key.
 */
export async function rememberAnswer(tx: Tx, call: KeyedCall, answer: unknown, at: number): Promise<boolean> {
  const { numAffectedRows } = await REMEMBER(tx, rowOf(call, answer, at, null));
  return (numAffectedRows ?? 0n) > 0n;
}

/**
 * Reserves the key of a call that must not run twice. `ifLost` is the answer if the process dies. Returns
 * false if the key is taken. The same process may reserve it again, in case it never learnt that its commit
 * succeeded.
 */
export async function reserveKey(
  tx: Tx,
  call: KeyedCall,
  { ifLost, at, processId }: { ifLost: unknown; at: number; processId: string },
): Promise<boolean> {
  const reservation = tx
    .insertInto("idempotency")
    .values(rowOf(call, ifLost, at, processId))
    .onConflict((conflict) =>
      conflict
        .column("key")
        .doUpdateSet({ created_at: at })
        .where("idempotency.begun_by", "=", processId)
        .where("idempotency.method", "=", call.method)
        .where("idempotency.params_hash", "=", call.paramsHash),
    );
  return changesRows(tx, reservation);
}

/** Makes the reserved answer of a dead process final, unless the process had stored another one. */
export async function settleKey(tx: Tx, call: KeyedCall, begunBy: string): Promise<void> {
  await tx
    .updateTable("idempotency")
    .set({ begun_by: null })
    .where("key", "=", ownedKey(call))
    .where("begun_by", "=", begunBy)
    .execute();
}

/** Deletes answers older than `beforeMs`. Returns the number of deleted rows. */
export async function pruneAnswers(tx: Tx, beforeMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom("idempotency")
    .where("created_at", "<", beforeMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Matches the names of fields that hold no text of people or agents. */
const NO_TEXT = /(?:id|key|kind|status|state|code|model|mode|receipt|channel|decision|scope)$/i;

function withoutTexts(value: unknown, name = ""): unknown {
  if (typeof value === "string") return NO_TEXT.test(name) ? value : "";
  if (Array.isArray(value)) return value.map((one) => withoutTexts(one, name));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, withoutTexts(one, field)]));
}

/** Blanks the texts in answers that name a deleted session. A repeated call still gets the ids. */
export async function eraseAnswers(tx: Tx, sessionKey: string, sinceMs: number): Promise<void> {
  const position = sql.ref(kindOf(tx) === "sqlite" ? "instr" : "strpos");
  const rows = await tx
    .selectFrom("idempotency")
    .select(["key", "answer_json"])
    .where("created_at", ">=", sinceMs)
    .where(sql<boolean>`${position}(answer_json, ${JSON.stringify(sessionKey)}) > 0`)
    .execute();
  for (const { key, answer_json } of rows) {
    const blanked = JSON.stringify(withoutTexts(JSON.parse(answer_json)));
    await tx.updateTable("idempotency").set({ answer_json: blanked }).where("key", "=", key).execute();
  }
}
