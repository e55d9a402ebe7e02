// Owns the revision table: the inputs that runs share, each stored once under its hash.

import type { Revision, RevisionKind } from "../../../core/shapes/record/revision.ts";
import { idParts } from "../../id-parts.ts";
import type { Db, Tx } from "../../sql.ts";

/** Stores revisions. One that is stored already is only marked as used. */
export async function keepRevisions(tx: Tx, revisions: readonly Revision[], at: number): Promise<void> {
  if (revisions.length === 0) return;
  const rows = revisions.map(({ hash, kind, body }) => {
    return { hash, kind, body_json: body, created_at: at, used_at: at };
  });
  await tx
    .insertInto("revisions")
    .values(rows)
    .onConflict((conflict) => conflict.column("hash").doUpdateSet({ used_at: at }))
    .execute();
}

/** Returns those of the revisions that are stored. */
export async function revisionsOf(db: Db, hashes: readonly string[]): Promise<Revision[]> {
  const found: Revision[] = [];
  for (const some of idParts(hashes)) {
    const rows = await db
      .selectFrom("revisions")
      .select(["hash", "kind", "body_json"])
      .where("hash", "in", some)
      .execute();
    found.push(
      ...rows.map(({ hash, kind, body_json: body }) => ({ hash, kind: kind as RevisionKind, body })),
    );
  }
  return found;
}

/** Deletes the revisions that no run has used since this time. */
export async function forgetRevisions(tx: Tx, before: number): Promise<void> {
  await tx.deleteFrom("revisions").where("used_at", "<", before).execute();
}
