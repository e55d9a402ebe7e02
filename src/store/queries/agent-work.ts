// Counts the sessions and the unfinished runs of each agent.

import { sql } from "kysely";
import type { Db } from "../sql.ts";

export interface AgentWork {
  /** Sessions that are not archived. */
  readonly sessions: number;
  readonly running: number;
  readonly waiting: number;
  readonly queued: number;
}

/** Returns the work of each agent that has a session or an unfinished run. */
export async function workByAgent(db: Db): Promise<Map<string, AgentWork>> {
  type Row = { agent: string; state: keyof AgentWork; n: number };
  const { rows } = await sql<Row>`
    select agent_id as agent, 'sessions' as state, count(*) as n from sessions where archived = 0
      group by agent_id
    union all
    select agent_id, state, count(*) from runs where state in ('running', 'waiting', 'queued')
      group by agent_id, state`.execute(db);
  const found = new Map<string, AgentWork>();
  const none: AgentWork = { sessions: 0, running: 0, waiting: 0, queued: 0 };
  for (const { agent, state, n } of rows) {
    found.set(agent, { ...(found.get(agent) ?? none), [state]: Number(n) });
  }
  return found;
}
