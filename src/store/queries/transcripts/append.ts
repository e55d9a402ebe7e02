// Appends entries to transcripts, and their words to the full-text index.
// T1: an entry is written once. A second write with the same id changes nothing. The id of a tool result
//     contains the id of its call (`resultIdOf`), so that a call never has two results.

import { sql } from "kysely";
import { type Entry, isCompaction, textOf } from "../../../core/shapes/message.ts";
import { LONG_CHARS, type Redactor } from "../../../core/text/redact/redact.ts";
import { prepared } from "../../prepared.ts";
import { type Db, kindOf, type Tx } from "../../sql.ts";
import { atCommit } from "../../transaction.ts";
import { heldRun, isHeld } from "../runs/claims.ts";
import type { Fence } from "../runs/runs.ts";
import { type FirstWordsValues, firstWordsIn, noteFirstWords, writeFirstWords } from "./first-texts.ts";
import { vectorsOf } from "./search-lexemes.ts";
import { INDEXED_CHARS_MAX, PARTS_MAX, placeTokens, sessionToken, textParts } from "./search-text.ts";
import { ENTRY_COLUMNS, readEntry } from "./stored-entry.ts";

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

// On the embedded database, `seq` is the id of the row, which each insert returns. A RETURNING clause would
// build a table for it.
const INSERT = prepared((tx, row: MessageValues) => insertRow(tx, row));
const INSERT_RETURNING = prepared((tx, row: MessageValues) => insertRow(tx, row).returning("seq"));

const COLUMNS = ["id", "session_id", "session_key", "run_id", "role", "entry_json", "created_at"] as const;

/** Inserts a message if this owner holds the run: one statement is faster than two. */
const INSERT_HELD = prepared((tx, { runId, owner, attempt, ...row }: MessageValues & Fence) =>
  tx
    .insertInto("messages")
    .columns(COLUMNS)
    .expression(
      heldRun(tx, { runId, owner, attempt }).select(({ val }) =>
        COLUMNS.map((name) => val(row[name]).as(name)),
      ),
    )
    .onConflict((conflict) => conflict.column("id").doNothing()),
);

/** Returns the position of the new message. Undefined if it was not inserted. */
async function insertMessage(tx: Tx, row: MessageValues, fence?: Fence): Promise<number | undefined> {
  if (kindOf(tx) === "postgres") return (await INSERT_RETURNING(tx, row)).rows[0]?.seq;
  const { numAffectedRows, insertId } = await (fence === undefined
    ? INSERT(tx, row)
    : INSERT_HELD(tx, { ...row, ...fence }));
  return numAffectedRows === 0n ? undefined : Number(insertId);
}

/** Values for a searchable message on PostgreSQL. */
interface VectorValues extends MessageValues, FirstWordsValues {
  /** tsvector literals of the message's parts. */
  readonly vectors: readonly string[];
  /** Number of the first part. 0 if the message has only one part. */
  readonly firstPart: number;
}

/**
 * Inserts the message, its index entries and the session's first words in one round trip on PostgreSQL.
 * Builds the agent's token in the same way as `agentToken`.
 */
const INSERT_WITH_VECTORS = prepared((tx, { vectors, firstPart, words, untitled, ...row }: VectorValues) => {
  const insert = insertRow(tx, row).returning("seq");
  const titled = writeFirstWords(tx, { words, untitled });
  return sql`
    with added as (${insert}),
      titled as (${titled}),
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
  return (await append(tx, args, redactor)) ?? args.entry;
}

/**
 * Appends an entry, like `appendEntry`, for the owner of a run. Returns undefined, and appends nothing, if
 * this owner no longer holds the run in this attempt.
 */
export async function appendHeld(
  tx: Tx,
  args: NewEntry,
  redactor: Redactor,
  fence: Fence,
): Promise<Entry | undefined> {
  if (kindOf(tx) !== "postgres") return append(tx, args, redactor, fence);
  return (await isHeld(tx, fence)) ? append(tx, args, redactor) : undefined;
}

/** `fence`: of the owner of the run, on the embedded database. */
async function append(tx: Tx, args: NewEntry, redactor: Redactor, fence?: Fence): Promise<Entry | undefined> {
  const { sessionKey, sessionId, runId, entry } = args;
  const found = searchableText(entry, redactor);
  // Awaits only a promise: without an `await` in between, the statements of this transaction are sent
  // together.
  const text = typeof found === "string" ? found : await found;
  const row: MessageValues = {
    id: entry.id,
    session_id: sessionId,
    session_key: sessionKey,
    run_id: runId ?? null,
    role: isCompaction(entry) ? "compaction" : entry.role,
    entry_json: JSON.stringify(entry),
    created_at: entry.timestamp,
  };
  if (text !== "" && kindOf(tx) === "postgres") {
    const vectors = vectorsOf(text, [sessionToken(sessionKey)]);
    const values = { ...row, ...firstWordsIn(row, text, redactor), vectors };
    await INSERT_WITH_VECTORS(tx, { ...values, firstPart: vectors.length === 1 ? 0 : 1 });
    return entry;
  }
  const seq = await insertMessage(tx, row, fence);
  if (seq === undefined) {
    if (fence !== undefined && !(await isHeld(tx, fence))) return undefined;
    const stored = tx.selectFrom("messages").select(ENTRY_COLUMNS).where("id", "=", entry.id);
    const known = await stored.executeTakeFirst();
    return known === undefined ? entry : readEntry(known);
  }
  if (text === "") return entry;
  await noteFirstWords(tx, row, text, redactor);
  const [owner] = (await AGENT(tx, { sessionKey })).rows;
  // FTS5 writes to its tables at each savepoint, so it is cheaper to index once for all transactions of a
  // commit.
  await atCommit(tx, (last) => indexEmbedded(last, { seq, sessionKey, agentId: owner?.agent_id, text }));
  return entry;
}

const AGENT = prepared((tx, { sessionKey }: { sessionKey: string }) =>
  tx.selectFrom("sessions").select("agent_id").where("key", "=", sessionKey),
);

// Adds words only if the message still exists, because it may be deleted before the work of `atCommit` runs.
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
