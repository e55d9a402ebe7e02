// Writes one imported session and its transcript. Existing data wins: a session with its own conversation, or
// one that was used after its import, is not changed. If an unused session's transcript is the beginning of
// the source's, the rest is appended. An entry is written once, even if the import is repeated or
// interrupted: its id comes from the source. The number of entries and bytes is limited, per transaction and
// in memory.

import type { Entry } from "../../../core/shapes/message.ts";
import type { Session } from "../../../core/shapes/session.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { StoreConflict } from "../../../store/problems.ts";
import {
  holdLane,
  insertSession,
  replaceSessionId,
  updateSession,
} from "../../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../store/queries/transcripts/append.ts";
import type { Db, Store, Tx } from "../../../store/sql.ts";

const BATCH_ENTRIES = 200;
const BATCH_BYTES = 4 * 1024 * 1024;
const CONFLICTS_MAX = 8;

export interface ImportStore {
  /** The open store. Absent in a dry run if there is no store yet. */
  readonly db?: Db;
  /** Runs a function in a transaction. Absent in a dry run. */
  readonly transaction?: Store["transaction"];
  readonly redactor: Redactor;
}

/** The outcome for one session. `entries`: the number of entries that this import wrote. */
export type SessionOutcome =
  | { readonly kind: "added" | "topped_up"; readonly entries: number }
  | { readonly kind: "unchanged" }
  | { readonly kind: "left_alone"; readonly why: string };

const REASONS = {
  own: "a session with that key already has another conversation here",
  reset: "it was reset here after it was imported",
  deleted: "it was deleted here, and its transcript was kept",
  wentOn: "it was used here after it was imported",
  differs: "its conversation here differs from the source's",
  inUse: "it was used by a gateway during the import; run the import again",
} as const;

type Reason = keyof typeof REASONS;

const leave = (reason: Reason): SessionOutcome => ({ kind: "left_alone", why: REASONS[reason] });

/** State of the session in the store before the import. */
type ImportStatus =
  | { readonly kind: "absent" }
  /** A gateway created the session when it started, and nobody has used it. */
  | { readonly kind: "untouched" }
  | { readonly kind: "imported"; readonly entries: number; readonly laneSeq: number }
  | { readonly kind: "taken"; readonly reason: Reason };

/** Returns the key of the session that has this transcript in the store, or undefined. */
export async function ownerOfTranscript(db: Db, sessionId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("session_ids")
    .select("session_key")
    .where("session_id", "=", sessionId)
    .executeTakeFirst();
  return row?.session_key;
}

