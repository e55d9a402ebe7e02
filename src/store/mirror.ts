// Owns the readable copy of each transcript: `<store dir>/<sessionId>.jsonl`, a header line, then an entry a
// line.
// MI1: the table is the truth: the copy is written after the commit, from the table, in its order, and
//      repaired from it. Nothing ever reads the copy to know what was said.
// MI2: a copy that cannot be written is logged and tried again at the next entry; no run ever fails for it.
// MI3: after a crash every copy that may be behind is found: from a note of how far all copies once were,
//      and, as a power loss may cost more than the note says, among the newest sessions.

import { appendFile, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import type { Log } from "../world.ts";
import type { Db } from "./sql.ts";

const PROGRESS_FILE = "mirror.progress";
/**
 * Entries after which the note of progress is written anew: what a start after a crash looks through at most.
 */
const PROGRESS_STEP = 1_000;
/** Sessions whose copies are looked at when the gateway starts. */
const CHECKED_AT_START = 200;
/** Entries that are read and written at once. */
const BATCH_ENTRIES = 64;
/** Copies whose last position is kept in memory; others are read from the file's end. */
const KNOWN_MAX = 1_000;
const TAIL_BYTES = 16 * 1024;
const NEWLINE = 0x0a;
/** Session ids become file names: anything but plain ones is left out. */
const PLAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

export interface Mirror {
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
export function openMirror(parts: Parts): Mirror {
  return new CopyQueue(parts);
}

/** Which copies have to be written; one worker at a time writes them. */
class CopyQueue implements Mirror {
  readonly #parts: Parts;
  readonly #writer: CopyWriter;
  readonly #noted = new Set<string>();
  /** Noted, tried and not written. */
  readonly #behind = new Set<string>();
  #working: Promise<void> | undefined;
  /** Up to here every copy was once complete. */
  #written = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#writer = new CopyWriter(parts.dir, parts.db);
    this.#start(() => this.#noteAll());
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
    try {
      await this.#writer.bringUpToDate(sessionId);
    } catch (error) {
      this.#behind.add(sessionId);
      this.#writer.forget(sessionId);
      this.#warn(error, "transcript copy not written", sessionId);
    }
  }

  async #noteAll(): Promise<void> {
    const { dir, db } = this.#parts;
    // Without the note, as at the first start, everything counts as behind.
    const text = await readFile(join(dir, PROGRESS_FILE), "utf8").catch(() => "");
    this.#written = Number.parseInt(text, 10) || 0;
    try {
      for (const sessionId of await maybeBehind(db, this.#written)) this.#noted.add(sessionId);
    } catch (error) {
      this.#warn(error, "transcript copies not checked");
    }
  }

  async #saveProgress(seq: number): Promise<void> {
    try {
      await writeFile(join(this.#parts.dir, PROGRESS_FILE), `${seq}\n`, { mode: 0o600 });
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

async function maybeBehind(db: Db, writtenUpTo: number): Promise<string[]> {
  const late = await db
    .selectFrom("messages")
    .select("session_id")
    .distinct()
    .where("seq", ">", writtenUpTo)
    .execute();
  const newest = await sql<{ session_id: string }>`select session_id from sessions
    where archived = 0 order by updated_at desc, key desc limit ${CHECKED_AT_START}`.execute(db);
  return [...new Set([...newest.rows, ...late].map((row) => row.session_id))];
}

/** Writes single copies; one call at a time. */
class CopyWriter {
  readonly #dir: string;
  readonly #db: Db;
  /** The last position in each copy, for those used last. */
  readonly #known = new Map<string, number>();

  constructor(dir: string, db: Db) {
    this.#dir = dir;
    this.#db = db;
  }

  fileOf(sessionId: string): string {
    return join(this.#dir, `${sessionId}.jsonl`);
  }

  forget(sessionId: string): void {
    this.#known.delete(sessionId);
  }

  async remove(sessionId: string): Promise<void> {
    this.#known.delete(sessionId);
    if (PLAIN_ID.test(sessionId)) await rm(this.fileOf(sessionId), { force: true });
  }

  async bringUpToDate(sessionId: string): Promise<void> {
    if (!PLAIN_ID.test(sessionId)) return;
    const known = this.#known.get(sessionId) ?? (await this.#repaired(sessionId));
    if (known === undefined) return;
    let last = known;
    for (;;) {
      const rows = await this.#db
        .selectFrom("messages")
        .select(["seq", "entry_json"])
        .where("session_id", "=", sessionId)
        .where("seq", ">", last)
        .orderBy("seq")
        .limit(BATCH_ENTRIES)
        .execute();
      if (rows.length > 0) {
        await appendFile(this.fileOf(sessionId), rows.map((row) => `${row.entry_json}\n`).join(""), {
          mode: 0o600,
        });
      }
      last = rows[rows.length - 1]?.seq ?? last;
      if (rows.length < BATCH_ENTRIES) break;
    }
    this.#remember(sessionId, last);
  }

  #remember(sessionId: string, seq: number): void {
    this.#known.delete(sessionId);
    this.#known.set(sessionId, seq);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  /**
   * The position at which the file ends, once a torn line is cut off; undefined: there is no such transcript.
   */
  async #repaired(sessionId: string): Promise<number | undefined> {
    const owner = await this.#db
      .selectFrom("session_ids")
      .selectAll()
      .where("session_id", "=", sessionId)
      .executeTakeFirst();
    if (owner === undefined) return undefined;
    const id = await lastWholeId(this.fileOf(sessionId));
    if (id === sessionId) return 0;
    if (id !== undefined) {
      const row = await this.#db
        .selectFrom("messages")
        .select(["seq", "session_id"])
        .where("id", "=", id)
        .executeTakeFirst();
      if (row?.session_id === sessionId) return row.seq;
    }
    const { session_key: key, created_at: createdAt } = owner;
    const header = { type: "session", version: 1, id: sessionId, key, createdAt };
    // Renamed into place, so that a reader never meets half a header.
    const file = this.fileOf(sessionId);
    await writeFile(`${file}.new`, `${JSON.stringify(header)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
    return 0;
  }
}

/**
 * The id in the last whole line of a file, the header's if there is no other; what follows that line is cut
 * off.
 */
async function lastWholeId(file: string): Promise<string | undefined> {
  const handle = await open(file, "r+").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
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
      return idIn(tail.toString("utf8", start + 1, end));
    }
    return undefined;
  } finally {
    await handle.close();
  }
}

function idIn(line: string): string | undefined {
  try {
    const { id } = JSON.parse(line) as { id?: unknown };
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}
