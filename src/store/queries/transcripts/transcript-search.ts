// Searches the full text of transcripts for messages of people and models, newest first. Skips transcripts of
// archived and deleted sessions, and marks matches from before a reset. A page reads a limited number of
// matches; its cursor continues after them.

import { type RawBuilder, sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Scope } from "../../../core/rules/visibility.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import { type Message, textOf } from "../../../core/shapes/message.ts";
import type { Redactor } from "../../../core/text/redact/redact.ts";
import { type Db, kindOf } from "../../sql.ts";
import { readLabelsJson, transcriptLabels } from "../labels.ts";
import { all, fewInScope, fewInTree, inScope } from "../sessions/session-scope.ts";
import { partsFrom } from "./forks.ts";
import { isInheritedTranscript } from "./inherited.ts";
import { lexemeQuestion } from "./search-lexemes.ts";
import { agentToken, excerptOf, matchText, PARTS_MAX, sessionToken, wordsOf } from "./search-text.ts";
import { readMessage } from "./stored-entry.ts";

/** Maximum number of matches that a page reads to find those in the scope. */
const MATCHES_MAX = 5_000;
/** Larger entries are read one at a time. */
const READ_AT_ONCE_BYTES = 256 * 1024;
/** Maximum number of sessions in an index query. With more sessions, matches are filtered afterwards. */
const PLACES_MAX = 200;

