// Owns the table of files that agents sent to people: a copy of each file, so that later changes in the
// workspace change neither a delivery nor the page.
// SF1: a file belongs to a transcript. It is deleted with it, or when newer files of the same transcript need
//      its place. A file that a pending delivery needs keeps its place.
// SF2: a fork shows the files that were sent before it.

import { sql } from "kysely";
import { sentFilePrefix } from "../../../core/sent-file.ts";
import type { Run } from "../../../core/shapes/run.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";
import { partsOf } from "../transcripts/forks.ts";

export type SentFile = RecordOf<"sent_files", unknown, "content">;

/** Maximum bytes of the files that are kept for one transcript. Older files are deleted. */
const KEPT_MAX_BYTES = 100 * 1024 * 1024;

const FACTS = ["session_id", "name", "mime_type", "caption", "bytes", "created_at"] as const;
const FILES = recordsOf<SentFile>()("sent_files", { key: ["id"], columns: FACTS });

/** Stores a file, and deletes the oldest files of its transcript that are above the limit (SF1). */
export async function insertSentFile(tx: Tx, file: SentFile & { readonly content: string }): Promise<void> {
  const { id, sessionId, content } = file;
  await tx
    .insertInto("sent_files")
    .values({ ...FILES.write(file), content })
    .execute();
  await sql`delete from sent_files where id in (
    select id from (
      select id, sum(bytes) over (order by created_at desc, id desc) as total
      from sent_files where session_id = ${sessionId}
    ) as kept where total > ${sql.lit(KEPT_MAX_BYTES)} and id <> ${id}
  ) and not exists (
    select 1 from deliveries where deliveries.file_id = sent_files.id and state = 'pending'
  )`.execute(tx);
}

/** Returns the facts of a file, without its content. */
export const getSentFile = (db: Db, id: string) => FILES.find(db, { id });

/** Returns the files that a run sent, the oldest first. */
export function filesOfRun(db: Db, { runId, sessionId }: Run): Promise<SentFile[]> {
  const prefix = sentFilePrefix(runId);
  const ofRun = sql<boolean>`substr(id, 1, ${sql.lit(prefix.length)}) = ${prefix}`;
  return FILES.all(FILES.rows(db, { sessionId }).where(ofRun).orderBy("created_at").orderBy("id"));
}

/** Returns characters of the content in Base64, from `offset` on. */
export async function contentOfFile(
  db: Db,
  id: string,
  { offset = 0, chars }: { offset?: number; chars?: number } = {},
): Promise<string | undefined> {
  const part =
    chars === undefined
      ? sql<string>`substr(content, ${sql.lit(offset + 1)})`
      : sql<string>`substr(content, ${sql.lit(offset + 1)}, ${sql.lit(chars)})`;
  const row = await db
    .selectFrom("sent_files")
    .select(part.as("content"))
    .where("id", "=", id)
    .executeTakeFirst();
  return row?.content;
}

/** Returns a file if it was sent in this transcript, or in one that it forks, before the fork (SF2). */
export async function fileOfTranscript(db: Db, id: string, sessionId: string): Promise<SentFile | undefined> {
  const file = await getSentFile(db, id);
  if (file === undefined) return undefined;
  const part = (await partsOf(db, sessionId)).find((one) => one.sessionId === file.sessionId);
  if (part?.upTo === undefined) return part && file;
  const last = await db
    .selectFrom("messages")
    .select("created_at")
    .where("seq", "=", part.upTo)
    .executeTakeFirst();
  return last !== undefined && file.createdAt <= last.created_at ? file : undefined;
}
