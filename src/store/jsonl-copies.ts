// Owns the readable copy of each transcript: `<store dir>/<sessionId>.jsonl`, a header line, then an entry a
// line.
// MI1: the table is the truth: the copy is written after the commit, from the table, in its order, and
//      repaired from it. Nothing ever reads the copy to know what was said.
// MI2: a copy that cannot be written is logged and tried again at the next entry; no run ever fails for it.
// MI3: after a crash every copy that may be behind is found: from a note of how far all copies once were.
//      They are synced before it is written, so that it holds after a power loss too. The newest sessions are
//      looked at in any case.
// MI5: a copy that is ahead of the store is never cut: it is kept under another name, and logged.
// MI4: what is deleted has no copy: one that a crash came before is removed at the next start. A copy that
//      this database knows nothing of stays: it may be all that is left of another.

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import type { Log } from "../world.ts";
import { CopyWriter } from "./jsonl-copy-file.ts";
import type { Db } from "./sql.ts";

/** How far all copies once were. */
export const PROGRESS_FILE = "mirror.progress";
/**
 * Entries after which the note of progress is written anew: what a start after a crash looks through at most.
 */
const PROGRESS_STEP = 1_000;
/** Sessions whose copies are looked at when the gateway starts. */
const CHECKED_AT_START = 200;

export interface JsonlCopies {
  /** Entries of this session were committed, or the session was made. Returns at once. */
  note(sessionId: string): void;
  /** Resolves when everything noted so far is written, or has failed and is logged. */
  flush(): Promise<void>;
  /** Removes the copy of a deleted transcript. */
  remove(sessionId: string): Promise<void>;
  /** Writes what is left. */
  close(): Promise<void>;
}

interface Parts {
  readonly dir: string;
  readonly log: Log;
  readonly db: Db;
}

/** Opens the copies of a store directory and starts to bring them up to date in the background. */
export function openJsonlCopies(parts: Parts): JsonlCopies {
  return new CopyQueue(parts);
}

/** Which copies have to be written; one worker at a time writes them. */
class CopyQueue implements JsonlCopies {
  readonly #parts: Parts;
  readonly #writer: CopyWriter;
  readonly #noted = new Set<string>();
  /** Noted, tried and not written. */
  readonly #behind = new Set<string>();
  /** Written since the note of progress. */
  readonly #unsynced = new Set<string>();
  #working: Promise<void> | undefined;
  /** Up to here every copy was once complete. */
  #written = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#writer = new CopyWriter(parts.dir, parts.db, (sessionId, keptAs) => {
      const text = "a transcript copy holds messages that the store does not have; kept under another name";
      parts.log.warn({ sessionId, file: keptAs }, text);
    });
    this.#start(() => this.#takeStock());
  }

  note(sessionId: string): void {
    this.#noted.add(sessionId);
    const [late] = this.#behind;
    if (late !== undefined) this.#noted.add(late);
    if (this.#working === undefined) this.#start();
  }

  async flush(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  async remove(sessionId: string): Promise<void> {
    this.#noted.delete(sessionId);
    this.#behind.delete(sessionId);
    this.#start(() =>
      this.#writer.remove(sessionId).catch((error: unknown) => {
        this.#warn(error, "transcript copy not removed", sessionId);
      }),
    );
    await this.flush();
  }

  async close(): Promise<void> {
    await this.flush();
    // Of an entry whose commit got no answer nobody was told.
    for (const sessionId of await lateSince(this.#parts.db, this.#written).catch(() => []))
      this.note(sessionId);
    await this.flush();
    const upTo = await lastSeq(this.#parts.db).catch(() => 0);
    if (this.#behind.size === 0 && upTo > this.#written) await this.#saveProgress(upTo);
  }

  #start(first?: () => Promise<void>): void {
    const running: Promise<void> = (this.#working ?? Promise.resolve()).then(first).then(() => this.#work());
    this.#working = running;
    void running.finally(() => {
      if (this.#working !== running) return;
      this.#working = undefined;
      // Noted after the work had looked for the last time, and before it was known to be over.
      if (this.#noted.size > 0) this.#start();
    });
  }

  async #work(): Promise<void> {
    while (this.#noted.size > 0) {
      const upTo = await lastSeq(this.#parts.db).catch(() => 0);
      for (const sessionId of [...this.#noted]) {
        this.#noted.delete(sessionId);
        await this.#attempt(sessionId);
      }
      if (this.#behind.size === 0 && upTo - this.#written >= PROGRESS_STEP) await this.#saveProgress(upTo);
    }
  }

  async #attempt(sessionId: string): Promise<void> {
    this.#behind.delete(sessionId);
    this.#unsynced.add(sessionId);
    try {
      await this.#writer.bringUpToDate(sessionId);
    } catch (error) {
      this.#behind.add(sessionId);
      this.#writer.forget(sessionId);
      this.#warn(error, "transcript copy not written", sessionId);
    }
  }

  async #takeStock(): Promise<void> {
    await this.#noteAll();
    try {
      await this.#writer.removeDeleted();
    } catch (error) {
      this.#warn(error, "copies of deleted transcripts not looked for");
    }
  }

  async #noteAll(): Promise<void> {
    const { dir, db } = this.#parts;
    // Without the note, as at the first start, everything counts as behind; and with one that can't be true.
    const text = await readFile(join(dir, PROGRESS_FILE), "utf8").catch(() => "");
    const noted = /^\d{1,15}\n$/.test(text) ? Number(text) : 0;
    try {
      this.#written = noted <= (await lastSeq(db)) ? noted : 0;
      for (const sessionId of await maybeBehind(db, this.#written)) this.#noted.add(sessionId);
    } catch (error) {
      this.#warn(error, "transcript copies not checked");
    }
  }

  async #saveProgress(seq: number): Promise<void> {
    const file = join(this.#parts.dir, PROGRESS_FILE);
    try {
      for (const sessionId of this.#unsynced) {
        await this.#writer.sync(sessionId);
        this.#unsynced.delete(sessionId);
      }
      await writeFile(`${file}.new`, `${seq}\n`, { mode: 0o600, flush: true });
      await rename(`${file}.new`, file);
      this.#written = seq;
    } catch (error) {
      this.#warn(error, "progress of transcript copies not written");
    }
  }

  #warn(error: unknown, text: string, sessionId?: string): void {
    const place = sessionId === undefined ? {} : { sessionId, file: this.#writer.fileOf(sessionId) };
    this.#parts.log.warn({ err: error, ...place }, text);
  }
}

async function lastSeq(db: Db): Promise<number> {
  const row = await db
    .selectFrom("messages")
    .select("seq")
    .orderBy("seq", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.seq ?? 0;
}

/** Sessions with entries behind this one. */
async function lateSince(db: Db, seq: number): Promise<string[]> {
  const late = await db
    .selectFrom("messages")
    .select("session_id")
    .distinct()
    .where("seq", ">", seq)
    .execute();
  return late.map((row) => row.session_id);
}

async function maybeBehind(db: Db, writtenUpTo: number): Promise<string[]> {
  const late = await lateSince(db, writtenUpTo);
  const newest = await sql<{ session_id: string }>`select session_id from sessions
    where archived = 0 order by updated_at desc, key desc limit ${CHECKED_AT_START}`.execute(db);
  return [...new Set([...newest.rows.map((row) => row.session_id), ...late])];
}
