// Reads the entries of transcripts in order. append.ts writes them, transcript-search.ts searches them, and
// forks.ts finds the parts of a fork's transcript, which are stored under several session ids.
// A transcript keeps every entry; a compaction only shortens the model's context.
// T3: no read holds more than PAGE_BYTES_MAX in memory, unless a single entry is larger.

import { sql } from "kysely";
import { forkOrigin } from "../../../core/fork-key.ts";
import { optional } from "../../../core/optional.ts";
import type { Pace } from "../../../core/pace.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import { type Entry, isCompaction, type Message, textOf } from "../../../core/shapes/message.ts";
import { prepared } from "../../prepared.ts";
import type { Db } from "../../sql.ts";
import { readLabelsJson, transcriptLabels } from "../labels.ts";
import { entriesIn, forkMarkerId, partBefore, partsFrom, partsOf, type TranscriptPart } from "./forks.ts";
import { ENTRY_COLUMNS, type EntryRow, readEntry, readMessage } from "./stored-entry.ts";

/** Maximum number of stored bytes in a page of history. The page ends earlier if its messages are large. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum number of stored bytes that one query of a page reads, except for a single larger entry. */
const READ_BYTES_MAX = 1024 * 1024;

/** The message before or after which a page is read. Without a message, the newest page is read. */
type HistoryPosition =
  | {
      readonly way: "back";
      /** The part in which the page ends. */
      readonly part: TranscriptPart;
      readonly before?: { readonly seq: number; readonly id: string };
    }
  | {
      readonly way: "on";
      /** The part in which the page begins, and the parts that follow it. */
      readonly parts: readonly TranscriptPart[];
      readonly afterSeq: number;
      readonly afterRun?: string;
    };

interface Page {
  /** Yields to other work between two parts of a large page. */
  readonly pace?: Pace | undefined;
  readonly place: HistoryPosition;
  readonly includeTools: boolean;
  readonly limit: number;
}

function messagesIn(db: Db, part: TranscriptPart, includeTools: boolean) {
  const query = entriesIn(db, part).where("role", "!=", "compaction");
  return includeTools ? query : query.where("role", "!=", "toolResult");
}

interface EntryPosition {
  readonly seq: number;
  readonly id: string;
  readonly bytes: number;
  readonly part: TranscriptPart;
  /** Labels of the transcript, as JSON. */
  readonly labels: string | null;
}

/** Returns the positions of a page, and one more if another page follows. */
async function pagePositions(db: Db, { place, limit, includeTools }: Page): Promise<EntryPosition[]> {
  const found: EntryPosition[] = [];
  const read = async (part: TranscriptPart, way: "asc" | "desc", beyond: number | undefined) => {
    let query = messagesIn(db, part, includeTools).select([
      "seq",
      "id",
      sql<number>`octet_length(entry_json)`.as("bytes"),
      transcriptLabels(part.sessionId).as("labels"),
    ]);
    if (beyond !== undefined) query = query.where("seq", way === "asc" ? ">" : "<", beyond);
    const rows = await query
      .orderBy("seq", way)
      .limit(limit + 1 - found.length)
      .execute();
    found.push(...rows.map((row) => ({ ...row, part })));
    return rows.at(-1)?.id;
  };
  if (place.way === "on") {
    for (const [index, part] of place.parts.entries()) {
      await read(part, "asc", index === 0 ? place.afterSeq : undefined);
      if (found.length > limit) break;
    }
    return found;
  }
  let part: TranscriptPart | undefined = place.part;
  for (let { before } = place; part !== undefined; before = undefined) {
    const oldest = (await read(part, "desc", before?.seq)) ?? before?.id;
    if (found.length > limit || oldest !== forkMarkerId(part.sessionId)) break;
    part = await partBefore(db, part.sessionId);
  }
  return found;
}

/**
 * Returns how many of the first rows have at most `bytesMax` bytes in total. Returns at least 1 if there are
 * rows.
 */
function countWithin(rows: readonly { readonly bytes: number }[], bytesMax: number): number {
  let bytes = 0;
  const first = rows.findIndex((row, at) => {
    bytes += row.bytes;
    return at > 0 && bytes > bytesMax;
  });
  return first < 0 ? rows.length : first;
}

/**
 * Reads the messages of a page, the oldest first, and the position of the first one. `more`: more entries
 * follow in the direction of the page.
 */
