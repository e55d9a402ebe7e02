// Writes single JSONL copies: finds the end of a copy, appends missing entries, and repairs incomplete lines.
// A copy only grows by complete lines. An incomplete last line is cut off, and a file with other content is
// replaced. A copy with messages that the store lacks is first renamed.

import { appendFile, type FileHandle, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import { wasDeleted } from "../queries/sessions/sessions.ts";
import { lastShared } from "../queries/transcripts/inherited.ts";
import type { Db } from "../sql.ts";

/** Number of entries per query and write. */
const BATCH_ENTRIES = 64;
/** Larger entries are read one at a time. */
const SMALL_BYTES = 16 * 1024;
/** Number of files per query. */
const BATCH_FILES = 500;
/**
 * Maximum number of copies whose last position is cached. For other copies the position is read from the end
 * of the file.
 */
const KNOWN_MAX = 1_000;
const TAIL_BYTES = 16 * 1024;
/** Maximum length of a header line. */
const HEAD_BYTES = 4 * 1024;
const NEWLINE = 0x0a;
const ENDING = ".jsonl";
/** Suffix of a copy that was renamed because it had messages that the store lacks. A number follows. */
const AHEAD = ".ahead-";
/** Session ids are used as file names. A session whose id is not a safe file name gets no copy. */
const PLAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

/** Writes single copies. Its methods must not run concurrently. */
export class CopyWriter {
  readonly #dir: string;
  readonly #db: Db;
  /** Last position in each of the most recently used copies. */
  readonly #known = new Map<string, number>();

  readonly #onAhead: (sessionId: string, keptAs: string) => void;

  /** `onAhead` is called when a copy was renamed because it has messages that the store lacks. */
  constructor(dir: string, db: Db, onAhead: (sessionId: string, keptAs: string) => void) {
    this.#dir = dir;
    this.#db = db;
    this.#onAhead = onAhead;
  }

  fileOf(sessionId: string): string {
    return join(this.#dir, `${sessionId}${ENDING}`);
  }

  forget(sessionId: string): void {
    this.#known.delete(sessionId);
  }

  async remove(sessionId: string): Promise<void> {
    this.#known.delete(sessionId);
    if (!PLAIN_ID.test(sessionId)) return;
    await rm(this.fileOf(sessionId), { force: true });
    // Renamed copies belong to the same conversation, so they are deleted, too.
    for (let number = 1; await removed(`${this.fileOf(sessionId)}${AHEAD}${number}`); number += 1);
  }

  /** Syncs a copy to disk, so that it survives a power loss. Does nothing if the copy is missing. */
  async sync(sessionId: string): Promise<void> {
    if (!PLAIN_ID.test(sessionId)) return;
    const handle = await openIfThere(this.fileOf(sessionId), "r");
    try {
      await handle?.datasync();
    } finally {
      await handle?.close();
    }
  }

  /** Deletes files that a crash has left: copies of deleted transcripts, and unfinished headers. */
  async removeDeleted(): Promise<void> {
    const names = await readdir(this.#dir);
    const halves = names.filter((name) => name.endsWith(`${ENDING}.new`));
    for (const name of halves) await rm(join(this.#dir, name), { force: true });
    const ids = names
      .filter((name) => name.endsWith(ENDING))
      .map((name) => name.slice(0, -ENDING.length))
      .filter((id) => PLAIN_ID.test(id));
    for (let at = 0; at < ids.length; at += BATCH_FILES) {
      const batch = ids.slice(at, at + BATCH_FILES);
      const known = await this.#db
        .selectFrom("session_ids")
        .select("session_id")
        .where("session_id", "in", batch)
        .execute();
      const kept = new Set(known.map((row) => row.session_id));
      for (const id of batch) if (!kept.has(id) && (await this.#isOver(id))) await this.remove(id);
    }
  }

  /**
   * Removes the copy of an inherited transcript if it is from before the session `heir` inherited it: a crash
   * left it when its session was deleted.
   */
  async removeDisowned(sessionId: string, heir: string): Promise<void> {
    if (!PLAIN_ID.test(sessionId)) return;
    const head = await headOf(this.fileOf(sessionId));
    if (head?.key !== undefined && head.key !== heir) await this.remove(sessionId);
  }

  /**
   * Returns whether the copy of a transcript that is not in the store can be removed: the transcript was
   * deleted, or the copy contains no entry. A transcript without entries may have had no run that shows that
   * it was deleted.
   */
  async #isOver(sessionId: string): Promise<boolean> {
    const { key, id, isAll } = (await headOf(this.fileOf(sessionId))) ?? {};
    if (key === undefined) return false;
    return (isAll === true && id === sessionId) || wasDeleted(this.#db, key, sessionId);
  }

  async bringUpToDate(sessionId: string): Promise<void> {
    if (!PLAIN_ID.test(sessionId)) return;
    const known = this.#known.get(sessionId) ?? (await this.#repaired(sessionId));
    if (known === undefined) return;
    let last = known;
    for (;;) {
      const rows = await this.#db
        .selectFrom("messages")
        .select([
          "seq",
          sql<
            string | null
          >`case when octet_length(entry_json) <= ${sql.lit(SMALL_BYTES)} then entry_json end`.as("small"),
        ])
        .where("session_id", "=", sessionId)
        .where("seq", ">", last)
        .orderBy("seq")
        .limit(BATCH_ENTRIES)
        .execute();
      let lines = "";
      for (const { seq, small } of rows) {
        lines += `${small ?? (await this.#entryAt(seq))}\n`;
        last = seq;
        if (small !== null) continue;
        await this.#append(sessionId, lines);
        lines = "";
      }
      if (lines !== "") await this.#append(sessionId, lines);
      if (rows.length < BATCH_ENTRIES) break;
    }
    this.#remember(sessionId, last);
  }

  async #entryAt(seq: number): Promise<string> {
    const entry = this.#db.selectFrom("messages").select("entry_json").where("seq", "=", seq);
    return (await entry.executeTakeFirstOrThrow()).entry_json;
  }

  #append(sessionId: string, lines: string): Promise<void> {
    return appendFile(this.fileOf(sessionId), lines, { mode: 0o600 });
  }

  #remember(sessionId: string, seq: number): void {
    this.#known.delete(sessionId);
    this.#known.set(sessionId, seq);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  /**
   * Cuts off an incomplete last line, or writes a new header if the content is invalid. Returns the position
   * of the last entry, or undefined if the transcript does not exist.
   */
  async #repaired(sessionId: string): Promise<number | undefined> {
    const owner = await this.#ownerOf(sessionId);
    if (owner === undefined) return undefined;
    const line = await lastWholeLine(this.fileOf(sessionId));
    const id = line === undefined ? undefined : textIn(line, "id");
    if (id === sessionId) return 0;
    if (id !== undefined) {
      const row = await this.#db
        .selectFrom("messages")
        .select(["seq", "session_id", "entry_json"])
        .where("id", "=", id)
        .executeTakeFirst();
      // Compares the whole line, because a damaged line may contain the id of another message.
      if (row?.session_id === sessionId && row.entry_json === line) return row.seq;
    }
    if (await this.#isAhead(sessionId)) {
      // The transcript and its messages have just been deleted, so nothing in the copy needs to be kept.
      if ((await this.#ownerOf(sessionId)) === undefined) return undefined;
      await this.#keep(sessionId);
    }
    const { session_key: key, created_at: createdAt, forked_from: from, forked_at: at } = owner;
    const fork = from === null || at === null ? {} : { forkedFrom: { sessionId: from, messageId: at } };
    const header = { type: "session", version: 1, id: sessionId, key, createdAt, ...fork };
    // Writes the header to another name and renames the file, so that a reader never sees an incomplete
    // header.
    const file = this.fileOf(sessionId);
    await writeFile(`${file}.new`, `${JSON.stringify(header)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
    return 0;
  }

  #ownerOf(sessionId: string) {
    return this.#db
      .selectFrom("session_ids")
      .selectAll()
      .where("session_id", "=", sessionId)
      .executeTakeFirst();
  }

  /** Returns whether a copy holds a message that the store lacks and that was not deleted. */
  async #isAhead(sessionId: string): Promise<boolean> {
    const handle = await openIfThere(this.fileOf(sessionId), "r");
    if (handle === undefined) return false;
    try {
      // No fork shares later messages of an inherited transcript, so they were deleted.
      const last = await lastShared(this.#db, sessionId);
      for await (const line of handle.readLines()) {
        const id = textIn(line, "id");
        if (id === undefined || id === sessionId) continue;
        const row = await this.#db
          .selectFrom("messages")
          .select("seq")
          .where("id", "=", id)
          .executeTakeFirst();
        if (row === undefined) return true;
        if (id === last?.id) return false;
      }
      return false;
    } finally {
      await handle.close();
    }
  }

  async #keep(sessionId: string): Promise<void> {
    const file = this.fileOf(sessionId);
    const names = new Set(await readdir(this.#dir));
    let number = 1;
    while (names.has(`${sessionId}${ENDING}${AHEAD}${number}`)) number += 1;
    const kept = `${file}${AHEAD}${number}`;
    await rename(file, kept);
    this.#onAhead(sessionId, kept);
  }
}

/** Returns the last complete line of a file, and cuts off anything after it. */
async function lastWholeLine(file: string): Promise<string | undefined> {
  const handle = await openIfThere(file, "r+");
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    for (let bytes = Math.min(size, TAIL_BYTES); bytes > 0; bytes = Math.min(size, bytes * 4)) {
      const tail = Buffer.alloc(bytes);
      await handle.read(tail, 0, bytes, size - bytes);
      const end = tail.lastIndexOf(NEWLINE);
      const start = end <= 0 ? -1 : tail.lastIndexOf(NEWLINE, end - 1);
      if (start < 0 && bytes < size) continue;
      if (end < 0) return undefined;
      if (end < bytes - 1) await handle.truncate(size - bytes + end + 1);
      return tail.toString("utf8", start + 1, end);
    }
    return undefined;
  } finally {
    await handle.close();
  }
}

/** Removes a file. Returns false if it did not exist. */
async function removed(file: string): Promise<boolean> {
  return rm(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}

async function openIfThere(file: string, flags: "r" | "r+"): Promise<FileHandle | undefined> {
  return open(file, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** The header line of a copy. */
interface Head {
  readonly key: string | undefined;
  readonly id: string | undefined;
  /** True if nothing follows the line. */
  readonly isAll: boolean;
}

async function headOf(file: string): Promise<Head | undefined> {
  const handle = await openIfThere(file, "r");
  if (handle === undefined) return undefined;
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const end = buffer.subarray(0, bytesRead).indexOf(NEWLINE);
    const line = buffer.toString("utf8", 0, Math.max(0, end));
    const { size } = await handle.stat();
    return { key: textIn(line, "key"), id: textIn(line, "id"), isAll: size === end + 1 };
  } finally {
    await handle.close();
  }
}

function textIn(line: string, field: "id" | "key"): string | undefined {
  try {
    const value: unknown = (JSON.parse(line) as Record<string, unknown>)[field];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
