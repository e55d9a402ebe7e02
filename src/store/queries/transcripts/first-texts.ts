// Reads the first words of transcripts, for titles. A list reads them again after each event. Therefore one
// query reads those of all its rows, and a message with a picture costs no more than a short one.

import { sql } from "kysely";
import { textOf } from "../../../core/shapes/message.ts";
import type { Db } from "../../sql.ts";
import { PARTS_MAX, type TranscriptPart } from "./forks.ts";
import { readMessage } from "./stored-entry.ts";

/** Maximum number of characters of an entry that are read. */
const ENTRY_CHARS_MAX = 16_384;

/** Matches the first text in a cut entry. */
const FIRST_TEXT = /"text":"((?:[^"\\\p{Cc}]|\\u[\da-f]{4}|\\["\\/bfnrt])*)/iu;

interface FirstRow {
  /** Index of the wanted part. */
  readonly n: number;
  /** Beginning of the entry. */
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

function firstWords(entry: string): string {
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
      if (entry !== null) found.set(id, firstWords(entry));
      if (origin !== null && upTo !== null) next.push({ id, part: { sessionId: origin, upTo } });
    }
    wanted = next;
  }
  return found;
}
