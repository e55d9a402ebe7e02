// Owns the entries of transcripts: appended once, and read in order. transcript-search.ts searches them.
// T1: an entry is written once. A second write with the same id changes nothing. The id of a tool result
//     contains the id of its call (`resultIdOf`), so that a call never has two results.
// A transcript keeps every entry; a compaction only shortens the model's context.
// T3: no read holds more than PAGE_BYTES_MAX in memory, unless a single entry is larger.

import { sql } from "kysely";
import type { Pace } from "../../../core/pace.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { type Entry, isCompaction, type Message, textOf } from "../../../core/shapes/message.ts";
import { LONG_CHARS, type Redactor } from "../../../core/text/redact/redact.ts";
import { prepared } from "../../prepared.ts";
import { type Db, kindOf, type Tx } from "../../sql.ts";
import { atCommit } from "../../transaction.ts";
import { vectorsOf } from "./search-lexemes.ts";
import { INDEXED_CHARS_MAX, PARTS_MAX, placeTokens, sessionToken, textParts } from "./search-text.ts";
import { type EntryRow, readEntry, readMessage } from "./stored-entry.ts";

/** Maximum number of stored bytes in a page of history. The page ends earlier if its messages are large. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum number of stored bytes that one query of a page reads, except for a single larger entry. */
const READ_BYTES_MAX = 1024 * 1024;

export interface NewEntry {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly runId?: string;
  readonly entry: Entry;
}

/** Returns the searchable text of an entry: text by a person or a model. */
export function searchableText(entry: Entry, redactor: Redactor): string | Promise<string> {
  const spoken = isCompaction(entry) || entry.role === "toolResult" ? "" : textOf(entry);
  // Secrets must not be in the index, because a match alone could confirm a guess (I14).
  if (spoken.length <= LONG_CHARS) return spoken === "" ? "" : redactor.mask(spoken);
  return redactor.start(spoken, INDEXED_CHARS_MAX).then(({ text }) => text);
}

/** Column values of an entry's row. */
type MessageValues = Parameters<typeof insertRow>[1];

function insertRow(
  tx: Db,
  row: {
    readonly [K in "id" | "session_id" | "session_key" | "role" | "entry_json"]: string;
  } & { readonly run_id: string | null; readonly created_at: number },
) {
  const { id, session_id, session_key, run_id, role, entry_json, created_at } = row;
  return tx
    .insertInto("messages")
    .values({ id, session_id, session_key, run_id, role, entry_json, created_at })
    .onConflict((conflict) => conflict.column("id").doNothing());
}

const INSERT = prepared((tx, row: MessageValues) => insertRow(tx, row).returning("seq"));

/** Values for a searchable message on PostgreSQL. */
interface VectorValues extends MessageValues {
  /** tsvector literals of the message's parts. */
  readonly vectors: readonly string[];
  /** Number of the first part. 0 if the message has only one part. */
  readonly firstPart: number;
}

/**
 * Inserts the message and its index entries in one round trip on PostgreSQL. Builds the agent's token in the
 * same way as `agentToken`.
 */
const INSERT_WITH_VECTORS = prepared((tx, { vectors, firstPart, ...row }: VectorValues) => {
  const insert = insertRow(tx, row).returning("seq");
  return sql`
    with added as (${insert}),
      agent as (
        select array_to_tsvector(array['/a' || left(encode(sha256(convert_to(agent_id, 'UTF8')), 'hex'), 16)])
          as place
        from sessions where key = ${row.session_key}
      )
    insert into message_texts (seq, part, words)
    select added.seq, vector.part - 1 + ${firstPart}::int,
        vector.words::tsvector || coalesce(agent.place, ''::tsvector)
      from added cross join unnest(${vectors}::text[]) with ordinality as vector (words, part)
        left join agent on true`;
});

/**
 * Appends an entry to the transcript and, if it is searchable, to the full-text index. Returns the stored
 * entry. If a tool result with the same id exists, it is kept and returned instead.
 */
