// Restores the messages that only the JSONL copy of a transcript still has. To keep the order of the copy,
// the whole transcript is then written again. A deleted transcript is not restored, nor are messages of an
// inherited transcript that no fork shares.

import { closeSync, openSync, readSync, statSync } from "node:fs";
import { isObject, ownJson } from "../../core/json.ts";
import { NOT_YET_USED } from "../../core/shapes/session.ts";
import { agentIdInKey, type KeyRules, kindOf } from "../../core/shapes/session-key.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { insertSession, wasDeleted } from "../queries/sessions/sessions.ts";
import { linkFork } from "../queries/transcripts/forks.ts";
import { isInheritedTranscript, lastShared } from "../queries/transcripts/inherited.ts";
import type { Store, Tx } from "../sql.ts";
import { type Row, writeMessages } from "./copy-messages.ts";

/** Facts that a JSONL copy does not contain. */
interface CopyRules {
  readonly keys: KeyRules;
  /** Tables that may have lost rows. */
  readonly incomplete: readonly string[];
}

/** Number of entries per statement. */
const BATCH_ENTRIES = 64;
const READ_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
const ROLES: readonly unknown[] = ["user", "assistant", "toolResult"];

interface CopyHeader {
  readonly id: string;
  readonly key: string;
  readonly createdAt: number;
  readonly fork?: { readonly from: string; readonly at: string };
}

function copyHeaderOf(value: unknown): CopyHeader | undefined {
  if (!isObject(value) || value.type !== "session") return undefined;
  const { id, key, createdAt, forkedFrom } = value;
  const isWhole = typeof id === "string" && typeof key === "string" && typeof createdAt === "number";
  if (!isWhole) return undefined;
  const { sessionId: from, messageId: at } = isObject(forkedFrom) ? forkedFrom : {};
  const isFork = typeof from === "string" && typeof at === "string";
  return { id, key, createdAt, ...(isFork ? { fork: { from, at } } : {}) };
}

interface CopyLine {
  readonly id: string;
  readonly role: string;
  readonly timestamp: number;
  readonly text: string;
}

function copyLineOf(text: string): CopyLine | undefined {
  const value = ownJson(text);
  if (!isObject(value) || typeof value.id !== "string" || typeof value.timestamp !== "number")
    return undefined;
  const { id, timestamp } = value;
  if (value.type === "compaction") return { id, timestamp, text, role: "compaction" };
  return ROLES.includes(value.role) ? { id, timestamp, text, role: String(value.role) } : undefined;
}

/** Yields the complete lines of a file. Skips an incomplete last line. */
function* linesIn(file: string): Generator<string> {
  const handle = openSync(file, "r");
  try {
    const { size } = statSync(file);
    let rest = Buffer.alloc(0);
    for (let at = 0; at < size; at += READ_BYTES) {
      const bytes = Buffer.alloc(Math.min(READ_BYTES, size - at));
      rest = Buffer.concat([rest, bytes.subarray(0, readSync(handle, bytes, 0, bytes.length, at))]);
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        yield rest.toString("utf8", 0, end);
        rest = rest.subarray(end + 1);
      }
    }
  } finally {
    closeSync(handle);
  }
}

interface Brought {
  readonly sessions: number;
  readonly messages: number;
  /** Number of unreadable lines. */
  readonly unread: number;
}

/** Inserts the session of a copy if the store lacks it. Returns the number of inserted sessions, 0 or 1. */
async function ensureSession(tx: Tx, { id, key, createdAt }: CopyHeader, keys: KeyRules): Promise<number> {
  const current = await tx
    .selectFrom("sessions")
    .select(["session_id", "created_at"])
    .where("key", "=", key)
    .executeTakeFirst();
  if (current === undefined) {
    await tx.deleteFrom("session_ids").where("session_id", "=", id).execute();
    await insertSession(tx, {
      ...NOT_YET_USED,
      key,
      sessionId: id,
      createdAt,
      updatedAt: createdAt,
      spawnDepth: 0,
      external: false,
      agentId: agentIdInKey(key) ?? keys.defaultAgentId,
      kind: kindOf(key, keys),
    });
    return 1;
  }
  const newest = await tx
    .selectFrom("session_ids")
    .select((eb) => eb.fn.max("created_at").as("at"))
    .where("session_key", "=", key)
    .executeTakeFirst();
  await tx
    .insertInto("session_ids")
    .values({ session_id: id, session_key: key, created_at: createdAt })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  // If this transcript is newer than all that the store knows, the store has lost a reset of the session.
  if (createdAt > Number(newest?.at ?? 0)) {
    await tx
      .updateTable("sessions")
      .set({ session_id: id, first_words: null })
      .where("key", "=", key)
      .execute();
  }
  return 0;
}

