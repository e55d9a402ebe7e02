// Owns the usage ledger: the usage of each run, and its sums by agent and day, which budgets read. Entries
// remain when sessions and transcripts are deleted. Days are in UTC, so they are the same for all processes.

import { type Insertable, type RawBuilder, sql } from "kysely";
import type { Usage } from "../../../core/shapes/message.ts";
import { isSubagentKey } from "../../../core/shapes/session-key.ts";
import type { UsageGroup, UsageLine, UsageOrder, UsageSum } from "../../../core/shapes/usage.ts";
import { prepared } from "../../prepared.ts";
import type { LedgerTable } from "../../schema/tables.ts";
import { type Db, kindOf, type Tx } from "../../sql.ts";
import { together } from "../../transaction.ts";
import { type Condition, patternCondition } from "../sessions/session-scope.ts";

const DAY_MS = 86_400_000;
/**
 * Maximum number of parents to follow. It is larger than any allowed spawn depth, and stops at a cycle in
 * damaged data.
 */
const LINKS_MAX = 16;

interface UsageRow {
  readonly runId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  /** ms since 1970. */
  readonly at: number;
}

/** Returns the root of a session's spawn tree, or the topmost ancestor that still exists. */
async function rootOf(tx: Tx, key: string): Promise<string> {
  if (!isSubagentKey(key)) return key;
  const { rows } = await sql<{ key: string }>`with recursive up (key, above, n) as (
      select key, spawned_by, 0 from sessions where key = ${key}
      union all
      select s.key, s.spawned_by, up.n + 1 from up join sessions s on s.key = up.above
        where up.n < ${sql.lit(LINKS_MAX)}
    ) select key from up order by n desc limit 1`.execute(tx);
  return rows[0]?.key ?? key;
}

const ADD = prepared((tx, row: Insertable<LedgerTable>) => tx.insertInto("ledger").values(row));

/** Connections of PostgreSQL add to different parts, so runs of an agent that end do not wait in line. */
const ADD_TO_DAY = prepared((tx, row: Record<"agent" | "day" | "tokens" | "cost", string | number>) => {
  const part = kindOf(tx) === "sqlite" ? sql`0` : sql`pg_backend_pid() % 64`;
  return sql`insert into agent_days (agent_id, day, part, tokens, cost)
    values (${row.agent}, ${row.day}, ${part}, ${row.tokens}, ${row.cost})
    on conflict (agent_id, day, part) do update
      set tokens = agent_days.tokens + excluded.tokens, cost = agent_days.cost + excluded.cost`;
});

export async function addUsageRow(tx: Tx, row: UsageRow): Promise<void> {
  const { usage, at } = row;
  const entry = {
    run_id: row.runId,
    session_key: row.sessionKey,
    root_key: await rootOf(tx, row.sessionKey),
    agent_id: row.agentId,
    provider: row.provider,
    model: row.model,
    input: usage.input,
    output: usage.output,
    cache_read: usage.cacheRead,
    cache_write: usage.cacheWrite,
    total_tokens: usage.totalTokens,
    cost: usage.cost.total,
    at,
  };
  const sums = { tokens: usage.totalTokens, cost: usage.cost.total };
  await together(ADD(tx, entry), ADD_TO_DAY(tx, { agent: row.agentId, day: dayStart(at), ...sums }));
}

/**
 * Returns the usage of a session in all its transcripts. Without a session, reads the whole ledger and
 * returns all usage.
 */
export async function usageOf(db: Db, of: { sessionKey?: string }): Promise<UsageSum> {
  let query = db
    .selectFrom("ledger")
    .select(({ fn, lit }) => [
      fn.coalesce(fn.sum<number>("input"), lit(0)).as("input"),
      fn.coalesce(fn.sum<number>("output"), lit(0)).as("output"),
      fn.coalesce(fn.sum<number>("cache_read"), lit(0)).as("cacheRead"),
      fn.coalesce(fn.sum<number>("cache_write"), lit(0)).as("cacheWrite"),
      fn.coalesce(fn.sum<number>("total_tokens"), lit(0)).as("totalTokens"),
      fn.coalesce(fn.sum<number>("cost"), lit(0)).as("cost"),
    ]);
  if (of.sessionKey !== undefined) query = query.where("session_key", "=", of.sessionKey);
  return await query.executeTakeFirstOrThrow();
}

