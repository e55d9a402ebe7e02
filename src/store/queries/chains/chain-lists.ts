// Reads chains for lists: recently active chains, their sessions, and the links between those sessions. Each
// query is limited to a time window and one page of chains.

import { sql } from "kysely";
import type { Usage } from "../../../core/shapes/message.ts";
import type { RunInput } from "../../../core/shapes/run.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db } from "../../sql.ts";
import { ACTIVE } from "../runs/runs.ts";
import { type Condition, patternCondition } from "../sessions/session-scope.ts";

/** Main figures of a chain for a list. `cost` is in USD. */
export type ChainHead = Pick<
  RecordOf<"chains">,
  "chainId" | "rootSessionKey" | "lastAt" | "runs" | "tokens" | "cost"
>;

export const HEADS = recordsOf<ChainHead>()("chains", {
  key: ["chain_id"],
  columns: ["root_session_key", "last_at", "runs", "tokens", "cost"],
});

/** Position of a chain in the list. */
export type ChainPlace = Pick<ChainHead, "lastAt" | "chainId">;

interface ChainFilter {
  /** Only chains that were active at this time or later, in ms since 1970. */
  readonly since: number;
  /** Only chains that were active at this time or earlier, in ms since 1970. */
  readonly until?: number;
  /** 1 selects chains with a send or spawn between sessions, even a refused one; 0 selects all others. */
  readonly crossed: 0 | 1;
  /** Only chains in which this session takes part. */
  readonly sessionKey?: string;
  /** Only these chains, and chains in which one of these sessions takes part. */
  readonly among?: { readonly chainIds: readonly string[]; readonly sessionKeys: readonly string[] };
  /** Only chains in which this agent has a run. */
  readonly agentId?: string;
  /** Only chains with an unfinished run (`running`) or with a turn that failed (`failed`). */
  readonly state?: "running" | "failed";
  /** Only chains in which a session with a matching key takes part. If absent, all chains. */
  readonly patterns?: readonly string[];
  readonly before?: ChainPlace;
  readonly limit: number;
}

const FAILED = sql<boolean>`r.kind = 'turn' and r.state in ('error', 'timeout')`;
const UNFINISHED = sql<boolean>`r.state in (${sql.join(ACTIVE)})`;

/** Matches a chain if the key of a session with a run, or of a sender, fits. */
function hasParty(fits: (key: string) => Condition): Condition {
  return sql`(exists (select 1 from runs r where r.chain_id = chains.chain_id and ${fits("r.session_key")})
    or exists (select 1 from flows f where f.chain_id = chains.chain_id and ${fits("f.requester_key")}))`;
}

/** Returns the root session of each of these chains, by chain id. */
export async function rootsOfChains(db: Db, chainIds: readonly string[]): Promise<Map<string, string>> {
  if (chainIds.length === 0) return new Map();
  const rows = await db
    .selectFrom("chains")
    .select(["chain_id", "root_session_key"])
    .where("chain_id", "in", chainIds)
    .execute();
  return new Map(
    rows.flatMap(({ chain_id, root_session_key: key }) => (key === null ? [] : [[chain_id, key]])),
  );
}

/** Lists recently active chains, newest first. */
export async function listChains(db: Db, filter: ChainFilter): Promise<ChainHead[]> {
  const { since, until, crossed, sessionKey, among, agentId, state, patterns, before, limit } = filter;
  let query = HEADS.rows(db).where("crossed", "=", crossed).where("last_at", ">=", since);
  if (until !== undefined) query = query.where("last_at", "<=", until);
  if (before !== undefined) {
    const place = sql<boolean>`(last_at, chain_id) < (${before.lastAt}, ${before.chainId})`;
    query = query.where(place);
  }
  if (sessionKey !== undefined) query = query.where(hasParty((key) => sql`${sql.ref(key)} = ${sessionKey}`));
  if (among !== undefined) {
    const { chainIds, sessionKeys } = among;
    const ways: Condition[] = [];
    if (chainIds.length > 0) ways.push(sql`chain_id in (${sql.join(chainIds)})`);
    if (sessionKeys.length > 0)
      ways.push(hasParty((key) => sql`${sql.ref(key)} in (${sql.join(sessionKeys)})`));
    if (ways.length === 0) return [];
    query = query.where(sql<boolean>`(${sql.join(ways, sql` or `)})`);
  }
  // Only runs in sessions that the token covers count, so that a filter reveals nothing about others.
  const covers =
    patterns === undefined ? sql`` : sql`and ${patternCondition(db, sql.ref("r.session_key"), patterns)}`;
  const hasRun = (fits: Condition): Condition =>
    sql`exists (select 1 from runs r where r.chain_id = chains.chain_id and ${fits} ${covers})`;
  if (agentId !== undefined) query = query.where(hasRun(sql`r.agent_id = ${agentId}`));
  if (state !== undefined) query = query.where(hasRun(state === "failed" ? FAILED : UNFINISHED));
  if (patterns !== undefined) {
    const fits = (key: string): Condition => patternCondition(db, sql.ref(key), patterns);
    query = query.where(sql<boolean>`(${fits("chains.root_session_key")} or ${hasParty(fits)})`);
  }
  return HEADS.all(query.orderBy("last_at", "desc").orderBy("chain_id", "desc").limit(limit));
}

