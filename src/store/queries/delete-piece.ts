// Deletes old rows in pieces, so that no transaction holds up the others for long.

import { type RawBuilder, sql } from "kysely";
import type { Tables } from "../schema/tables.ts";
import type { Tx } from "../sql.ts";

const ROWS_MAX = 5_000;

/**
 * Deletes a limited number of rows. `which`: their condition, with an order if an index has it. Returns
 * whether there may be more.
 */
export async function deletePiece(
  tx: Tx,
  table: keyof Tables,
  keys: readonly string[],
  which: RawBuilder<unknown>,
): Promise<boolean> {
  const columns = sql.join(keys.map((key) => sql.ref(key)));
  const piece = sql`select ${columns} from ${sql.table(table)} where ${which} limit ${sql.lit(ROWS_MAX)}`;
  const done = await sql`delete from ${sql.table(table)} where (${columns}) in (${piece})`.execute(tx);
  return done.numAffectedRows === BigInt(ROWS_MAX);
}