/** Returns the start of the UTC day (ms since 1970). */
export function dayStart(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** Returns the usage of an agent on the UTC day of this time. */
export async function usageOfDay(
  db: Db,
  agentId: string,
  at: number,
): Promise<Pick<UsageSum, "totalTokens" | "cost">> {
  const { rows } = await sql<Pick<UsageSum, "totalTokens" | "cost">>`
    select coalesce(sum(tokens), 0) as "totalTokens", coalesce(sum(cost), 0) as cost
    from agent_days where agent_id = ${agentId} and day = ${dayStart(at)}`.execute(db);
  return rows[0] ?? { totalTokens: 0, cost: 0 };
}

/**
 * Returns the column by which usage is grouped. In a tree whose root session does not match `covers`, each
 * session has a line of its own.
 */
function columnOf(group: UsageGroup, covers: (key: RawBuilder<unknown>) => Condition): RawBuilder<unknown> {
  switch (group) {
    // Written as expressions, so that the database uses the index on the period, not an index on these
    // columns.
    case "agent":
      return sql`l.agent_id || ''`;
    case "tree":
      return sql`case when ${covers(sql`l.root_key`)} then l.root_key else l.session_key end`;
    case "session":
      return sql`l.session_key || ''`;
    case "chain":
      return sql`coalesce(r.chain_id, l.chain_id)`;
    case "model":
      return sql`l.provider || '/' || l.model`;
    case "day":
      return sql`l.at - l.at % ${sql.lit(DAY_MS)}`;
  }
}

interface UsageWanted {
  readonly by: UsageGroup;
  /** Start of the period, inclusive, in ms since 1970. */
  readonly since: number;
  readonly agentId?: string | undefined;
  /** Only sessions with a matching key. If absent, all sessions. */
  readonly patterns?: readonly string[] | undefined;
  readonly order: UsageOrder;
  /**
   * Maximum number of lines. If each line is a day, the newest days are returned, otherwise the first lines
   * in `order`.
   */
  readonly limit: number;
}

/**
 * Returns the usage, with one line per agent, tree, session, chain, model or day. An unknown chain has an
 * empty name.
 */
export async function usageBy(db: Db, wanted: UsageWanted): Promise<UsageLine[]> {
  const { by, since, agentId, patterns, limit } = wanted;
  const covers = (key: RawBuilder<unknown>): Condition =>
    patterns === undefined ? sql`${key} is not null` : patternCondition(db, key, patterns);
  const whose = agentId === undefined ? sql`` : sql`and l.agent_id = ${agentId}`;
  const first =
    wanted.order === "cost" ? sql`cost desc, "totalTokens" desc` : sql`"totalTokens" desc, cost desc`;
  const order = by === "day" ? sql`name desc` : sql`${first}, name`;
  const runs = by === "chain" ? sql`left join runs r on r.run_id = l.run_id` : sql``;
  const { rows } = await sql<Omit<UsageLine, "name"> & { readonly name: string | number | null }>`
    select ${columnOf(by, covers)} as name, count(distinct l.run_id) as runs, sum(l.input) as input,
      sum(l.output) as output, sum(l.cache_read) as "cacheRead", sum(l.cache_write) as "cacheWrite",
      sum(l.total_tokens) as "totalTokens", sum(l.cost) as cost, max(l.at) as "lastAt"
    from ledger l ${runs} where l.at >= ${since} ${whose} and ${covers(sql`l.session_key`)}
    group by 1 order by ${order} limit ${sql.lit(limit)}`.execute(db);
  return rows.map(({ name, ...sums }) => {
    const day = by === "day" ? new Date(Number(name)).toISOString().slice(0, 10) : String(name ?? "");
    return { name: day, ...sums };
  });
}

/** Returns how many runs a budget has ended since a time, by agent and code. */
export async function budgetStops(
  db: Db,
  since: number,
): Promise<{ agentId: string; code: "budget_used" | "chain_limit"; runs: number }[]> {
  const rows = await db
    .selectFrom("runs")
    .select(({ fn }) => ["agent_id as agentId", "code", fn.countAll<number>().as("runs")])
    .where("ended_at", ">=", since)
    .where("code", "in", ["budget_used", "chain_limit"])
    .groupBy(["agent_id", "code"])
    .execute();
  return rows.map((row) => ({ ...row, code: row.code as "budget_used" | "chain_limit" }));
}