interface TranscriptQuestion {
  readonly query: string;
  readonly scope: Scope;
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly limit: number;
  readonly redactor: Redactor;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

/** The author of a found message, as it is stored: neither redacted nor checked for visibility. */
interface HitAuthor {
  /** `note`: an operator who added the message in the agent's place. */
  readonly kind: "agent" | "person" | "session" | "notice" | "note" | "cron" | "hook" | "node";
  readonly name?: string;
  /** The session that sent the message, or that a notice is about. */
  readonly sessionKey?: string;
}

export interface SearchHit {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly messageId: string;
  readonly role: string;
  readonly author: HitAuthor;
  readonly timestamp: number;
  readonly excerpt: string;
  /** Set if the message is from before a reset. */
  readonly earlier?: true;
}

/** `labels`: of the transcript. */
export type LabelledHit = SearchHit & { readonly labels: Labels | undefined };

export interface SearchPage<Hit = SearchHit> {
  readonly hits: Hit[];
  readonly nextCursor?: string;
}

interface HitRow {
  /** Labels of the transcript, as JSON. */
  readonly labels: string | null;
  readonly seq: number;
  readonly id: string;
  readonly session_key: string;
  readonly session_id: string;
  readonly current_id: string;
  readonly role: string;
  /** Null for a large entry, which is read in a separate query. */
  readonly entry_json: string | null;
  readonly created_at: number;
}

/** Returns the index tokens of the sessions to search, or undefined to search all sessions. */
async function placesOf(
  db: Db,
  asked: Pick<TranscriptQuestion, "scope" | "agentId" | "sessionKey">,
): Promise<string[] | undefined> {
  if (asked.sessionKey !== undefined) return [sessionToken(asked.sessionKey)];
  if (asked.agentId !== undefined) return [agentToken(asked.agentId)];
  const { scope } = asked;
  if (scope.all) return undefined;
  const agentIds = scope.agentIds ?? [];
  if (agentIds === "any" || agentIds.length > PLACES_MAX)
    return tokensOf(db, await fewInScope(db, scope, PLACES_MAX));
  const near = await tokensOf(db, await fewInTree(db, scope, PLACES_MAX));
  const shared = scope.sharesGlobal === true ? [sessionToken("global")] : [];
  return near === undefined ? undefined : [...near, ...shared, ...agentIds.map(agentToken)];
}

async function tokensOf(db: Db, rowIds: readonly number[] | undefined): Promise<string[] | undefined> {
  if (rowIds === undefined || rowIds.length === 0) return rowIds === undefined ? undefined : [];
  const rows = await db.selectFrom("sessions").select("key").where("row_id", "in", rowIds).execute();
  return rows.map((row) => sessionToken(row.key));
}

/** A range of the list of matches, which begins with the newest one. */
interface Slice {
  readonly before: number | undefined;
  readonly skip: number;
  readonly limit: number;
}

type Matches = (slice: Slice) => RawBuilder<{ seq: number }>;

/** Returns a query for the positions of matching messages, or undefined if nothing can match. */
function matchesOf(
  db: Db,
  words: readonly string[],
  places: readonly string[] | undefined,
): Matches | undefined {
  if (places !== undefined && places.length === 0) return undefined;
  if (kindOf(db) === "sqlite") {
    // A long text is indexed in parts, so each searched word may be in a different part.
    return (slice) => {
      const newest = sql`order by seq desc limit ${sql.lit(slice.skip + slice.limit)}`;
      const older = (rows: number) =>
        slice.before === undefined ? sql`` : sql`and rowid < ${slice.before * rows}`;
      const inParts = words.map(
        (word) => sql`select distinct rowid / ${sql.lit(PARTS_MAX)} as seq from message_parts
      where message_parts match ${matchText([word], places)} ${older(PARTS_MAX)}`,
      );
      return sql`select seq from (
      select seq from (select rowid as seq from message_texts
        where message_texts match ${matchText(words, places)} ${older(1)} ${newest})
      union all
      select seq from (select seq from (${sql.join(inParts, sql` intersect `)}) ${newest})
    ) order by seq desc limit ${sql.lit(slice.limit)} offset ${sql.lit(slice.skip)}`;
    };
  }
  const question = lexemeQuestion(words, places);
  if (question === undefined) return undefined;
  const { whole, part, together } = question;
  const allOf = sql.join(
    together.map((phrase) => sql`bool_or(words @@ ${phrase}::tsquery)`),
    sql` and `,
  );
  return ({ before, skip, limit }) => {
    const older = before === undefined ? sql`` : sql`and seq < ${before}`;
    const newest = sql`order by seq desc limit ${sql.lit(skip + limit)}`;
    return sql`select seq from (
        (select seq from message_texts where part = 0 and words @@ ${whole}::tsquery ${older} ${newest})
        union all
        (select seq from message_texts where part > 0 and words @@ ${part}::tsquery ${older}
          group by seq having ${allOf} ${newest})
      ) as match order by seq desc limit ${sql.lit(limit)} offset ${sql.lit(skip)}`;
  };
}

/**
 * Finds messages that contain all words, ignoring case. A word also matches longer words that begin with it.
 * Searching for frequent words is slow, so use `Store.readWorker`. Aborting `signal` stops the search.
 */
export async function searchTranscripts(
  db: Db,
  asked: TranscriptQuestion,
  signal?: AbortSignal,
): Promise<SearchPage<LabelledHit>> {
  const words = wordsOf(asked.query);
  const before = asked.cursor === undefined ? undefined : Number(asked.cursor);
  if (words.length === 0 || (before !== undefined && !Number.isSafeInteger(before))) return { hits: [] };
  const matches = matchesOf(db, words, await placesOf(db, asked));
  if (matches === undefined) return { hits: [] };
  const conditions = [inScope(db, { scope: asked.scope })];
  if (asked.sessionKey !== undefined) conditions.push(sql`s.key = ${asked.sessionKey}`);
  if (asked.agentId !== undefined) conditions.push(sql`s.agent_id = ${asked.agentId}`);
  const { rows } = await sql<HitRow>`
    select m.seq, m.id, m.session_key, m.session_id, s.session_id as current_id, m.role, m.created_at,
      ${transcriptLabels(sql`m.session_id`)} as labels,
      case when octet_length(m.entry_json) <= ${sql.lit(READ_AT_ONCE_BYTES)} then m.entry_json end
        as entry_json
    from (${matches({ before, skip: 0, limit: MATCHES_MAX })}) f
    cross join messages m
    cross join sessions s
    where m.seq = f.seq and s.key = m.session_key and ${all(conditions)}
    ${kindOf(db) === "sqlite" ? sql`` : sql`order by f.seq desc`}
    limit ${asked.limit + 1}`.execute(db, { signal });
  const hits: LabelledHit[] = [];
  for (const row of rows.slice(0, asked.limit)) {
    const place = await conversationOf(db, row);
    if (place !== "hidden") hits.push({ ...(await hitOf(db, row, words, asked.redactor)), ...place });
  }
  const last = rows[asked.limit - 1];
  if (rows.length > asked.limit && last !== undefined) return { hits, nextCursor: String(last.seq) };
  const cut = (await matches({ before, skip: MATCHES_MAX - 1, limit: 1 }).execute(db, { signal })).rows[0];
  return cut === undefined ? { hits } : { hits, nextCursor: String(cut.seq) };
}

/** A chain with a matching message, and the session of that message. */
interface ChainMatch {
  readonly chainId: string;
  readonly sessionKey: string;
}

/** Finds the chains, active in a period, of the newest `MATCHES_MAX` messages that contain all words. */
export async function searchChains(
  db: Db,
  asked: Pick<TranscriptQuestion, "query" | "scope" | "limit"> & { readonly since: number; until: number },
  signal?: AbortSignal,
): Promise<ChainMatch[]> {
  const { query, scope, since, until, limit } = asked;
  const words = wordsOf(query);
  if (words.length === 0) return [];
  const matches = matchesOf(db, words, await placesOf(db, asked));
  if (matches === undefined) return [];
  const { rows } = await sql<ChainMatch>`
    select distinct r.chain_id as "chainId", m.session_key as "sessionKey"
    from (${matches({ before: undefined, skip: 0, limit: MATCHES_MAX })}) f
    cross join messages m
    cross join sessions s
    cross join runs r
    cross join chains c
    where m.seq = f.seq and s.key = m.session_key and r.run_id = m.run_id and c.chain_id = r.chain_id
      and c.last_at >= ${since} and c.last_at <= ${until}
      and ${inScope(db, { scope, includeArchived: true })}
    limit ${limit}`.execute(db, { signal });
  return rows;
}

/** Returns the author of a message. An agent has no name here: it is that of the session. */
function authorOf(message: Message): HitAuthor {
  if (message.role !== "user")
    return { kind: message.role === "assistant" && message.stopReason === "injected" ? "note" : "agent" };
  const { provenance, senderName } = message;
  if (provenance === undefined) return { kind: "person", ...optional({ name: senderName }) };
  switch (provenance.kind) {
    case "inter_session":
      return { kind: "session", sessionKey: provenance.sourceSessionKey };
    case "notice":
      return { kind: "notice", ...optional({ sessionKey: provenance.sourceSessionKey }) };
    default:
      return { kind: provenance.kind, ...optional({ name: provenance.source }) };
  }
}

async function hitOf(
  db: Db,
  row: HitRow,
  words: readonly string[],
  redactor: Redactor,
): Promise<LabelledHit> {
  const large = db.selectFrom("messages").select("entry_json").where("seq", "=", row.seq);
  const { entry_json } = row.entry_json === null ? ((await large.executeTakeFirst()) ?? row) : row;
  // A large entry may have been deleted in the meantime.
  const message = readMessage({ ...row, entry_json: entry_json ?? "" });
  const text = textOf(message);
  return {
    sessionKey: row.session_key,
    sessionId: row.session_id,
    messageId: row.id,
    role: row.role,
    author: authorOf(message),
    timestamp: row.created_at,
    // Redacts the text before it is cut, because part of a credential could not be recognised any more (I14).
    excerpt: excerptOf(await redactor.whole(text), words),
    labels: readLabelsJson(row.labels),
  };
}

/** Returns where the session has this message. "hidden": only other forks share this part of its origin. */
async function conversationOf(db: Db, row: HitRow): Promise<{ earlier?: true } | "hidden"> {
  if ((await partsFrom(db, row.current_id, row)).length > 0) return {};
  return (await isInheritedTranscript(db, row.session_id)) ? "hidden" : { earlier: true };
}
