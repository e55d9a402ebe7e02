// Owns the revision table: the inputs that runs share, each stored once under its hash.

import { sql } from "kysely";
import { SESSION_INSTRUCTIONS } from "../../../core/rules/prompt/prompt.ts";
import type { Revision, RunInputs } from "../../../core/shapes/record/revision.ts";
import { idParts } from "../../id-parts.ts";
import type { Db, Tx } from "../../sql.ts";
import { deletePiece } from "../delete-piece.ts";

/** Stores revisions. One that is stored already is only marked as used. */
export async function keepRevisions(tx: Tx, revisions: readonly Revision[], at: number): Promise<void> {
  if (revisions.length === 0) return;
  await tx
    .insertInto("revisions")
    .values(revisions.map(({ body, ...row }) => ({ ...row, body_json: body, created_at: at, used_at: at })))
    .onConflict((conflict) => conflict.column("hash").doUpdateSet({ used_at: at }))
    .execute();
}

/** Returns those of the revisions that are stored. */
export async function revisionsOf(db: Db, hashes: readonly string[]): Promise<Revision[]> {
  const found: Revision[] = [];
  for (const some of idParts(hashes)) {
    const rows = db.selectFrom("revisions").select(["hash", "kind", "body_json as body"]);
    found.push(...((await rows.where("hash", "in", some).execute()) as Revision[]));
  }
  return found;
}

/** Deletes the revisions that no run has used since this time. */
export function forgetRevisions(tx: Tx, before: number): Promise<boolean> {
  return deletePiece(tx, "revisions", ["hash"], sql`used_at < ${before}`);
}

/** Deletes the instructions for a session, which are a part of the prompts of its runs. */
export async function forgetInstructions(tx: Tx, sessionKey: string): Promise<void> {
  const runs = tx.selectFrom("runs").select("revision").distinct().where("session_key", "=", sessionKey);
  const used = (await runs.where("revision", "is not", null).execute()).flatMap((run) => run.revision ?? []);
  const inputs = await revisionsOf(tx, used);
  const parts = inputs.flatMap(({ body }) => (JSON.parse(body) as RunInputs).prompt);
  const titled = await revisionsOf(tx, [...new Set(parts)]);
  for (const { hash, body } of titled) {
    const { title, text } = JSON.parse(body) as { readonly title: string; readonly text: string };
    if (title !== SESSION_INSTRUCTIONS) continue;
    const others = tx.selectFrom("sessions").select("key").where("key", "<>", sessionKey);
    const sharing = await others.where("instructions", "=", text).limit(1).executeTakeFirst();
    if (sharing === undefined) await tx.deleteFrom("revisions").where("hash", "=", hash).execute();
  }
}