/**
 * Writes a transcript again in the order of the JSONL copy, including the messages that the store lacks.
 * Messages that the store already had keep their link to a run.
 */
async function writeAnew(
  tx: Tx,
  head: CopyHeader,
  lines: readonly CopyLine[],
  redactor: Redactor,
): Promise<void> {
  const stored = await tx
    .selectFrom("messages")
    .select(["id", "session_id", "session_key", "run_id", "role", "entry_json", "created_at"])
    .where("session_id", "=", head.id)
    .orderBy("seq")
    .execute();
  const rows = new Map<string, Row>(stored.map((row) => [row.id, row]));
  const inCopy = new Set(lines.map(({ id }) => id));
  const whole = [
    ...lines.map((line) => rows.get(line.id) ?? rowOf(head, line)),
    ...stored.filter(({ id }) => !inCopy.has(id)),
  ];
  await tx.deleteFrom("messages").where("session_id", "=", head.id).execute();
  for (let at = 0; at < whole.length; at += BATCH_ENTRIES) {
    await writeMessages(tx, whole.slice(at, at + BATCH_ENTRIES), redactor);
  }
}

function rowOf(
  { id: session_id, key: session_key }: CopyHeader,
  { id, role, timestamp, text }: CopyLine,
): Row {
  return { id, session_id, session_key, run_id: null, role, entry_json: text, created_at: timestamp };
}

/** Returns the ids of the messages in the copy that the store lacks. */
async function missingOf(tx: Tx, lines: readonly CopyLine[]): Promise<Set<string>> {
  const missing = new Set(lines.map(({ id }) => id));
  for (let at = 0; at < lines.length; at += BATCH_ENTRIES) {
    const ids = lines.slice(at, at + BATCH_ENTRIES).map(({ id }) => id);
    const found = await tx.selectFrom("messages").select("id").where("id", "in", ids).execute();
    for (const { id } of found) missing.delete(id);
  }
  return missing;
}

/** Leaves out the last lines of an inherited transcript's copy, which no fork shares: they were deleted. */
async function withoutDeleted(tx: Tx, sessionId: string, lines: readonly CopyLine[]) {
  const last = await lastShared(tx, sessionId);
  const end = last === undefined ? -1 : lines.findIndex(({ id }) => id === last.id);
  return end < 0 ? lines : lines.slice(0, end + 1);
}

/** Restores, in one transaction, the messages that only the copy has. */
export async function bringBack(
  store: Store,
  file: string,
  redactor: Redactor,
  { keys, incomplete }: CopyRules,
): Promise<Brought> {
  const [first = "", ...texts] = linesIn(file);
  const head = copyHeaderOf(ownJson(first));
  if (head === undefined) return { sessions: 0, messages: 0, unread: texts.length + 1 };
  const read = texts.map(copyLineOf);
  const whole = read.filter((line) => line !== undefined);
  const unread = texts.length - whole.length;
  return store.transaction(async (tx): Promise<Brought> => {
    const known = await tx
      .selectFrom("session_ids")
      .select("session_key")
      .where("session_id", "=", head.id)
      .executeTakeFirst();
    const mayBeDeleted = known === undefined && !incomplete.includes("session_ids");
    if (mayBeDeleted && (await wasDeleted(tx, head.key, head.id)))
      return { sessions: 0, messages: 0, unread: 0 };
    // Without all rows of `session_ids`, it is unknown which messages forks share.
    const lines = incomplete.includes("session_ids") ? whole : await withoutDeleted(tx, head.id, whole);
    const missing = await missingOf(tx, lines);
    // Since the copy was written, another session may have inherited the transcript.
    const owner = { ...head, key: known?.session_key ?? head.key };
    const isCurrent = incomplete.includes("sessions") && !(await isInheritedTranscript(tx, head.id));
    const sessions = known === undefined || isCurrent ? await ensureSession(tx, owner, keys) : 0;
    if (known === undefined && head.fork !== undefined) await linkFork(tx, head.id, head.fork);
    if (missing.size === 0) return { sessions, messages: 0, unread };
    await writeAnew(tx, owner, lines, redactor);
    const newest = Math.max(...lines.slice(-1).map(({ timestamp }) => timestamp));
    await tx
      .updateTable("sessions")
      // The next start reads the first words again.
      .set((eb) => ({ updated_at: eb.fn("max", ["updated_at", eb.val(newest)]), first_words: null }))
      .where("key", "=", owner.key)
      .execute();
    return { sessions, messages: missing.size, unread };
  });
}
