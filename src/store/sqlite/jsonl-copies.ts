// Owns the JSONL copy of each transcript: `<store dir>/<sessionId>.jsonl`, with a header line and one entry
// per line, for people and programs that read files.
// MI1: the table is authoritative, and transcripts are never read from their copies. A copy is only appended
//      to, after the commit and in the order of the table. A failed write is logged and tried again with the
//      next entry of the session; no run fails because of it. If the table does not have the last entry of a
//      copy, the whole transcript follows again, after a new header.
// The copy of a deleted transcript is removed; after a crash, at the next start.

import { appendFile, type FileHandle, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isObject, ownJson } from "../../core/json.ts";
import { pause } from "../../world/pause.ts";
import type { Clock } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import { wasDeleted } from "../queries/sessions/sessions.ts";
import { inheritedTranscripts, isInheritedTranscript } from "../queries/transcripts/inherited.ts";
import type { Db } from "../sql.ts";

/** Time to wait for further entries, so that several entries of a session need only one write. */
const GATHER_MS = 100;
/** Number of newest sessions whose copies are completed when the gateway starts. */
const COMPLETED_AT_START = 200;
/** Entries with this number of characters together are written. */
const WRITE_CHARS = 64 * 1024;
const TAIL_BYTES = 16 * 1024;
const HEAD_BYTES = 4 * 1024;
const NEWLINE = 0x0a;
const ENDING = ".jsonl";
/** Session ids are used as file names. A session whose id is not a safe file name gets no copy. */
const PLAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

interface Parts {
  readonly dir: string;
  readonly log: Log;
  readonly db: Db;
  /** Clock that measures the wait for further entries. If absent, entries are written as soon as possible. */
  readonly clock?: Clock;
}

export type JsonlCopies = Pick<CopyQueue, "note" | "flush" | "remove">;

/** Opens the copies of a store directory, and updates them in the background. */
export function openJsonlCopies(parts: Parts): JsonlCopies {
  return new CopyQueue(parts);
}

