// Fills every column of every table of a store with values that are hard to copy, and reads the contents of a
// store for comparison.

import { sql } from "kysely";
import { optional } from "../../src/core/optional.ts";
import type { Entry } from "../../src/core/shapes/message.ts";
import { added } from "../../src/features.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import type { Db, Store, Tx } from "../../src/store/sql.ts";
import type { Dice } from "../kit/dice.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleSession, toolResult, userMessage } from "./samples.ts";

/** The tables of a store, except those about running processes. */
const TABLES = [
  "sessions",
  "session_ids",
  "messages",
  "runs",
  "waits",
  "flows",
  "chains",
  "inbound",
  "channel_peers",
  "channel_cursors",
  "thread_bindings",
  "refusals",
  "device_tokens",
  "permissions",
  "permission_rules",
  "access_tokens",
  "deadlines",
  "deliveries",
  "ledger",
  "idempotency",
  ...Object.keys(added("tables")),
];
/** Columns whose numbers the database generates in the order of the rows. */
const MADE = ["row_id", "seq"];

const TEXTS = [
  ...["", " ", "plain", "NUL\0inside", "\0", "a\0", "😀", "𠀀", "\ufffd", "\ufeff", "é", "e\u0301"],
  ...["\u202e", "\\", "\\x41", "\\0", "{}", "{a,b}", '"quoted"', "'; drop table sessions; --", "$1", "?"],
  ...["\n\r\t", "NULL", "null", "1e400", "<b>", "%s", "\u2028", "\u007f", "ß", "İ"],
];
const LONG = "long text of a row, ".repeat(5_000);
/** Columns that may contain long texts. Indexed columns may not. */
const LONG_COLUMNS = [
  "input_json",
  "reply",
  "error",
  "request_text",
  "latest_reply",
  "text",
  "answer_json",
  "body_json",
];
const INTEGERS = [0, 1, -1, 2 ** 31, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 1_700_000_000_000];
const REALS = [0, 0.1, 1 / 3, -5, 1e-300, Number.MAX_VALUE, Number.MIN_VALUE];
const STATES: Readonly<Record<string, readonly string[]>> = {
  runs: ["queued", "running", "waiting", "ok", "error", "timeout", "aborted"],
  waits: ["open", "answered", "ended"],
  flows: ["open", "ended"],
  deliveries: ["pending", "sent", "failed", "skipped"],
  inbound: ["pending", "done", "refused", "ignored"],
  channel_peers: ["pending", "approved", "blocked"],
};
/** Columns whose values must differ between rows. */
const UNIQUE: Readonly<Record<string, readonly string[]>> = {
  sessions: ["key", "session_id"],
  session_ids: ["session_id"],
  messages: ["id"],
  runs: ["run_id", "session_key", "call_id"],
  waits: ["call_id"],
  flows: ["flow_id"],
  chains: ["chain_id"],
  refusals: ["call_id"],
  deadlines: ["key"],
  // A key of a route is JSON, which escapes half characters, so no two of them are equal on the server.
  deliveries: ["id", "route_key"],
  idempotency: ["key"],
  cron_jobs: ["id"],
  inbound: ["message_id"],
  channel_peers: ["peer_id", "code"],
  channel_cursors: ["name"],
  thread_bindings: ["route_key"],
  nodes: ["id"],
  node_requests: ["node_id", "request_id", "code"],
  device_tokens: ["device_id"],
  permissions: ["id"],
  permission_rules: ["id"],
  access_tokens: ["id"],
  push_configs: ["id"],
  gateway_keys: ["name"],
  push_devices: ["id", "endpoint"],
  push_keys: ["name"],
  peers: ["name", "key_id"],
  conversation_metadata: ["session_id"],
};

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly hidden: number;
}

function anyValue(chance: Dice, table: string, column: Column, number: number): string | number | null {
  const { name, type, notnull } = column;
  if (name === "route_json") return JSON.stringify({ channel: "telegram", to: `${number}` });
  if (UNIQUE[table]?.includes(name)) return `${chance.of(TEXTS)}${number}`;
  if (notnull === 0 && chance.chance(0.4)) return null;
  if (name === "state") return chance.of(STATES[table] ?? []);
  if (type === "INTEGER") return chance.of(INTEGERS);
  if (type === "REAL") return chance.of(REALS);
  return LONG_COLUMNS.includes(name) && chance.chance(0.2) ? LONG : chance.of(TEXTS);
}

/** Inserts rows with a random value in every column. */
async function addAnything(tx: Tx, chance: Dice, rows: number): Promise<void> {
  for (const table of TABLES) {
    const query = sql<Column>`select * from pragma_table_xinfo(${table})`;
    const columns = (await query.execute(tx)).rows.filter(
      ({ name, hidden }) => hidden === 0 && !MADE.includes(name),
    );
    for (let number = 0; number < rows; number += 1) {
      const values = columns.map((column) => sql`${anyValue(chance, table, column, number)}`);
      const names = columns.map(({ name }) => sql.ref(name));
      await sql`insert into ${sql.table(table)} (${sql.join(names)}) values (${sql.join(values)})`.execute(
        tx,
      );
    }
  }
}

