// Removes the words of deleted rows from the full-text indexes of the embedded store. SQLite overwrites
// deleted rows with zeros (`pragma secure_delete`), but an index keeps the words of a deleted text until its
// segments are merged. A merge is done in slices, each in its own transaction, so that it blocks nobody.

import { sql } from "kysely";
import type { Tx } from "../../sql.ts";

const INDEXES = ["session_names", "message_texts", "message_parts"] as const;
/** Pages that a slice writes: about 10 ms of work. */
const SLICE_PAGES = 64;

/** Slices for one index in a pass, enough for 5 GB of it: new rows may come as fast as slices are merged. */
export const SLICES_MAX = 20_000;

/** An index whose merge has begun, and its slices so far. */
export interface Begun {
  readonly index: (typeof INDEXES)[number];
  readonly slices: number;
}

const changesIn = async (tx: Tx): Promise<number> =>
  Number((await sql<{ n: number }>`select total_changes() as n`.execute(tx)).rows[0]?.n ?? 0);

/**
 * Merges a slice of the first index that is not clean. `state` is what the slice before returned, or
 * undefined for the first slice of a pass. Returns undefined when all indexes are clean of rows that were
 * deleted before the pass, or had `SLICES_MAX` slices.
 */
export async function scrubSlice(tx: Tx, state: Begun | undefined): Promise<Begun | undefined> {
  const from = state === undefined ? 0 : INDEXES.indexOf(state.index);
  for (const index of INDEXES.slice(from)) {
    const slices = index === state?.index ? state.slices : 0;
    if (slices >= SLICES_MAX) continue;
    // A negative number begins to merge all segments, a positive one continues.
    const pages = slices > 0 ? SLICE_PAGES : -SLICE_PAGES;
    const before = await changesIn(tx);
    const table = sql.table(index);
    await sql`insert into ${table} (${sql.ref(index)}, rank) values ('merge', ${pages})`.execute(tx);
    // The statement itself counts as one change.
    if ((await changesIn(tx)) - before > 1) return { index, slices: slices + 1 };
  }
  return undefined;
}