/** The queue of copies to write. A single worker writes them. */
class CopyQueue {
  readonly #parts: Parts;
  readonly #noted = new Set<string>();
  #working: Promise<void> | undefined;
  /** Number of callers that are waiting for the queue to become empty. */
  #flushes = 0;
  #gathering = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#start(() => this.#takeStock());
  }

  /**
   * Reports that entries of this session were committed, or that the session was created. Returns
   * immediately.
   */
  note(sessionId: string): void {
    this.#noted.add(sessionId);
    if (this.#working === undefined) this.#start();
  }

  /** Resolves when each reported entry was written, or its failure was logged. */
  async flush(): Promise<void> {
    this.#flushes += 1;
    this.#gathering.abort();
    while (this.#working !== undefined) await this.#working;
    this.#flushes -= 1;
  }

  /**
   * Deletes the copy of a deleted transcript. Writes the copy again if a fork still shares a part of the
   * transcript.
   */
  async remove(sessionId: string): Promise<void> {
    this.#noted.delete(sessionId);
    this.#start(() => this.#remove(sessionId));
    if (await isInheritedTranscript(this.#parts.db, sessionId).catch(() => false)) this.note(sessionId);
    await this.flush();
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
    const { clock } = this.#parts;
    while (this.#noted.size > 0) {
      if (clock !== undefined && this.#flushes === 0) {
        this.#gathering = new AbortController();
        await pause(clock, GATHER_MS, this.#gathering.signal);
      }
      for (const sessionId of [...this.#noted]) {
        this.#noted.delete(sessionId);
        await this.#try("could not write a transcript copy", sessionId, () => this.#append(sessionId));
      }
    }
  }

  /** Completes the copies of the newest sessions, and removes those that a crash has left. */
  async #takeStock(): Promise<void> {
    const { dir, db } = this.#parts;
    const newest = db.selectFrom("sessions").select("session_id").where("archived", "=", 0);
    await this.#try("could not complete the transcript copies", undefined, async () => {
      const rows = newest.orderBy("updated_at", "desc").orderBy("key", "desc").limit(COMPLETED_AT_START);
      for (const { session_id: id } of await rows.execute()) this.#noted.add(id);
    });
    await this.#try("could not look for copies of deleted transcripts", undefined, async () => {
      // An earlier version recorded its progress.
      await rm(join(dir, "mirror.progress"), { force: true });
      const ids = (await readdir(dir)).filter((name) => name.endsWith(ENDING));
      for (const id of ids.map((name) => name.slice(0, -ENDING.length))) {
        if ((await this.#ownerOf(id)) !== undefined) continue;
        // A copy that was not deleted here may be all that is left of another database.
        const key = await keyIn(this.#fileOf(id));
        if (key !== undefined && (await wasDeleted(db, key, id))) await this.#remove(id);
      }
      // The copy of an inherited transcript (inherited.ts) may still have messages that were deleted.
      for (const { sessionId } of await inheritedTranscripts(db)) {
        await this.#remove(sessionId);
        this.#noted.add(sessionId);
      }
    });
  }

  async #append(sessionId: string): Promise<void> {
    const { db } = this.#parts;
    let last = PLAIN_ID.test(sessionId) ? await this.#endOf(sessionId) : undefined;
    for (let lines = ""; last !== undefined; ) {
      const entry: { seq: number; text: string } | undefined = await db
        .selectFrom("messages")
        .select(["seq", "entry_json as text"])
        .where("session_id", "=", sessionId)
        .where("seq", ">", last)
        .orderBy("seq")
        .limit(1)
        .executeTakeFirst();
      if (entry !== undefined) lines += `${entry.text}\n`;
      if (lines !== "" && (entry === undefined || lines.length >= WRITE_CHARS)) {
        await this.#write(sessionId, lines);
        lines = "";
      }
      last = entry?.seq;
    }
  }

  /** Returns the position of the last entry in a copy, or undefined if the transcript does not exist. */
  async #endOf(sessionId: string): Promise<number | undefined> {
    const owner = await this.#ownerOf(sessionId);
    if (owner === undefined) return undefined;
    const { line, rest } = await lastLine(this.#fileOf(sessionId));
    // A line that a crash has cut stays, and ends here.
    if (rest !== "") await this.#write(sessionId, "\n");
    const id = textIn(rest, "id") ?? textIn(line, "id");
    if (id === sessionId) return 0;
    const messages = this.#parts.db.selectFrom("messages").select("seq").where("session_id", "=", sessionId);
    const row = await messages.where("id", "=", id ?? "").executeTakeFirst();
    if (row !== undefined) return row.seq;
    const { session_key: key, created_at: createdAt, forked_from: from, forked_at: at } = owner;
    const fork = from === null || at === null ? {} : { forkedFrom: { sessionId: from, messageId: at } };
    const header = { type: "session", version: 1, id: sessionId, key, createdAt, ...fork };
    await this.#write(sessionId, `${JSON.stringify(header)}\n`);
    return 0;
  }

  #ownerOf(sessionId: string) {
    const owner = this.#parts.db.selectFrom("session_ids").selectAll().where("session_id", "=", sessionId);
    return owner.executeTakeFirst();
  }

  #fileOf(sessionId: string): string {
    return join(this.#parts.dir, `${sessionId}${ENDING}`);
  }

  #write(sessionId: string, lines: string): Promise<void> {
    return appendFile(this.#fileOf(sessionId), lines, { mode: 0o600 });
  }

  async #remove(sessionId: string): Promise<void> {
    if (!PLAIN_ID.test(sessionId)) return;
    const file = this.#fileOf(sessionId);
    await this.#try("could not remove a transcript copy", sessionId, async () => {
      await rm(file, { force: true });
      // An earlier version kept copies with messages that the store lacked under these names.
      for (let number = 1; await isRemoved(`${file}.ahead-${number}`); number += 1);
    });
  }

  async #try(text: string, sessionId: string | undefined, work: () => Promise<void>): Promise<void> {
    const place = sessionId === undefined ? {} : { sessionId, file: this.#fileOf(sessionId) };
    await work().catch((error: unknown) => this.#parts.log.warn({ err: error, ...place }, text));
  }
}

/** Removes a file. Returns false if it did not exist. */
async function isRemoved(file: string): Promise<boolean> {
  return rm(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}

async function inFile<T>(
  file: string,
  work: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T | undefined> {
  const handle = await open(file, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    return await work(handle, (await handle.stat()).size);
  } finally {
    await handle.close();
  }
}

interface LastLine {
  /** The last complete line. Empty if there is none. */
  readonly line: string;
  /** The text after it, which is not a complete line. */
  readonly rest: string;
}

async function lastLine(file: string): Promise<LastLine> {
  const found = await inFile(file, async (handle, size): Promise<LastLine> => {
    for (let bytes = Math.min(size, TAIL_BYTES); ; bytes = Math.min(size, bytes * 4)) {
      const tail = Buffer.alloc(bytes);
      await handle.read(tail, 0, bytes, size - bytes);
      const end = tail.lastIndexOf(NEWLINE);
      const start = end <= 0 ? -1 : tail.lastIndexOf(NEWLINE, end - 1);
      if (start < 0 && bytes < size) continue;
      return {
        line: tail.toString("utf8", start + 1, Math.max(0, end)),
        rest: tail.toString("utf8", end + 1),
      };
    }
  });
  return found ?? { line: "", rest: "" };
}

/** Returns the session key in the header of a copy. */
function keyIn(file: string): Promise<string | undefined> {
  return inFile(file, async (handle) => {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const [line = ""] = buffer.toString("utf8", 0, bytesRead).split("\n", 1);
    return textIn(line, "key");
  });
}

function textIn(line: string, field: "id" | "key"): string | undefined {
  const value = ownJson(line);
  const text = isObject(value) ? value[field] : undefined;
  return typeof text === "string" ? text : undefined;
}
