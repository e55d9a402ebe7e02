// Owns the table of agents' memories: one text for each agent.

import { held } from "../locks.ts";
import { prepared } from "../prepared.ts";
import type { Db, Tx } from "../sql.ts";

export interface AgentMemory {
  readonly text: string;
  /** Increases with each change. 0: the agent has no memory yet. */
  readonly revision: number;
  /** Ids of the calls that made the last changes. */
  readonly calls: readonly string[];
}

const NONE: AgentMemory = { text: "", revision: 0, calls: [] };

interface Row {
  readonly text: string;
  readonly revision: number;
  readonly calls_json: string;
}

const toMemory = ({ text, revision, calls_json: calls }: Row): AgentMemory => ({
  text,
  revision,
  calls: JSON.parse(calls) as string[],
});

const READ = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom("agent_memory").select(["text", "revision", "calls_json"]).where("agent_id", "=", agentId),
);

export async function readMemory(db: Db, agentId: string): Promise<AgentMemory> {
  const [row] = (await READ(db, { agentId })).rows;
  return row === undefined ? NONE : toMemory(row);
}

/** Reads a memory, and locks its row until the transaction ends. Adds the row if it is missing. */
export async function holdMemory(tx: Tx, agentId: string, now: number): Promise<AgentMemory> {
  const { text, revision } = NONE;
  await tx
    .insertInto("agent_memory")
    .values({ agent_id: agentId, text, revision, calls_json: "[]", updated_at: now })
    .onConflict((conflict) => conflict.column("agent_id").doNothing())
    .execute();
  const row = tx.selectFrom("agent_memory").selectAll().where("agent_id", "=", agentId);
  return toMemory(await held(tx, row).executeTakeFirstOrThrow());
}

export async function writeMemory(
  tx: Tx,
  agentId: string,
  { text, revision, calls }: AgentMemory,
  now: number,
): Promise<void> {
  const values = { text, revision, calls_json: JSON.stringify(calls), updated_at: now };
  await tx.updateTable("agent_memory").set(values).where("agent_id", "=", agentId).execute();
}
