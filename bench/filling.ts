// Fills an embedded store quickly with many sessions and messages. It writes the rows that Parley would
// write, but in large transactions and over a second connection to the open store. The newest rows are the
// same at every size; a larger store only has more old rows. So reads at 1,000 and at 1,000,000 rows can be
// compared.

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SessionKind } from "../src/core/shapes/session.ts";
import { placeTokens, spaceWords } from "../src/store/queries/transcripts/search-text.ts";
import { STORE_FILE } from "../src/store/sqlite/sqlite.ts";

const BATCH = 50_000;
/** One in this many sessions has the rare kind, the rare label and the rare agent. */
const RARE_EVERY = 50_000;
const SPACING_MS = 1_000;

export const RARE_LABEL = "zebra crossing";
export const RARE_KIND: SessionKind = "hook";
export const RARE_AGENT = "quiet";
/** A text of ordinary length; its content is irrelevant. */
export const SENTENCE = "a sentence of ordinary length, as people write them to each other. ".repeat(3);

/** Number of sessions, the newest, that have a readable copy of their transcript, as used ones do. */
const COPIES = 1_000;

const FIRST_WORDS_CHARS = 160;

/** Adds rows to the store in `dir` while it is open. */
export class Filling {
  readonly #database: DatabaseSync;
  readonly #dir: string;
  readonly #nowMs: number;

  constructor(dir: string, nowMs: number) {
    this.#dir = dir;
    this.#nowMs = nowMs;
    this.#database = new DatabaseSync(join(dir, STORE_FILE), { timeout: 10_000 });
    // Writes need not be synced: if a power cut loses rows, they can be created again.
    this.#database.exec("pragma synchronous = off; pragma cache_size = -262144");
  }

  /** Inserts the sessions from `from` to `to`. A smaller number is a newer session. */
  sessions(from: number, to: number): void {
    const insert = this.#database.prepare(`insert into sessions (key, session_id, agent_id, kind, label,
        created_at, updated_at, archived_at, spawned_by, spawn_depth, external, system_sent, aborted_last_run,
        input_tokens, output_tokens, total_tokens, context_tokens)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 0, 900, 100, 1000, 1000)`);
    const remember = this.#database.prepare(
      "insert into session_ids (session_id, session_key, created_at) values (?, ?, ?)",
    );
    this.#inBatches(from, to, (at) => {
      const key = sessionKeyOf(at);
      const updatedAt = this.#nowMs - (at + 1) * SPACING_MS;
      const child = isChild(at);
      insert.run(
        key,
        sessionIdOf(at),
        agentOf(at),
        kindOf(at),
        labelOf(at),
        updatedAt - 60_000,
        updatedAt,
        ...[at % 20 === 7 ? updatedAt : null, child ? sessionKeyOf(at + 1) : null, child ? 1 : 0],
      );
      remember.run(sessionIdOf(at), key, updatedAt);
      if (at < COPIES) writeFileSync(join(this.#dir, `${sessionIdOf(at)}.jsonl`), "");
    });
  }

  /** Inserts the messages from `from` to `to`. `of` returns the session and the text of each. */
  messages(from: number, to: number, of: (at: number) => MessageOf): void {
    const insert = this.#database.prepare(`insert into messages (seq, id, session_id, session_key, role,
        entry_json, created_at) values (?, ?, ?, ?, ?, ?, ?)`);
    const index = this.#database.prepare("insert into message_texts (rowid, text, place) values (?, ?, ?)");
    const name = this.#database.prepare(
      "update sessions set first_words = ? where session_id = ? and first_words is null",
    );
    const { last } = this.#database.prepare("select coalesce(max(seq), 0) as last from messages").get() as {
      last: number;
    };
    this.#inBatches(from, to, (at) => {
      const { sessionKey, sessionId, agentId, text } = of(at);
      const seq = last + 1 + at - from;
      const id = `message-${seq}`;
      const role = at % 2 === 0 ? "user" : "assistant";
      const entry = { id, role, content: [{ type: "text", text }], timestamp: at };
      insert.run(seq, id, sessionId, sessionKey, role, JSON.stringify(entry), at);
      if (role === "user") name.run(text.slice(0, FIRST_WORDS_CHARS), sessionId);
      index.run(seq, spaceWords(text), placeTokens(sessionKey, agentId).join(" "));
    });
  }

  /**
   * Copies the write-ahead log into the database and empties it, so that reads do not depend on its length.
   */
  settle(): void {
    this.#database.exec("pragma wal_checkpoint(truncate)");
  }

  close(): void {
    this.#database.close();
  }

  #inBatches(from: number, to: number, work: (at: number) => void): void {
    for (let start = from; start < to; start += BATCH) {
      this.#database.exec("begin immediate");
      for (let at = start; at < Math.min(to, start + BATCH); at += 1) work(at);
      this.#database.exec("commit");
    }
  }
}

interface MessageOf {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly text: string;
}

function uuidOf(at: number): string {
  const hex = createHash("md5").update(String(at)).digest("hex");
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})/, "$1-$2-4$3-8$4-");
}

export const sessionIdOf = (at: number): string => uuidOf(at + 0.5);

/** Returns the columns of a message that name its session: the session with this number. */
export const placeOf = (at: number): Omit<MessageOf, "text"> => ({
  sessionKey: sessionKeyOf(at),
  sessionId: sessionIdOf(at),
  agentId: agentOf(at),
});

const isRare = (at: number): boolean => at % RARE_EVERY === RARE_EVERY - 1;
/** Every fifth session is a child of the next older session. */
const isChild = (at: number): boolean => at % 5 === 4 && !isRare(at);

function agentOf(at: number): string {
  if (isRare(at)) return RARE_AGENT;
  return at % 10 < 6 ? "main" : "research";
}

export function sessionKeyOf(at: number): string {
  return `agent:${agentOf(at)}:${isChild(at) ? "subagent" : "chat"}:${uuidOf(at)}`;
}

function kindOf(at: number): SessionKind {
  if (isRare(at)) return RARE_KIND;
  return at % 10 === 1 ? "group" : at % 10 === 2 ? "cron" : "other";
}

function labelOf(at: number): string {
  return isRare(at) ? RARE_LABEL : `conversation ${at}`;
}