/**
 * Lists chains with unfinished runs that were last active before `until`, for example because a run takes
 * long.
 */
export async function chainsAtWork(
  db: Db,
  of: { until: number; kinds: readonly (0 | 1)[]; limit: number },
): Promise<ChainHead[]> {
  // Looks up the few unfinished runs first. Otherwise the query planner would scan all inactive chains.
  const busy = await db
    .selectFrom("runs")
    .select("chain_id")
    .distinct()
    .where("state", "in", ACTIVE)
    .limit(of.limit)
    .execute();
  const ids = busy.map((row) => row.chain_id);
  if (ids.length === 0) return [];
  const rows = await HEADS.rows(db).select("crossed").where("chain_id", "in", ids).execute();
  const silent = rows.filter(
    (row) => row.last_at < of.until && of.kinds.some((kind) => kind === row.crossed),
  );
  return silent.map(HEADS.read).sort((a, b) => b.lastAt - a.lastAt);
}

export interface ChainShare {
  readonly chainId: string;
  readonly sessionKey: string;
  /** Number of turns, without messages that were only stored. */
  readonly turns: number;
  readonly active: number;
  readonly failed: number;
  readonly hopMax: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** All conversations of one session with another in one chain, including refused ones. */
export interface ChainLink {
  readonly chainId: string;
  readonly kind: "send" | "spawn" | "refused";
  readonly from: string;
  readonly to: string;
  readonly flows: number;
  readonly open: number;
  readonly steps: number;
}

export interface ChainFacts {
  readonly shares: readonly ChainShare[];
  readonly links: readonly ChainLink[];
}

async function sharesOf(db: Db, chainIds: readonly string[]): Promise<ChainShare[]> {
  const rows = await db
    .selectFrom("runs")
    .select((eb) => [
      "chain_id as chainId",
      "session_key as sessionKey",
      sql<number>`count(*) filter (where kind = 'turn')`.as("turns"),
      sql<number>`count(*) filter (where state in (${sql.join(ACTIVE)}))`.as("active"),
      sql<number>`count(*) filter (where kind = 'turn' and state in ('error', 'timeout'))`.as("failed"),
      eb.fn.max("hop").as("hopMax"),
      eb.fn.min("accepted_at").as("firstAt"),
      eb.fn.max("accepted_at").as("accepted"),
      eb.fn.max("ended_at").as("ended"),
    ])
    .where("chain_id", "in", chainIds)
    .groupBy(["chain_id", "session_key"])
    .execute();
  return rows.map(({ accepted, ended, ...row }) => ({ ...row, lastAt: Math.max(accepted, ended ?? 0) }));
}

async function flowLinksOf(db: Db, chainIds: readonly string[]): Promise<ChainLink[]> {
  const rows = await db
    .selectFrom("flows as f")
    .leftJoin("runs as r", "r.flow_id", "f.flow_id")
    .select([
      "f.chain_id as chainId",
      "f.kind as kind",
      "f.requester_key as from",
      "f.target_key as to",
      sql<number>`count(distinct f.flow_id)`.as("flows"),
      sql<number>`count(distinct case when f.state = 'open' then f.flow_id end)`.as("open"),
      sql<number>`count(r.run_id)`.as("steps"),
    ])
    .where("f.chain_id", "in", chainIds)
    .groupBy(["f.chain_id", "f.kind", "f.requester_key", "f.target_key"])
    .execute();
  return rows.map((row) => ({ ...row, kind: row.kind as ChainLink["kind"] }));
}

async function refusedLinksOf(db: Db, chainIds: readonly string[]): Promise<ChainLink[]> {
  // A target that was named by something other than its session key creates no link.
  const to = sql<string>`coalesce(to_key, '')`;
  const rows = await db
    .selectFrom("refusals")
    .select((eb) => [
      "chain_id as chainId",
      "from_key as from",
      to.as("to"),
      eb.fn.countAll<number>().as("n"),
    ])
    .where("chain_id", "in", chainIds)
    .groupBy(["chain_id", "from_key", to])
    .execute();
  return rows.map(({ n, ...row }) => ({ ...row, kind: "refused" as const, flows: n, open: 0, steps: n }));
}

/** First input of a chain, and the session in whose transcript it is stored. */
export interface ChainOpening {
  readonly chainId: string;
  readonly sessionKey: string;
  /** Session that sent the input, if a session did. */
  readonly from?: string;
  readonly text: string;
}

/** Longer inputs are not read. The tools of a client stand beside the text. */
const OPENING_BYTES_MAX = 1024 * 1024;

/** Returns the first inputs of these chains. Chains whose first session was deleted are missing. */
export async function openingsOf(db: Db, chainIds: readonly string[]): Promise<ChainOpening[]> {
  if (chainIds.length === 0) return [];
  const place = sql<number>`row_number() over (partition by chain_id order by accepted_at, lane_seq)`;
  const inOrder = db
    .selectFrom("runs")
    .select(["run_id", place.as("place")])
    .where("chain_id", "in", chainIds)
    .as("o");
  const rows = await db
    .selectFrom(inOrder)
    .innerJoin("runs as r", "r.run_id", "o.run_id")
    .innerJoin("sessions as s", "s.key", "r.session_key")
    .select(["r.chain_id as chainId", "r.session_key as sessionKey", "r.input_json as input"])
    .where("o.place", "=", 1)
    .where(sql<number>`octet_length(r.input_json)`, "<", OPENING_BYTES_MAX)
    .execute();
  return rows.map(({ chainId, sessionKey, input }) => {
    const { text, provenance } = JSON.parse(input) as RunInput;
    const from = provenance?.kind === "inter_session" ? { from: provenance.sourceSessionKey } : {};
    return { chainId, sessionKey, text, ...from };
  });
}

/** Name of a session: its label, if it has one. */
export const LABEL = sql<string | null>`coalesce(label, display_name)`;

/** Returns the labels of those sessions that have one. */
export async function labelsOf(db: Db, keys: readonly string[]): Promise<Map<string, string>> {
  if (keys.length === 0) return new Map();
  const rows = await db
    .selectFrom("sessions")
    .select(["key", LABEL.as("name")])
    .where("key", "in", keys)
    .execute();
  return new Map(rows.flatMap(({ key, name }) => (name === null ? [] : [[key, name]])));
}

/** Returns the sessions of these chains and the links between them. */
export async function factsOfChains(db: Db, chainIds: readonly string[]): Promise<ChainFacts> {
  if (chainIds.length === 0) return { shares: [], links: [] };
  const [shares, flows, refused] = await Promise.all([
    sharesOf(db, chainIds),
    flowLinksOf(db, chainIds),
    refusedLinksOf(db, chainIds),
  ]);
  return { shares, links: [...flows, ...refused] };
}

/** Returns the usage of each run of these chains. */
export async function usageOfChains(
  db: Db,
  chainIds: readonly string[],
): Promise<{ chainId: string; sessionKey: string; usage: Usage }[]> {
  if (chainIds.length === 0) return [];
  const rows = await db
    .selectFrom("runs")
    .select(["chain_id as chainId", "session_key as sessionKey", "usage_json as usage"])
    .where("chain_id", "in", chainIds)
    .where("usage_json", "is not", null)
    .execute();
  return rows.map((row) => ({ ...row, usage: JSON.parse(row.usage ?? "") as Usage }));
}