async function readPage(db: Db, page: Page) {
  const positions = await pagePositions(db, page);
  const count = countWithin(positions.slice(0, page.limit), PAGE_BYTES_MAX);
  const messages: Message[] = [];
  const runIds = new Map<string, string>();
  const rest = positions.slice(0, count);
  if (page.place.way === "back") rest.reverse();
  const [first] = rest;
  for (let next = first; next !== undefined; next = rest[0]) {
    const { part, seq } = next;
    const other = rest.findIndex((one) => one.part !== part);
    const some = rest.splice(0, countWithin(other < 0 ? rest : rest.slice(0, other), READ_BYTES_MAX));
    await page.pace?.();
    const rows = await messagesIn(db, part, page.includeTools)
      .select(["run_id", ...ENTRY_COLUMNS])
      .where("seq", ">=", seq)
      .where("seq", "<=", some.at(-1)?.seq ?? 0)
      .orderBy("seq")
      .execute();
    for (const row of rows) {
      messages.push(readMessage(row));
      if (row.run_id !== null) runIds.set(row.id, row.run_id);
    }
  }
  const labels = readLabelsJson(...positions.map((position) => position.labels));
  return { first, messages, runIds, more: positions.length > count, ...optional({ labels }) };
}

/** Messages of a transcript, the oldest first, with the labels of the whole transcript. */
interface ReadMessages {
  readonly messages: Message[];
  readonly labels?: Labels;
}

export interface HistoryPage extends ReadMessages {
  /** Run ids, by message id. Also has an entry for the message after which the page begins. */
  readonly runIds: ReadonlyMap<string, string>;
  /** Id of the oldest message of this page. Absent if there are no older messages. */
  readonly nextBefore?: string;
  /** Id of the newest message of this page. Absent if there are no newer messages. */
  readonly nextAfter?: string;
}

/** Selects a page of a transcript: at most one of `before`, `after` and `from`, each a message id. */
export interface HistoryWanted {
  /** Yields to other work between two parts of a large page. */
  readonly pace?: Pace;
  readonly sessionId: string;
  readonly limit: number;
  readonly includeTools: boolean;
  /** Ends the page before this message. */
  readonly before?: string;
  /** Begins the page after this message. */
  readonly after?: string;
  /** Begins the page with this message. */
  readonly from?: string;
}

async function positionOf(db: Db, wanted: HistoryWanted): Promise<Result<HistoryPosition>> {
  const { before, after, from, sessionId } = wanted;
  const id = before ?? after ?? from;
  if (id === undefined) return ok({ way: "back", part: { sessionId } });
  const row = await db
    .selectFrom("messages")
    .select(["seq", "session_id", "run_id"])
    .where("id", "=", id)
    .executeTakeFirst();
  const parts = row === undefined ? [] : await partsFrom(db, sessionId, row);
  const [part] = parts;
  if (row === undefined || part === undefined) {
    return fail("message_not_found", `No message ${JSON.stringify(id)} in this transcript.`, {
      hint: "Use a message id from this session's history, or omit it to get the newest page.",
    });
  }
  if (before !== undefined) return ok({ way: "back", part, before: { seq: row.seq, id } });
  if (after === undefined) return ok({ way: "on", parts, afterSeq: row.seq - 1 });
  const afterRun = row.run_id === null ? {} : { afterRun: row.run_id };
  return ok({ way: "on", parts, afterSeq: row.seq, ...afterRun });
}

/**
 * Reads a page of a transcript: the newest `limit` messages, or those before or after a message. If the
 * messages are large, the page has fewer than `limit`; `nextBefore` and `nextAfter` say whether there are
 * more.
 */
export async function readHistory(db: Db, wanted: HistoryWanted): Promise<Result<HistoryPage>> {
  const { limit, includeTools, after, pace } = wanted;
  const found = await positionOf(db, wanted);
  if (!found.ok) return found;
  const place = found.value;
  const { first, messages, runIds, more, labels } = await readPage(db, { pace, limit, includeTools, place });
  const [oldest, newest] = [messages[0], messages.at(-1)];
  const onward = place.way === "on";
  const back = first && ({ way: "back", part: first.part, before: first } as const);
  const positions = back && onward ? await pagePositions(db, { place: back, limit: 0, includeTools }) : [];
  const older = onward ? positions.length > 0 : more;
  const newer = onward ? more : wanted.before !== undefined;
  const afterRun = onward ? place.afterRun : undefined;
  return ok({
    messages,
    ...optional({ labels }),
    runIds: after === undefined || afterRun === undefined ? runIds : new Map([[after, afterRun], ...runIds]),
    ...(older && oldest !== undefined ? { nextBefore: oldest.id } : {}),
    ...(newer && newest !== undefined ? { nextAfter: newest.id } : {}),
  });
}

