// Copies the messages of a store and indexes them for full-text search. The stored text of an entry never
// changes. An entry that cannot be read is copied as it is and not indexed.

import { sql } from "kysely";
import type { Entry } from "../../core/shapes/message.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { indexEmbedded, type Searchable, searchableText } from "../queries/transcripts/append.ts";
import { vectorsOf } from "../queries/transcripts/search-lexemes.ts";
import { placeTokens } from "../queries/transcripts/search-text.ts";
import { isAmong, kindOf, type Tx } from "../sql.ts";

/** A row of any table, in the form that both databases return and accept. */
export type Row = Readonly<Record<string, string | number | null>>;

/**
 * Returns the searchable text of a row, or an empty text. If the entry is damaged, returns the part that can
 * be read.
 */
async function textIn(row: Row, redactor: Redactor): Promise<string> {
  try {
    const entry = JSON.parse(String(row.entry_json)) as { readonly content: readonly unknown[] };
    const content = entry.content.filter(
      (block) => typeof (block as { readonly text?: unknown } | null)?.text === "string",
    );
    return await searchableText({ ...entry, content } as unknown as Entry, redactor);
  } catch {
    return "";
  }
}

/** Inserts rows, which get new numbers, and indexes each row for full-text search. */
export async function writeMessages(tx: Tx, rows: readonly Row[], redactor: Redactor): Promise<void> {
  const added = await tx
    .insertInto("messages")
    .values(rows as never)
    .returning(["seq", "id"])
    .execute();
  const seqOf = new Map(added.map(({ seq, id }) => [id, seq]));
  const spoken = rows.filter(({ role }) => role === "user" || role === "assistant");
  const keys = [...new Set(spoken.map((row) => String(row.session_key)))];
  const owners =
    keys.length === 0
      ? []
      : await tx
          .selectFrom("sessions")
          .select(["key", "agent_id"])
          .where(isAmong(tx, "key", keys))
          .execute();
  const agentOf = new Map(owners.map((row) => [row.key, row.agent_id]));
  const found: Searchable[] = [];
  for (const row of spoken) {
    const seq = seqOf.get(String(row.id));
    const text = await textIn(row, redactor);
    const sessionKey = String(row.session_key);
    if (seq !== undefined && text !== "")
      found.push({ seq, sessionKey, agentId: agentOf.get(sessionKey), text });
  }
  if (kindOf(tx) === "sqlite") for (const message of found) await indexEmbedded(tx, message);
  else if (found.length > 0) await indexOnServer(tx, found);
}

async function indexOnServer(tx: Tx, found: readonly Searchable[]): Promise<void> {
  const entries = found.flatMap(({ seq, sessionKey, agentId, text }) => {
    const vectors = vectorsOf(text, placeTokens(sessionKey, agentId));
    // The parts of a split message are numbered from 1. An unsplit message is part 0 (transcripts.ts).
    return vectors.map((words, at) => ({ seq, part: vectors.length === 1 ? 0 : at + 1, words }));
  });
  const [seqs, parts, words] = [
    entries.map(({ seq }) => seq),
    entries.map(({ part }) => part),
    entries.map(({ words }) => words),
  ];
  const rows = sql`unnest(${seqs}::bigint[], ${parts}::bigint[], ${words}::text[])`;
  await sql`insert into message_texts (seq, part, words)
    select seq, part, words::tsvector from ${rows} as entry (seq, part, words)`.execute(tx);
}
