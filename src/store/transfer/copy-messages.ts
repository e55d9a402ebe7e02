// Copies messages of a store and indexes them for search. The stored text of an entry is never changed: an
// unreadable one is copied as it is, without an index.

import { sql } from "kysely";
import type { Entry } from "../../core/shapes/message.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { vectorsOf } from "../queries/transcripts/search-lexemes.ts";
import { placeTokens } from "../queries/transcripts/search-text.ts";
import { indexEmbedded, type Searchable, searchableText } from "../queries/transcripts/transcripts.ts";
import { kindOf, type Tx } from "../sql.ts";

/** A row of any table, as both databases return and accept it. */
export type Row = Readonly<Record<string, string | number | null>>;

/**
 * Returns a row's searchable text; empty if there is none. Of a damaged entry it returns the readable rest.
 */
async function textIn(row: Row, redactor: Redactor): Promise<string> {
  try {
    const entry = JSON.parse(String(row.entry_json)) as { readonly content: readonly unknown[] };
    return await searchableText(
      { ...entry, content: entry.content.filter(hasText) } as unknown as Entry,
      redactor,
    );
  } catch {
    return "";
  }
}

const hasText = (block: unknown): boolean =>
  typeof (block as { readonly text?: unknown } | null)?.text === "string";

/** Writes rows without their numbers, and indexes each for full-text search. */
export async function writeMessages(tx: Tx, rows: readonly Row[], redactor: Redactor): Promise<void> {
  const added = await tx
    .insertInto("messages")
    .values(rows as never)
    .returning(["seq", "id"])
    .execute();
  const seqOf = new Map(added.map(({ seq, id }) => [id, seq]));
  const spoken = rows.filter(({ role }) => role === "user" || role === "assistant");
  const keys = [...new Set(spoken.map((row) => String(row.session_key)))];
  const owners = keys.length === 0 ? [] : await agentsOf(tx, keys);
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

/** Returns the agents of these sessions, if they exist. */
async function agentsOf(tx: Tx, keys: readonly string[]): Promise<{ key: string; agent_id: string }[]> {
  // One parameter for any number of keys.
  const wanted =
    kindOf(tx) === "sqlite"
      ? sql<string>`(select value from json_each(${JSON.stringify(keys)}))`
      : sql<string>`(select unnest(${keys}::text[]))`;
  return tx.selectFrom("sessions").select(["key", "agent_id"]).where("key", "in", wanted).execute();
}

async function indexOnServer(tx: Tx, found: readonly Searchable[]): Promise<void> {
  const entries = found.flatMap(({ seq, sessionKey, agentId, text }) => {
    const vectors = vectorsOf(text, placeTokens(sessionKey, agentId));
    // A message in several parts numbers them from 1; a single part is 0: see transcripts.ts.
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
