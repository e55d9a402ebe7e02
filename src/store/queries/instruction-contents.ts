// Owns the table of texts that enter prompts and that runs with outside content may have changed. It has a
// row for each call that may change files now (`open`), for each file as it was before such a call
// (`confirmed`), and for each text that waits for an owner (`pending`). It is empty while no such run works
// and nothing waits.

import type { Selectable } from "kysely";
import { prepared } from "../prepared.ts";
import type { InstructionContentTable } from "../schema/tables.ts";
import { type Db, present, type Tx } from "../sql.ts";

interface RowFields {
  /** The path of a file, `memory:<agent>`, or the id of a call. */
  readonly id: string;
  /** Path of the file, or of the folder below which the call may write. */
  readonly path: string;
  /** Source of the outside content. */
  readonly source: string;
  /** Session of the run with the outside content. */
  readonly sessionKey: string;
  readonly runId?: string;
  /** Start of the call, or time at which the change was noticed. */
  readonly at: number;
}

/** A call that may change files. `lasts`: what it started may still write after its end. */
export interface OpenCall extends RowFields {
  readonly state: "open";
  readonly lasts: boolean;
}

/** A text that counts instead of a newer one. */
export interface KeptText extends RowFields {
  readonly state: "confirmed" | "pending";
  /** The text that counts. Absent: none does. */
  readonly text?: string;
  /** Size of the whole file with that text. */
  readonly bytes?: number;
}

function toRow(row: Selectable<InstructionContentTable>): OpenCall | KeptText {
  const { id, path, source, at } = row;
  const fields = { id, path, source, sessionKey: row.session_key, at, ...present("runId", row.run_id) };
  if (row.state === "open") return { ...fields, state: "open", lasts: row.lasts === 1 };
  const state = row.state === "pending" ? "pending" : "confirmed";
  return { ...fields, state, ...present("text", row.text), ...present("bytes", row.bytes) };
}

const ROWS = prepared((db, _: Record<never, never>) =>
  db.selectFrom("instruction_contents").selectAll().orderBy("at").orderBy("id"),
);

export interface InstructionRows {
  readonly calls: readonly OpenCall[];
  readonly kept: ReadonlyMap<string, KeptText>;
}

/** Returns all rows: usually none. */
export async function readInstructionRows(db: Db): Promise<InstructionRows> {
  const calls: OpenCall[] = [];
  const kept = new Map<string, KeptText>();
  for (const row of (await ROWS(db, {})).rows.map(toRow)) {
    if (row.state === "open") calls.push(row);
    else kept.set(row.id, row);
  }
  return { calls, kept };
}

/** Returns the texts that wait for an owner, the oldest first. */
export async function pendingTexts(db: Db): Promise<KeptText[]> {
  return [...(await readInstructionRows(db)).kept.values()].filter(({ state }) => state === "pending");
}

/** Adds a row, or replaces the one with this id. */
export async function putInstructionRow(tx: Tx, row: OpenCall | KeptText): Promise<void> {
  const { id, state, path, source, sessionKey, runId = null, at } = row;
  const { text = null, bytes = null } = row.state === "open" ? {} : row;
  const lasts = row.state === "open" && row.lasts ? 1 : 0;
  const columns = { state, path, source, session_key: sessionKey, run_id: runId, at, text, bytes, lasts };
  await tx
    .insertInto("instruction_contents")
    .values({ id, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function deleteInstructionRows(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .deleteFrom("instruction_contents")
    .where("id", "in", [...ids])
    .execute();
}
