// Owns the table of agents' memories: one text for each agent. A change by a run with outside content waits
// for an owner (instruction-contents.ts), and the text before it counts meanwhile.

import { optional } from "../../core/optional.ts";
import { prepared } from "../prepared.ts";
import { recordsOf } from "../records.ts";
import type { Db, Tx } from "../sql.ts";

export interface AgentMemory {
  readonly text: string;
  /** The text that counts, if changes wait for an owner. */
  readonly confirmed?: string;
  /** Increases with each change. 0: the agent has no memory yet. */
  readonly revision: number;
  /** Ids of the calls that made the last changes. */
  readonly calls: readonly string[];
}

const NONE: AgentMemory = { text: "", revision: 0, calls: [] };

const MEMORIES = recordsOf<Omit<AgentMemory, "confirmed"> & { readonly agentId: string }>()("agent_memory", {
  key: ["agent_id"],
  columns: ["text", "revision", "calls_json"],
});

/** Returns the id of the row in `instruction_contents` for the memory of an agent. */
export const memoryRowId = (agentId: string): string => `memory:${agentId}`;

const READ = prepared((db, { agentId, rowId }: { agentId: string; rowId: string }) =>
  db
    .selectFrom("agent_memory")
    .leftJoin("instruction_contents as kept", (join) => join.on("kept.id", "=", rowId))
    .select(["agent_memory.text", "revision", "calls_json", "kept.text as confirmed"])
    .where("agent_id", "=", agentId),
);

export async function readMemory(db: Db, agentId: string): Promise<AgentMemory> {
  const [row] = (await READ(db, { agentId, rowId: memoryRowId(agentId) })).rows;
  return row === undefined
    ? NONE
    : { ...MEMORIES.read(row), ...optional({ confirmed: row.confirmed ?? undefined }) };
}

/** Reads a memory, and locks its row until the transaction ends. Adds the row if it is missing. */
export async function holdMemory(tx: Tx, agentId: string, now: number): Promise<AgentMemory> {
  await tx
    .insertInto("agent_memory")
    .values({ ...MEMORIES.write({ ...NONE, agentId }), updated_at: now })
    .onConflict((conflict) => conflict.column("agent_id").doNothing())
    .execute();
  await MEMORIES.hold(tx, { agentId });
  return readMemory(tx, agentId);
}

export async function writeMemory(
  tx: Tx,
  agentId: string,
  { text, revision, calls }: AgentMemory,
  now: number,
): Promise<void> {
  const values = { ...MEMORIES.columns({ text, revision, calls }), updated_at: now };
  await tx.updateTable("agent_memory").set(values).where("agent_id", "=", agentId).execute();
}