/** Reads the newest messages of a transcript, oldest first. */
export async function lastMessages(
  db: Db,
  sessionId: string,
  limit: number,
  what: { includeTools: boolean },
): Promise<Message[]> {
  return (await lastLabelled(db, sessionId, limit, what)).messages;
}

/** Like `lastMessages`, with labels. */
export function lastLabelled(
  db: Db,
  sessionId: string,
  limit: number,
  { includeTools }: { includeTools: boolean },
): Promise<ReadMessages> {
  return readPage(db, { limit, includeTools, place: { way: "back", part: { sessionId } } });
}

/** Selects the compactions of a part, the newest first. */
const compactionsIn = (db: Db, part: TranscriptPart) =>
  entriesIn(db, part)
    .select(["seq", ...ENTRY_COLUMNS])
    .where("role", "=", sql.lit("compaction"))
    .orderBy("seq", "desc");

/** Returns whether this run stored a compaction. */
export async function hasCompaction(db: Db, runId: string): Promise<boolean> {
  const found = await db
    .selectFrom("messages")
    .select("id")
    .where("run_id", "=", runId)
    .where("role", "=", sql.lit("compaction"))
    .executeTakeFirst();
  return found !== undefined;
}

/** Reads a whole transcript, but returns no rows if it contains a compaction. */
const UNCOMPACTED = prepared((db, { sessionId }: { sessionId: string }) => {
  const compactions = db
    .selectFrom("messages as compaction")
    .select("compaction.seq")
    .where("compaction.session_id", "=", sessionId)
    .where("compaction.role", "=", sql.lit("compaction"));
  return db
    .selectFrom("messages")
    .select(["seq", ...ENTRY_COLUMNS])
    .where("session_id", "=", sessionId)
    .where((eb) => eb.not(eb.exists(compactions)))
    .orderBy("seq");
});

/** The row of an entry, with its position. */
export type ContextRow = EntryRow & { readonly seq: number };

/** Returns the position of the first message that a compaction kept, in one part of a transcript. */
async function firstKeptIn(db: Db, part: TranscriptPart, row: ContextRow): Promise<number | undefined> {
  const compaction = readEntry(row);
  if (!isCompaction(compaction)) return undefined;
  const kept = await db
    .selectFrom("messages")
    .select("seq")
    .where("id", "=", compaction.firstKeptId)
    .where("session_id", "=", part.sessionId)
    .executeTakeFirst();
  return kept?.seq;
}

/** Reads the entries of a part from a position on, without its compactions. */
function messageRows(db: Db, part: TranscriptPart, from = 0): Promise<ContextRow[]> {
  const messages = messagesIn(db, part, true).select(["seq", ...ENTRY_COLUMNS]);
  return messages.where("seq", ">=", from).orderBy("seq").execute();
}

/**
 * Reads the rows of the model's context: the last compaction, if there is one, and the entries from its
 * `firstKeptId` on.
 */
async function contextRows(db: Db, sessionId: string): Promise<ContextRow[]> {
  // Most transcripts have no compaction, so this query is enough.
  const { rows: whole } = await UNCOMPACTED(db, { sessionId });
  const isFork = whole[0]?.id === forkMarkerId(sessionId);
  if (whole.length > 0 && !isFork) return whole;
  const last = await compactionsIn(db, { sessionId }).limit(1).executeTakeFirst();
  if (isFork || last === undefined) return isFork ? contextOfFork(db, sessionId) : [];
  const kept = await firstKeptIn(db, { sessionId }, last);
  if (kept !== undefined) return [last, ...(await messageRows(db, { sessionId }, kept))];
  return (await partBefore(db, sessionId)) === undefined
    ? [last, ...(await messageRows(db, { sessionId }, last.seq))]
    : contextOfFork(db, sessionId);
}

