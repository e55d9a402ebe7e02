// Owns the table of conversations with agents elsewhere: for each transcript the newest task, so that a task
// is followed after a crash, by any process.

import { type RecordOf, recordsOf } from "../records.ts";
import type { Db, Tx } from "../sql.ts";

type StoredTask = RecordOf<"remote_tasks", { readonly isAsking: boolean }>;

/**
 * The conversation of one transcript. `remote`: address of the agent's card. `contextId` and `taskId` are the
 * agent's own ids; the task's one may not be known yet. `isAsking`: the task waits for another message.
 * `knownUpTo`: the last entry of the transcript that the agent has received.
 */
export type RemoteTask = Omit<StoredTask, "sessionId" | "updatedAt">;

const TASKS = recordsOf<StoredTask, RemoteTask>()(
  "remote_tasks",
  {
    key: ["session_id"],
    columns: ["remote", "context_id", "run_id", "task_id", "known_up_to", "updated_at"],
    flags: ["is_asking"],
  },
  ({ sessionId: _, updatedAt: __, ...task }) => task,
);

export const getRemoteTask = (db: Db, sessionId: string) => TASKS.find(db, { sessionId });

export const putRemoteTask = (tx: Tx, sessionId: string, task: RemoteTask, updatedAt: number) =>
  TASKS.put(tx, { ...task, sessionId, updatedAt });
