// Owns the JSONL copy of each transcript: `<store dir>/<sessionId>.jsonl`, with a header line and one entry
// per line.
// MI1: the table is authoritative. A copy is written after the commit, from the table and in its order, and
//      is repaired from the table. Transcripts are never read from their copies. A failed write is logged and
//      retried at the next entry; no run fails because of it.
// A progress file records the position up to which all copies are complete. After a crash it shows which
// copies may be behind. The copies are synced before the progress file is written, so the file is still valid
// after a power loss. Each start also checks the newest sessions.
// The copy of a deleted transcript is deleted, if necessary at the next start. A copy with entries of a
// transcript that this store never had is kept, because it may be all that is left of another database. A
// copy with messages that the store lacks is never truncated: it is kept under another name, and a warning is
// logged.

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import { pause } from "../../world/pause.ts";
import type { Clock } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import { inheritedTranscripts, isInheritedTranscript } from "../queries/transcripts/inherited.ts";
import type { Db } from "../sql.ts";
import { CopyWriter } from "./jsonl-copy-file.ts";

/** Name of the progress file: the position up to which all copies are complete. */
export const PROGRESS_FILE = "mirror.progress";
/**
 * Number of new entries after which the progress file is written again. After a crash, the next start reads
 * only about this many entries.
 */
const PROGRESS_STEP = 1_000;
/** Time to wait for further entries, so that several entries of a session need only one write. */
const GATHER_MS = 100;
/** Number of newest sessions whose copies are checked when the gateway starts. */
const CHECKED_AT_START = 200;

export interface JsonlCopies {
  /**
   * Reports that entries of this session were committed, or that the session was created. Returns
   * immediately.
   */
  note(sessionId: string): void;
  /** Resolves when each reported entry was written, or its failure was logged. */
  flush(): Promise<void>;
  /**
   * Deletes the copy of a deleted transcript. Writes the copy again if a fork still shares a part of the
   * transcript.
   */
  remove(sessionId: string): Promise<void>;
  /** Writes the remaining entries. */
  close(): Promise<void>;
}

interface Parts {
  readonly dir: string;
  readonly log: Log;
  readonly db: Db;
  /** Clock that measures the wait for further entries. If absent, entries are written as soon as possible. */
  readonly clock?: Clock;
}

/** Opens the copies of a store directory, and updates them in the background. */
export function openJsonlCopies(parts: Parts): JsonlCopies {
  return new CopyQueue(parts);
}

/** The queue of copies to write. A single worker writes them. */
class CopyQueue implements JsonlCopies {
  readonly #parts: Parts;
  readonly #writer: CopyWriter;
  readonly #noted = new Set<string>();
  /** Ids of sessions whose copy could not be written the last time. */
  readonly #behind = new Set<string>();
  /** Copies that were written after the last update of the progress file. */
  readonly #unsynced = new Set<string>();
  #working: Promise<void> | undefined;
  /** Position up to which all copies are complete. */
  #written = 0;
  /** Number of callers that are waiting for the queue to become empty. */
  #flushes = 0;
  #gathering = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#writer = new CopyWriter(parts.dir, parts.db, (sessionId, keptAs) => {
      const text = "a transcript copy holds messages that the store lacks; kept it under another name";
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
    this.#flushes += 1;
    this.#gathering.abort();
    while (this.#working !== undefined) await this.#working;
    this.#flushes -= 1;
  }

  async remove(sessionId: string): Promise<void> {
    this.#noted.delete(sessionId);
    this.#behind.delete(sessionId);
    this.#start(() =>
      this.#writer.remove(sessionId).catch((error: unknown) => {
        this.#warn(error, "could not remove a transcript copy", sessionId);
      }),
    );
    if (await isInheritedTranscript(this.#parts.db, sessionId).catch(() => false)) this.note(sessionId);
    await this.flush();
  }

  async close(): Promise<void> {
    await this.flush();
    // If the answer to a commit was lost, `note` was not called for its entries.
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
      // A session may have been reported after the worker's last check and before this callback.
      if (this.#noted.size > 0) this.#start();
    });
  }

  async #work(): Promise<void> {
    while (this.#noted.size > 0) {
      await this.#gather();
      const upTo = await lastSeq(this.#parts.db).catch(() => 0);
      for (const sessionId of [...this.#noted]) {
        this.#noted.delete(sessionId);
        await this.#attempt(sessionId);
      }
      if (this.#behind.size === 0 && upTo - this.#written >= PROGRESS_STEP) await this.#saveProgress(upTo);
    }
  }

  async #gather(): Promise<void> {
    const { clock } = this.#parts;
    if (clock === undefined || this.#flushes > 0) return;
    this.#gathering = new AbortController();
    await pause(clock, GATHER_MS, this.#gathering.signal);
  }

  async #attempt(sessionId: string): Promise<void> {
    this.#behind.delete(sessionId);
    this.#unsynced.add(sessionId);
    try {
      await this.#writer.bringUpToDate(sessionId);
    } catch (error) {
      this.#behind.add(sessionId);
      this.#writer.forget(sessionId);
      this.#warn(error, "could not write a transcript copy", sessionId);
    }
  }

  async #takeStock(): Promise<void> {
    await this.#noteAll();
    try {
      await this.#writer.removeDeleted();
      // After a crash, the copy of an inherited transcript (inherited.ts) may still have messages that were
      // deleted.
      for (const { sessionId, heir } of await inheritedTranscripts(this.#parts.db)) {
        await this.#writer.removeDisowned(sessionId, heir);
        this.#noted.add(sessionId);
      }
    } catch (error) {
      this.#warn(error, "could not look for copies of deleted transcripts");
    }
  }

  async #noteAll(): Promise<void> {
    const { dir, db } = this.#parts;
    // Without a valid progress file, for example at the first start, every copy may be behind.
    const text = await readFile(join(dir, PROGRESS_FILE), "utf8").catch(() => "");
    const noted = /^\d{1,15}\n$/.test(text) ? Number(text) : 0;
    try {
      this.#written = noted <= (await lastSeq(db)) ? noted : 0;
      for (const sessionId of await maybeBehind(db, this.#written)) this.#noted.add(sessionId);
    } catch (error) {
      this.#warn(error, "could not check the transcript copies");
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
      this.#warn(error, "could not write the progress of the transcript copies");
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

/** Returns the sessions that have entries after this position. */
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