/** Like `contextRows`, for a transcript of several parts. */
async function contextOfFork(db: Db, sessionId: string): Promise<ContextRow[]> {
  const rows: ContextRow[] = [];
  let compaction: ContextRow | undefined;
  for (const part of (await partsOf(db, sessionId)).toReversed()) {
    compaction ??= await compactionsIn(db, part).limit(1).executeTakeFirst();
    const kept = compaction === undefined ? undefined : await firstKeptIn(db, part, compaction);
    rows.unshift(...(await messageRows(db, part, kept)));
    if (kept !== undefined) break;
  }
  return compaction === undefined ? rows : [compaction, ...rows];
}

/** Reads the entries of the model's context. */
export async function readContext(db: Db, sessionId: string): Promise<Entry[]> {
  return (await contextRows(db, sessionId)).map(readEntry);
}

/** Maximum number of entries of `contextBefore`. Older ones are left out. */
const ENTRIES_MAX = 5_000;

/**
 * Returns the entries that the model saw before the entry at `seq`: the last compaction before it, if there
 * is one, and the entries that it kept.
 */
export async function contextBefore(db: Db, sessionId: string, seq: number): Promise<Entry[]> {
  const newestFirst: Entry[] = [];
  for (const part of (await partsOf(db, sessionId)).toReversed()) {
    const before = entriesIn(db, part).where("seq", "<", part.upTo === undefined ? seq : part.upTo + 1);
    const rows = await before.select(ENTRY_COLUMNS).orderBy("seq", "desc").limit(ENTRIES_MAX).execute();
    newestFirst.push(...rows.map(readEntry));
    if (newestFirst.length >= ENTRIES_MAX) break;
  }
  const entries = newestFirst.slice(0, ENTRIES_MAX).reverse();
  const compaction = entries.findLast(isCompaction);
  if (compaction === undefined) return entries;
  const kept = entries.findIndex(({ id }) => id === compaction.firstKeptId);
  const messages = entries.slice(Math.max(0, kept)).filter((entry) => !isCompaction(entry));
  return [compaction, ...messages];
}

/** Maximum number of compactions that are returned for each part of a transcript. */
const COMPACTIONS_MAX = 100;

/** Returns the times of the newest compactions, by the id of the first message that each one kept. */
export async function compactionsOf(
  db: Db,
  { key, sessionId }: { readonly key: string; readonly sessionId: string },
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const isFork = forkOrigin(key) !== undefined;
  const parts: readonly TranscriptPart[] = isFork ? await partsOf(db, sessionId) : [{ sessionId }];
  for (const part of parts) {
    const rows = await compactionsIn(db, part).limit(COMPACTIONS_MAX).execute();
    for (const entry of rows.map(readEntry)) {
      if (isCompaction(entry)) found.set(entry.firstKeptId, entry.timestamp);
    }
  }
  return found;
}

const OF_RUN = prepared((db, { runId }: { runId: string }) =>
  db
    .selectFrom("messages")
    .select(ENTRY_COLUMNS)
    .where("run_id", "=", runId)
    .where("role", "!=", "compaction")
    .orderBy("seq"),
);

/** Reads the messages of a run, including its input, in order. */
export async function readRun(db: Db, runId: string): Promise<Message[]> {
  return (await OF_RUN(db, { runId })).rows.map(readMessage);
}

/** Returns the id of the run that wrote a message. */
export async function runOfMessage(db: Db, id: string): Promise<string | undefined> {
  const row = await db.selectFrom("messages").select("run_id").where("id", "=", id).executeTakeFirst();
  return row?.run_id ?? undefined;
}

/** Matches tools whose results are texts of other sessions. */
const OTHERS_TEXTS = /^(?:subagents$|sessions_)/;
const RESULTS_READ_MAX = 20;

/** Returns the text of a transcript's latest tool result that is no text of another session. */
export async function lastToolResult(db: Db, sessionId: string): Promise<string | undefined> {
  const rows = await db
    .selectFrom("messages")
    .select(ENTRY_COLUMNS)
    .where("session_id", "=", sessionId)
    .where("role", "=", sql.lit("toolResult"))
    .orderBy("seq", "desc")
    .limit(RESULTS_READ_MAX)
    .execute();
  const own = rows
    .map(readMessage)
    .find((one) => one.role === "toolResult" && !OTHERS_TEXTS.test(one.toolName));
  return own && textOf(own);
}
