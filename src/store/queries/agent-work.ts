// Counts the unfinished runs of each agent.

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
    found.set(agent, { ...(found.get(agent) ?? none), [state]: Number(n) });
  }
  return found;
}
