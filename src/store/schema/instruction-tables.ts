// Declares the columns of the tables of texts that enter prompts: the memories of agents, and the contents of
// instruction files that runs with outside content may have changed.

/** The memory of an agent. */
export interface AgentMemoryTable {
  agent_id: string;
  text: string;
  revision: number;
  /** Ids of the calls that made the last changes. */
  calls_json: string;
  updated_at: number;
}

/** A row of `store/queries/instruction-contents.ts`. */
export interface InstructionContentTable {
  /** The path of a file, `memory:<agent>`, or the id of a call. */
  id: string;
  /** `open | confirmed | pending`. */
  state: string;
  /** Path of the file, or of the folder below which the call may write. */
  path: string;
  /** The text that counts. Null: none does. */
  text: string | null;
  /** Size of the whole file with that text. */
  bytes: number | null;
  source: string;
  session_key: string;
  run_id: string | null;
  /** 1 if the call may have left a program that still writes. */
  lasts: number;
  at: number;
}
