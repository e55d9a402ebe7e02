// Owns the first words of conversations, which name sessions without a label. The row of a session has those
// of its current transcript, so that lists need no further query and a search finds them.
// FT1: first words are redacted before they are stored, because a match alone could confirm a guess (I14).
//      They are written once: with the first text of a user, or with a fork.
// The first words of earlier transcripts are read on demand. One query reads many of them, and a message with
// a picture costs no more than a short one.

import { sql } from "kysely";
import { textOf } from "../../../core/shapes/message.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { prepared } from "../../prepared.ts";
import type { Db, Tx } from "../../sql.ts";
import { PARTS_MAX, type TranscriptPart } from "./forks.ts";
import { readMessage } from "./stored-entry.ts";

/** Maximum number of characters of an entry that are read. */
const ENTRY_CHARS_MAX = 16_384;

/** Matches the first text in a cut entry. */
const FIRST_TEXT = /"text":"((?:[^"\\\p{Cc}]|\\u[\da-f]{4}|\\["\\/bfnrt])*)/iu;

/**
 * Maximum number of stored characters. A title shows fewer: if its text becomes known as a secret later, the
 * whole secret is usually stored and can be recognised.
 */
const FIRST_WORDS_MAX_CHARS = 160;

export interface FirstWordsValues {
  readonly words: string;
  /** Id of the transcript. Null: the message is not by a user, and nothing is written. */
  readonly untitled: string | null;
}

/** Returns the beginning of a text in the form in which it is stored (FT1). */
function firstWordsOf(text: string, redactor: Redactor): string {
  // PostgreSQL accepts neither zero bytes nor halves of characters.
  return redactor.line(text, FIRST_WORDS_MAX_CHARS).replaceAll("\0", "\ufffd").toWellFormed();
}

/** Returns the first words that a message with this text would give its session. */
export function firstWordsIn(
  { role, session_id }: { readonly role: string; readonly session_id: string },
  text: string,
  redactor: Redactor,
): FirstWordsValues {
  if (role !== "user") return { words: "", untitled: null };
  return { words: firstWordsOf(text, redactor), untitled: session_id };
}

/**
 * Builds a query that writes the first words of the session with this current transcript, unless it has some.
 */
export function writeFirstWords(tx: Db, { words, untitled }: FirstWordsValues) {
  const session = tx
    .updateTable("sessions")
    .where("session_id", "=", untitled)
    .where("first_words", "is", null);
  return session.set({ first_words: words });
}

const WRITE = prepared((tx, values: FirstWordsValues) => writeFirstWords(tx, values));

const UNTITLED = prepared((tx, { untitled }: Pick<FirstWordsValues, "untitled">) =>
  tx
    .selectFrom("sessions")
    .select("row_id")
    .where("session_id", "=", untitled)
    .where("first_words", "is", null),
);

/** Stores the first words of the session to which this message was added, unless it has some. */
export async function noteFirstWords(
  tx: Tx,
  row: { readonly role: string; readonly session_id: string },
  text: string,
  redactor: Redactor,
): Promise<void> {
  if (row.role !== "user") return;
  // This query is cheaper than redacting the text and preparing a write to the index of names.
  const { rows } = await UNTITLED(tx, { untitled: row.session_id });
  if (rows.length > 0) await WRITE(tx, firstWordsIn(row, text, redactor));
}

/** Stores the first words of the whole transcripts of these sessions that have none. */
export async function findFirstWords(
  tx: Tx,
  sessionIds: readonly string[],
  redactor: Redactor,
): Promise<void> {
  for (const [untitled, text] of await firstUserTexts(tx, sessionIds)) {
    if (text !== "") await WRITE(tx, { words: firstWordsOf(text, redactor), untitled });
  }
}

/**
 * Reads at most `rowsMax` sessions, the newest first, and returns those without first words, and the row
 * before which the next page begins. Undefined: this page is the last one.
 */
export async function untitledSessions(db: Db, before: number, rowsMax: number) {
  const rows = await db
    .selectFrom("sessions")
    .select(["row_id", "session_id", "first_words"])
    .where("row_id", "<", before)
    .orderBy("row_id", "desc")
    .limit(rowsMax)
    .execute();
  const sessionIds = rows.filter((row) => row.first_words === null).map((row) => row.session_id);
  return { sessionIds, before: rows.length < rowsMax ? undefined : rows.at(-1)?.row_id };
}

interface FirstRow {
  readonly n: number;
  readonly entry: string | null;
  /** The transcript that this one continues, and the position of the last message that they share. */
  readonly origin: string | null;
  readonly upTo: number | null;
}

async function firstRows(db: Db, parts: readonly TranscriptPart[]): Promise<FirstRow[]> {
  const wanted = parts.map(
    ({ sessionId, upTo = Number.MAX_SAFE_INTEGER }, n) =>
      sql`(${sql.lit(n)}, ${sessionId}, ${sql.lit(upTo)})`,
  );
  const { rows } = await sql<FirstRow>`
    with wanted (n, id, up_to) as (values ${sql.join(wanted)})
    select wanted.n as n, o.session_id as origin, o.seq as "upTo", (
      select substr(m.entry_json, 1, ${sql.lit(ENTRY_CHARS_MAX)}) from messages m
      where m.session_id = wanted.id and m.role = 'user' and m.seq <= wanted.up_to
      order by m.seq limit 1
    ) as entry
    from wanted left join session_ids i on i.session_id = wanted.id
      left join messages o on o.id = i.forked_at`.execute(db);
  return rows;
}

function firstText(entry: string): string {
  if (entry.length < ENTRY_CHARS_MAX)
    return textOf(readMessage({ id: "", role: "user", entry_json: entry, created_at: 0 }));
  return JSON.parse(`"${FIRST_TEXT.exec(entry)?.[1] ?? ""}"`) as string;
}

/**
 * Returns the first text of a user in each of these transcripts. A long text is cut. Costs one query, and one
 * more for each level of forks.
 */
export async function firstUserTexts(db: Db, sessionIds: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  let wanted = sessionIds.map((sessionId): { id: string; part: TranscriptPart } => ({
    id: sessionId,
    part: { sessionId },
  }));
  for (let level = 0; level < PARTS_MAX && wanted.length > 0; level += 1) {
    const parts = wanted.map(({ part }) => part);
    const next: typeof wanted = [];
    for (const { n, entry, origin, upTo } of await firstRows(db, parts)) {
      const id = wanted[n]?.id ?? "";
      // The first own text of a fork is its marker, which a text of its origin replaces.
      if (entry !== null) found.set(id, firstText(entry));
      if (origin !== null && upTo !== null) next.push({ id, part: { sessionId: origin, upTo } });
    }
    wanted = next;
  }
  return found;
}