export async function appendEntry(tx: Tx, args: NewEntry, redactor: Redactor): Promise<Entry> {
  const { sessionKey, entry } = args;
  const found = searchableText(entry, redactor);
  // Without an `await` in between, the statements of this transaction are sent together.
  const text = typeof found === "string" ? found : await found;
  const row = rowOf(args);
  if (text !== "" && kindOf(tx) === "postgres") {
    const vectors = vectorsOf(text, [sessionToken(sessionKey)]);
    await INSERT_WITH_VECTORS(tx, { ...row, vectors, firstPart: vectors.length === 1 ? 0 : 1 });
    return entry;
  }
  const [added] = (await INSERT(tx, row)).rows;
  if (added === undefined) return (await storedEntry(tx, entry.id)) ?? entry;
  if (text !== "") await indexForSearch(tx, added.seq, sessionKey, text);
  return entry;
}

async function storedEntry(tx: Tx, id: string): Promise<Entry | undefined> {
  const row = await tx.selectFrom("messages").select(ENTRY).where("id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : readEntry(row);
}

function rowOf({ sessionKey, sessionId, runId, entry }: NewEntry): MessageValues {
  return {
    id: entry.id,
    session_id: sessionId,
    session_key: sessionKey,
    run_id: runId ?? null,
    role: isCompaction(entry) ? "compaction" : entry.role,
    entry_json: JSON.stringify(entry),
    created_at: entry.timestamp,
  };
}

const AGENT = prepared((tx, { sessionKey }: { sessionKey: string }) =>
  tx.selectFrom("sessions").select("agent_id").where("key", "=", sessionKey),
);

// Adds words only if the message still exists, because it may be deleted before `atCommit` does this.
const WORDS = prepared((_, { seq, words, place }: { seq: number; words: string; place: string }) => {
  return sql`insert into message_texts (rowid, text, place) select ${seq}, ${words}, ${place}
    where exists (select 1 from messages where seq = ${seq})`;
});

const PART_WORDS = prepared(
  (_, { seq, row, words, place }: { seq: number; row: number; words: string; place: string }) => {
    return sql`insert into message_parts (rowid, text, place) select ${row}, ${words}, ${place}
      where exists (select 1 from messages where seq = ${seq})`;
  },
);

async function indexForSearch(tx: Tx, seq: number, sessionKey: string, text: string): Promise<void> {
  const [owner] = (await AGENT(tx, { sessionKey })).rows;
  // FTS5 writes to its tables at each savepoint, so it is cheaper to index once for all transactions of a
  // commit.
  await atCommit(tx, (last) => indexEmbedded(last, { seq, sessionKey, agentId: owner?.agent_id, text }));
}

/** A searchable message. */
export interface Searchable {
  readonly seq: number;
  readonly sessionKey: string;
  readonly agentId: string | undefined;
  readonly text: string;
}

/** Adds a message to the full-text index of the embedded database; a long message in parts. */
export async function indexEmbedded(tx: Tx, message: Searchable): Promise<void> {
  const { seq, sessionKey, agentId } = message;
  const place = placeTokens(sessionKey, agentId).join(" ");
  const parts = textParts(message.text);
  let part = parts.next();
  for (let number = 0; part.done !== true; number += 1) {
    const words = part.value;
    part = parts.next();
    if (number === 0 && part.done === true) await WORDS(tx, { seq, words, place });
    else await PART_WORDS(tx, { seq, row: seq * PARTS_MAX + number, words, place });
  }
}

/** Columns that are needed to read an entry. */
const ENTRY = ["id", "role", "entry_json", "created_at"] as const;

/** Start of a page, exclusive, and the direction in which it is read. */
type HistoryPosition =
  | { readonly way: "back"; readonly beforeSeq?: number }
  | { readonly way: "on"; readonly afterSeq: number; readonly afterRun?: string };

interface Page {
  /** Yields to other work between two parts of a large page. */
  readonly pace?: Pace | undefined;
  readonly sessionId: string;
  readonly place: HistoryPosition;
  readonly includeTools: boolean;
  readonly limit: number;
}

function messagesIn(db: Db, { sessionId, includeTools }: Pick<Page, "sessionId" | "includeTools">) {
  const query = db
    .selectFrom("messages")
    .where("session_id", "=", sessionId)
    .where("role", "!=", "compaction");
  return includeTools ? query : query.where("role", "!=", "toolResult");
}

/** Returns the positions of a page, and one more if another page follows. */
function pagePositions(db: Db, page: Page) {
  const { place, limit } = page;
  let query = messagesIn(db, page).select(["seq", sql<number>`octet_length(entry_json)`.as("bytes")]);
  if (place.way === "on") query = query.where("seq", ">", place.afterSeq);
  else if (place.beforeSeq !== undefined) query = query.where("seq", "<", place.beforeSeq);
  return query
    .orderBy("seq", place.way === "on" ? "asc" : "desc")
    .limit(limit + 1)
    .execute();
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

interface PageRead {
  /** Oldest first. */
  readonly messages: Message[];
  readonly runIds: ReadonlyMap<string, string>;
  /** True if more entries follow in the direction of the page. */
  readonly more: boolean;
}

async function readPage(db: Db, page: Page): Promise<PageRead> {
  const positions = await pagePositions(db, page);
  const count = countWithin(positions.slice(0, page.limit), PAGE_BYTES_MAX);
  const messages: Message[] = [];
  const runIds = new Map<string, string>();
  const rest = positions.slice(0, count);
  if (page.place.way === "back") rest.reverse();
  while (rest.length > 0) {
    const some = rest.splice(0, countWithin(rest, READ_BYTES_MAX));
    await page.pace?.();
    const rows = await messagesIn(db, page)
      .select(["run_id", ...ENTRY])
      .where("seq", ">=", some[0]?.seq ?? 0)
      .where("seq", "<=", some.at(-1)?.seq ?? 0)
      .orderBy("seq")
      .execute();
    for (const row of rows) {
      messages.push(readMessage(row));
      if (row.run_id !== null) runIds.set(row.id, row.run_id);
    }
  }
  return { messages, runIds, more: positions.length > count };
}

export interface HistoryPage {
  /** Oldest first. */
  readonly messages: Message[];
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
  if (id === undefined) return ok({ way: "back" });
  const row = await db
    .selectFrom("messages")
    .select(["seq", "session_id", "run_id"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row?.session_id !== sessionId) {
    return fail("message_not_found", `No message ${JSON.stringify(id)} in this transcript.`, {
      hint: "Use a message id from this session's history, or omit it to get the newest page.",
    });
  }
  if (before !== undefined) return ok({ way: "back", beforeSeq: row.seq });
  if (after === undefined) return ok({ way: "on", afterSeq: row.seq - 1 });
  return ok({ way: "on", afterSeq: row.seq, ...(row.run_id === null ? {} : { afterRun: row.run_id }) });
}

/** Whether there are messages before the oldest one of the page. */
async function isOlder(db: Db, wanted: HistoryWanted, oldest: Message | undefined): Promise<boolean> {
  if (oldest === undefined) return false;
  const row = await messagesIn(db, wanted)
    .select("id")
    .where("seq", "<", (eb) => eb.selectFrom("messages").select("seq").where("id", "=", oldest.id))
    .orderBy("seq", "desc")
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Reads a page of a transcript: the newest `limit` messages, or those before or after a message. If the
 * messages are large, the page has fewer than `limit`; `nextBefore` and `nextAfter` say whether there are
 * more.
 */
export async function readHistory(db: Db, wanted: HistoryWanted): Promise<Result<HistoryPage>> {
  const { sessionId, limit, includeTools } = wanted;
  const place = await positionOf(db, wanted);
  if (!place.ok) return place;
  const { messages, runIds, more } = await readPage(db, {
    sessionId,
    pace: wanted.pace,
    limit,
    includeTools,
    place: place.value,
  });
  const [oldest, newest] = [messages[0], messages.at(-1)];
  const onward = place.value.way === "on";
  const older = onward ? await isOlder(db, wanted, oldest) : more;
  const newer = onward ? more : wanted.before !== undefined;
  const { after } = wanted;
  const afterRun = place.value.way === "on" ? place.value.afterRun : undefined;
  return ok({
    messages,
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
  const place: HistoryPosition = { way: "back" };
  return (await readPage(db, { sessionId, limit, includeTools: what.includeTools, place })).messages;
}

const LAST_COMPACTION = prepared((db, { sessionId }: { sessionId: string }) =>
  db
    .selectFrom("messages")
    .select(["seq", ...ENTRY])
    .where("session_id", "=", sessionId)
    .where("role", "=", sql.lit("compaction"))
    .orderBy("seq", "desc")
    .limit(1),
);
/** Reads a whole transcript. Returns no rows if the transcript contains a compaction. */
const UNCOMPACTED = prepared((db, { sessionId }: { sessionId: string }) => {
  const compactions = db
    .selectFrom("messages as compaction")
    .select("compaction.seq")
    .where("compaction.session_id", "=", sessionId)
    .where("compaction.role", "=", sql.lit("compaction"));
  return db
    .selectFrom("messages")
    .select(["seq", ...ENTRY])
    .where("session_id", "=", sessionId)
    .where((eb) => eb.not(eb.exists(compactions)))
    .orderBy("seq");
});

/** The row of an entry, with its position. */
export type ContextRow = EntryRow & { readonly seq: number };

/**
 * Reads the rows of the model's context: the last compaction, if there is one, and the entries from its
 * `firstKeptId` on.
 */
export async function contextRows(db: Db, sessionId: string): Promise<ContextRow[]> {
  // Most transcripts have no compaction, so this query is enough.
  const { rows: whole } = await UNCOMPACTED(db, { sessionId });
  if (whole.length > 0) return whole;
  const [last] = (await LAST_COMPACTION(db, { sessionId })).rows;
  if (last === undefined) return [];
  let query = db
    .selectFrom("messages")
    .select(["seq", ...ENTRY])
    .where("session_id", "=", sessionId);
  const compaction = readEntry(last);
  if (isCompaction(compaction)) {
    const kept = await db
      .selectFrom("messages")
      .select("seq")
      .where("id", "=", compaction.firstKeptId)
      .where("session_id", "=", sessionId)
      .executeTakeFirst();
    query = query.where("seq", ">=", kept?.seq ?? last.seq).where("role", "!=", "compaction");
  }
  return [last, ...(await query.orderBy("seq").execute())];
}

const FROM = prepared((db, { sessionId, seq }: { sessionId: string; seq: number }) =>
  db
    .selectFrom("messages")
    .select(["seq", ...ENTRY])
    .where("session_id", "=", sessionId)
    .where("seq", ">=", seq)
    .orderBy("seq"),
);

/** Reads the rows after an entry. Undefined: that entry is gone, or a compaction follows it. */
export async function rowsAfter(
  db: Db,
  sessionId: string,
  { seq, id }: Pick<ContextRow, "seq" | "id">,
): Promise<ContextRow[] | undefined> {
  const [first, ...newer] = (await FROM(db, { sessionId, seq })).rows;
  return first?.id === id && newer.every((row) => row.role !== "compaction") ? newer : undefined;
}

/** Reads the entries of the model's context. */
export async function readContext(db: Db, sessionId: string): Promise<Entry[]> {
  return (await contextRows(db, sessionId)).map(readEntry);
}

/** Maximum number of compactions that are returned for a transcript. */
const COMPACTIONS_MAX = 100;

/** Returns the times of the newest compactions, by the id of the first message that each one kept. */
export async function compactionsOf(db: Db, sessionId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom("messages")
    .select(ENTRY)
    .where("session_id", "=", sessionId)
    .where("role", "=", sql.lit("compaction"))
    .orderBy("seq", "desc")
    .limit(COMPACTIONS_MAX)
    .execute();
  const entries = rows.map(readEntry).filter(isCompaction);
  return new Map(entries.map(({ firstKeptId, timestamp }) => [firstKeptId, timestamp]));
}

const OF_RUN = prepared((db, { runId }: { runId: string }) =>
  db
    .selectFrom("messages")
    .select(ENTRY)
    .where("run_id", "=", runId)
    .where("role", "!=", "compaction")
    .orderBy("seq"),
);

/** Reads the messages of a run, including its input, in order. */
export async function readRun(db: Db, runId: string): Promise<Message[]> {
  return (await OF_RUN(db, { runId })).rows.map(readMessage);
}

/** Returns the first text of a user in a transcript, for a title. */
export async function firstUserText(db: Db, sessionId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("messages")
    .select(ENTRY)
    .where("session_id", "=", sessionId)
    .where("role", "=", sql.lit("user"))
    .orderBy("seq")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : textOf(readMessage(row));
}

/** Returns the text of a transcript's latest tool result. */
export async function lastToolResult(db: Db, sessionId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("messages")
    .select(ENTRY)
    .where("session_id", "=", sessionId)
    .where("role", "=", sql.lit("toolResult"))
    .orderBy("seq", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : textOf(readMessage(row));
}
