// Counts the unfinished runs of each agent, and finds its failed ones.

import { sql } from "kysely";
import type { Db } from "../sql.ts";

export interface AgentWork {
  readonly running: number;
  readonly waiting: number;
  readonly queued: number;
}

/** Returns the work of each agent that has an unfinished run. */
export async function workByAgent(db: Db): Promise<Map<string, AgentWork>> {
  type Row = { agent: string; state: keyof AgentWork; n: number };
  const { rows } = await sql<Row>`
    select agent_id as agent, state, count(*) as n from runs where state in ('running', 'waiting', 'queued')
      group by agent_id, state`.execute(db);
  const found = new Map<string, AgentWork>();
  const none: AgentWork = { running: 0, waiting: 0, queued: 0 };
  for (const { agent, state, n } of rows) {
    found.set(agent, { ...(found.get(agent) ?? none), [state]: n });
  }
  return found;
}

/** Number of newest ended runs to look for failures in, because PostgreSQL has no index of failed runs. */
const ENDED_MAX = 5_000;

/** Returns the failed runs among the newest ended runs of all agents, newest first. */
export async function newestFailures(
  db: Db,
): Promise<{ agentId: string; sessionKey: string; at: number; error: string }[]> {
  const ended = db
    .selectFrom("runs")
    .select(["agent_id as agentId", "session_key as sessionKey", "ended_at as at", "error", "state"])
    .where("ended_at", "is not", null)
    .orderBy("ended_at", "desc")
    .limit(ENDED_MAX);
  const rows = await db
    .selectFrom(ended.as("ended"))
    .select(["agentId", "sessionKey", "at", "error"])
    .where("state", "=", "error")
    .orderBy("at", "desc")
    .execute();
  return rows.map(({ at, error, ...run }) => ({ ...run, at: at ?? 0, error: error ?? "" }));
}
