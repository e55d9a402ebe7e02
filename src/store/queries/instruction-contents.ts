// Owns the table of texts that enter prompts and that runs with outside content may have changed. It has a
// row for each call that may change files now (`open`), for each file as it was before such a call
// (`confirmed`), and for each text that waits for an owner (`pending`). It is empty while no such run works
// and nothing waits.

import { prepared } from "../prepared.ts";
import { type RecordOf, recordsOf } from "../records.ts";
import type { Db, Tx } from "../sql.ts";

type RowFields = RecordOf<
  "instruction_contents",
  { readonly lasts: boolean; readonly state: "open" | "confirmed" | "pending" }
>;

/** A call that may change files. `lasts`: what it started may still write after its end. */
export interface OpenCall extends Omit<RowFields, "text" | "bytes"> {
  readonly state: "open";
}

/** A text that counts instead of a newer one. Without `text`, none does. */
export interface KeptText extends Omit<RowFields, "lasts"> {
  readonly state: "confirmed" | "pending";
}

const ROWS = recordsOf<RowFields>()("instruction_contents", {
  key: ["id"],
  columns: ["state", "path", "text", "bytes", "source", "session_key", "run_id", "at"],
  flags: ["lasts"],
});

const READ = prepared((db, _: Record<never, never>) => ROWS.rows(db).orderBy("at").orderBy("id"));

const isOpen = (row: OpenCall | KeptText): row is OpenCall => row.state === "open";

export interface InstructionRows {
  readonly calls: readonly OpenCall[];
  readonly kept: ReadonlyMap<string, KeptText>;
}

/** Returns all rows: usually none. */
export async function readInstructionRows(db: Db): Promise<InstructionRows> {
  const rows = (await READ(db, {})).rows.map((row) => {
    const { lasts, ...record } = ROWS.read(row);
    return (record.state === "open" ? { ...record, lasts } : record) as OpenCall | KeptText;
  });
  const kept = rows.filter((row): row is KeptText => !isOpen(row));
  return { calls: rows.filter(isOpen), kept: new Map(kept.map((row) => [row.id, row])) };
}

/** Returns the texts that wait for an owner, the oldest first. */
export async function pendingTexts(db: Db): Promise<KeptText[]> {
  return [...(await readInstructionRows(db)).kept.values()].filter(({ state }) => state === "pending");
}

/** Adds a row, or replaces the one with this id. */
export const putInstructionRow = (tx: Tx, row: OpenCall | KeptText) => ROWS.put(tx, { lasts: false, ...row });

export async function deleteInstructionRows(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .deleteFrom("instruction_contents")
    .where("id", "in", [...ids])
    .execute();
}