const SPOKEN = [
  ...[
    "the quick brown fox",
    "NUL\0here",
    "half \ud800 a sign",
    "half \udc00 too",
    "東京 の 夏",
    "über Zürich",
  ],
  ...["it's 'quoted' \\ and (so) on", "key sk-ant-api03-Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8Zq8", "😀 fox", ""],
];
/** Search texts that find some messages. */
export const QUESTIONS = ["fox", "quick bro", "東京", "zurich", "quoted", "here", "half", "key", "w39999"];
/** A text that is too long for one tsvector and for one page of rows. */
const HUGE = Array.from({ length: 40_000 }, (_, n) => `w${n}`).join(" ");

/** Transcript entries that are unreadable or in an unknown format. */
const DAMAGED = [
  ...["", "{", "null", "[]", '"fox"', "{}", '{"id":"x","role":"user"}', '{"role":"user","content":[{}]}'],
  ...['{"role":"user","content":[{"type":"text","text":7}]}', '{"role":"user","content":"fox"}', "fox\0fox"],
  ' { "id" : "\\uD800" , "n":1.0e2, "n":2, "__proto__":{"a":1}, "content":[{"type":"text","text":"odd way"}]}',
];

/** Adds entries to transcripts of live, archived, reset and deleted sessions, in turns. */
async function addTranscripts(tx: Tx, chance: Dice): Promise<void> {
  const session = (name: string, more: Parameters<typeof sampleSession>[0] = {}) =>
    sampleSession({ key: `agent:main:chat:${name}`, sessionId: `id-of-${name}`, kind: "other", ...more });
  await insertSession(tx, session("live"));
  await insertSession(tx, session("other", { agentId: "research", spawnedBy: "agent:main:chat:live" }));
  await insertSession(tx, session("archived", { archivedAt: 7 }));
  const places = ["live", "other", "archived", "deleted"];
  const say = async (number: number, place: string, entry: Entry): Promise<void> => {
    const at = { sessionKey: `agent:main:chat:${place}`, sessionId: `id-of-${place}` };
    const runId = number % 3 === 0 ? {} : { runId: `run ${number % 7}` };
    await appendEntry(tx, { ...at, ...runId, entry }, plainRedactor);
  };
  for (let number = 0; number < 400; number += 1) {
    const write = chance.of([userMessage, assistantMessage, toolResult]);
    await say(number, chance.of(places), write(`m${number}`, chance.of(SPOKEN)));
  }
  await say(1, "live", userMessage("huge", HUGE));
  await say(2, "live", toolResult("vast", "x".repeat(6_000_000)));
  await say(3, "live", userMessage("after", "a fox behind all that"));
  const compaction = { type: "compaction", summary: "fox", firstKeptId: "m9", timestamp: 3 } as const;
  await say(4, "live", { id: "short", ...compaction });
  const half = userMessage("part", "a sound fox and a block that is lost");
  await say(5, "live", half);
  const blocks = [null, 7, { type: "text", text: "a sound fox" }, { type: "text" }];
  await tx
    .updateTable("messages")
    .set({ entry_json: JSON.stringify({ ...half, content: blocks }) })
    .where("id", "=", "part")
    .execute();
  for (const [number, entry] of DAMAGED.entries()) {
    const role = chance.of(["user", "assistant", "toolResult"]);
    const place = { session_key: "agent:main:chat:live", session_id: "id-of-live" };
    await tx
      .insertInto("messages")
      .values({ id: `d${number}`, ...place, run_id: null, role, entry_json: entry, created_at: number })
      .execute();
  }
}

/** Fills an embedded store with rows and transcripts. */
export async function fillStore(store: Store, chance: Dice): Promise<void> {
  await store.transaction((tx) => addAnything(tx, chance, 60));
  await store.transaction((tx) => addTranscripts(tx, chance));
}

type Rows = Record<string, readonly string[]>;

/**
 * Returns all rows of a store as JSON, without generated numbers. They are in the order of these numbers, or
 * sorted if a table has none. `onServer`: replaces NUL in the same way as a store on PostgreSQL.
 */
export async function rowsOf(db: Db, how: { onServer: boolean }): Promise<Rows> {
  const all: Record<string, string[]> = {};
  for (const table of TABLES) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(db);
    const number = MADE.find((name) => rows[0]?.[name] !== undefined);
    const inOrder =
      number === undefined ? rows : rows.toSorted((a, b) => Number(a[number]) - Number(b[number]));
    const keep = (value: unknown): unknown =>
      how.onServer && typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;
    const texts = inOrder.map((row) => {
      // A restore computes the digests of rules.
      const isMade = (name: string) =>
        MADE.includes(name) || (table === "permission_rules" && name === "digest");
      const kept = Object.entries(row).filter(([name]) => !isMade(name));
      kept.sort(([a], [b]) => (a < b ? -1 : 1));
      return JSON.stringify(kept.map(([name, value]) => [name, keep(value)]));
    });
    all[table] = number === undefined ? texts.sort() : texts;
  }
  return all;
}

/** Returns the search results for each search text, in order. */
export async function foundIn(db: Db): Promise<Record<string, readonly string[]>> {
  const found: Record<string, string[]> = {};
  for (const query of QUESTIONS) {
    for (const agentId of [undefined, "main", "research"]) {
      const asked = {
        query,
        scope: { all: true },
        redactor: plainRedactor,
        limit: 1_000,
        ...optional({ agentId }),
      };
      const { hits } = await searchTranscripts(db, asked);
      found[`${query} ${agentId ?? ""}`] = hits.map((hit) => hit.messageId);
    }
  }
  return found;
}
