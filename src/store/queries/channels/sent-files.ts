// Owns the table of files that agents sent to people: a copy of each file, so that later changes in the
// workspace change neither a delivery nor the page.
// SF1: a file belongs to a transcript. It is deleted with it, or when newer files of the same transcript need
//      its place. A file that a pending delivery needs keeps its place.
// SF2: a fork shows the files that were sent before it.

import { sql } from "kysely";
import { sentFilePrefix } from "../../../core/sent-file.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Db, Tx } from "../../sql.ts";
import { partsOf } from "../transcripts/forks.ts";

export interface SentFile {
  readonly id: string;
  readonly sessionId: string;
  readonly name: string;
  readonly mimeType: string;
  /** Markdown. Empty: none. */
  readonly caption: string;
  readonly bytes: number;
  readonly createdAt: number;
}

/** Maximum bytes of the files that are kept for one transcript. Older files are deleted. */
const KEPT_MAX_BYTES = 100 * 1024 * 1024;

const FACTS = [
  "id",
  "session_id as sessionId",
  "name",
  "mime_type as mimeType",
  "caption",
  "bytes",
  "created_at as createdAt",
] as const;

/** Stores a file, and deletes the oldest files of its transcript that are above the limit (SF1). */
export async function insertSentFile(tx: Tx, file: SentFile & { readonly content: string }): Promise<void> {
  const { id, sessionId, name, mimeType, caption, bytes, content, createdAt } = file;
  await tx
    .insertInto("sent_files")
    .values({
      id,
      session_id: sessionId,
      name,
      mime_type: mimeType,
      caption,
      bytes,
      content,
      created_at: createdAt,
    })
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
export function getSentFile(db: Db, id: string): Promise<SentFile | undefined> {
  return db.selectFrom("sent_files").select(FACTS).where("id", "=", id).executeTakeFirst();
}

/** Returns the files that a run sent, the oldest first. */
export function filesOfRun(db: Db, { runId, sessionId }: Run): Promise<SentFile[]> {
  const prefix = sentFilePrefix(runId);
  return db
    .selectFrom("sent_files")
    .select(FACTS)
    .where("session_id", "=", sessionId)
    .where(sql<string>`substr(id, 1, ${sql.lit(prefix.length)})`, "=", prefix)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
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