async function countEntries(db: Db, sessionId: string): Promise<number> {
  const row = await db
    .selectFrom("messages")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("session_id", "=", sessionId)
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

async function importStatusOf(db: Db, wanted: Session): Promise<ImportStatus> {
  const row = await db
    .selectFrom("sessions")
    .select(["session_id", "next_lane_seq", "label", "model", "thinking_level", "last_to", "spawn_json"])
    .where("key", "=", wanted.key)
    .executeTakeFirst();
  const owner = await ownerOfTranscript(db, wanted.sessionId);
  if (row === undefined)
    return owner === undefined ? { kind: "absent" } : { kind: "taken", reason: "deleted" };
  if (row.session_id === wanted.sessionId) {
    const entries = await countEntries(db, wanted.sessionId);
    return { kind: "imported", entries, laneSeq: row.next_lane_seq };
  }
  if (owner !== undefined) return { kind: "taken", reason: "reset" };
  const { next_lane_seq: laneSeq, session_id, ...set } = row;
  const isUntouched = laneSeq === 1 && Object.values(set).every((value) => value === null);
  if (isUntouched && (await countEntries(db, session_id)) === 0) return { kind: "untouched" };
  return { kind: "taken", reason: "own" };
}

/** Rolls back the transaction in which it is thrown, because the session can't be imported. */
class Taken extends Error {
  readonly reason: Reason;
  constructor(reason: Reason) {
    super(reason);
    this.reason = reason;
  }
}

class SessionWriter {
  readonly #store: ImportStore;
  readonly #session: Session;
  readonly #status: ImportStatus;
  /** Number of entries that the store had before this import. */
  readonly #there: number;
  #seen = 0;
  #begun = false;
  written = 0;

  constructor(store: ImportStore, session: Session, status: ImportStatus) {
    this.#store = store;
    this.#session = session;
    this.#status = status;
    this.#there = status.kind === "imported" ? status.entries : 0;
  }

  /** Returns whether all existing entries were also found in the source. */
  get hasMetAll(): boolean {
    return this.#seen >= this.#there;
  }

  async take(batch: readonly Entry[]): Promise<void> {
    const old = batch.slice(0, Math.max(0, this.#there - this.#seen));
    this.#seen += batch.length;
    await this.#check(old);
    const fresh = batch.slice(old.length);
    if (fresh.length > 0) await this.#write(fresh);
  }

  /** Creates the session even if there are no entries. */
  async finish(): Promise<void> {
    if (!this.#begun && this.#status.kind !== "imported") await this.#write([]);
  }

  async #check(old: readonly Entry[]): Promise<void> {
    const { db } = this.#store;
    if (old.length === 0 || db === undefined) return;
    const { sessionId } = this.#session;
    const ids = old.map(({ id }) => id);
    const found = await db
      .selectFrom("messages")
      .select("id")
      .where("id", "in", ids)
      .where("session_id", "=", sessionId)
      .execute();
    if (found.length !== new Set(ids).size) throw new Taken("differs");
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const { transaction, redactor } = this.#store;
    const isFirst = !this.#begun;
    this.#begun = true;
    this.written += entries.length;
    if (transaction === undefined) return;
    const { key: sessionKey, sessionId } = this.#session;
    for (let conflicts = 1; ; conflicts += 1) {
      try {
        await transaction(async (tx) => {
          await this.#hold(tx, isFirst);
          for (const entry of entries) await appendEntry(tx, { sessionKey, sessionId, entry }, redactor);
        });
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict) || conflicts === CONFLICTS_MAX) throw error;
      }
    }
  }

  /** Locks the session's row, and throws if somebody has used the session since the import started. */
  async #hold(tx: Tx, isFirst: boolean): Promise<void> {
    const session = this.#session;
    const lane = await holdLane(tx, session.key);
    if (isFirst && this.#status.kind === "absent") {
      if (lane !== undefined) throw new Taken("inUse");
      return insertSession(tx, session);
    }
    const laneSeq = this.#status.kind === "imported" ? this.#status.laneSeq : 1;
    if (lane === undefined || lane.laneSeq !== laneSeq) throw new Taken("inUse");
    if (isFirst && this.#status.kind === "untouched") {
      await replaceSessionId(tx, session.key, session.sessionId, session.createdAt);
      // The stored session keeps what it is, and its place among the others.
      const { key, sessionId, agentId, kind, external, spawnDepth, spawnedBy, ...changes } = session;
      return updateSession(tx, key, changes);
    }
    if (lane.session.sessionId !== session.sessionId) throw new Taken("inUse");
    if (!isFirst) return;
    // Updates the counters that have changed since the last import.
    const { updatedAt, inputTokens, outputTokens, totalTokens, contextUsed } = session;
    await updateSession(tx, session.key, {
      updatedAt,
      inputTokens,
      outputTokens,
      totalTokens,
      contextUsed,
    });
  }
}

/** Writes a session and the missing entries of its transcript. */
export async function writeSession(
  store: ImportStore,
  session: Session,
  entries: AsyncIterable<Entry>,
): Promise<SessionOutcome> {
  const status: ImportStatus =
    store.db === undefined ? { kind: "absent" } : await importStatusOf(store.db, session);
  if (status.kind === "taken") return leave(status.reason);
  const writer = new SessionWriter(store, session, status);
  let batch: Entry[] = [];
  let bytes = 0;
  try {
    for await (const entry of entries) {
      batch.push(entry);
      bytes += JSON.stringify(entry).length;
      if (batch.length < BATCH_ENTRIES && bytes < BATCH_BYTES) continue;
      await writer.take(batch);
      batch = [];
      bytes = 0;
    }
    if (batch.length > 0) await writer.take(batch);
    if (!writer.hasMetAll) return leave("wentOn");
    await writer.finish();
  } catch (error) {
    if (error instanceof Taken) return leave(error.reason);
    throw error;
  }
  if (status.kind !== "imported") return { kind: "added", entries: writer.written };
  return writer.written === 0 ? { kind: "unchanged" } : { kind: "topped_up", entries: writer.written };
}
