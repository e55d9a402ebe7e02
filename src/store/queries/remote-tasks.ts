// Owns the table of conversations with agents elsewhere: for each transcript the newest task, so that a task
// is followed after a crash, by any process.

import type { Db, Tx } from "../sql.ts";

/** The conversation of one transcript. */
export interface RemoteTask {
  /** Address of the agent's card. */
  readonly remote: string;
  /** The agent's own id of the conversation. */
  readonly contextId: string;
  readonly runId: string;
  /** The agent's own id of the run's task. Absent: it is not known yet. */
  readonly taskId?: string;
  /** True if the task waits for another message. */
  readonly isAsking: boolean;
  /** The last entry of the transcript that the agent has received. */
  readonly knownUpTo?: string;
}

export async function getRemoteTask(db: Db, sessionId: string): Promise<RemoteTask | undefined> {
  const row = await db
    .selectFrom("remote_tasks")
    .selectAll()
    .where("session_id", "=", sessionId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    remote: row.remote,
    contextId: row.context_id,
    runId: row.run_id,
    isAsking: row.is_asking === 1,
    ...(row.task_id === null ? {} : { taskId: row.task_id }),
    ...(row.known_up_to === null ? {} : { knownUpTo: row.known_up_to }),
  };
}

export async function putRemoteTask(tx: Tx, sessionId: string, task: RemoteTask, at: number): Promise<void> {
  const columns = {
    remote: task.remote,
    context_id: task.contextId,
    run_id: task.runId,
    task_id: task.taskId ?? null,
    is_asking: task.isAsking ? 1 : 0,
    known_up_to: task.knownUpTo ?? null,
    updated_at: at,
  };
  await tx
    .insertInto("remote_tasks")
    .values({ session_id: sessionId, ...columns })
    .onConflict((conflict) => conflict.column("session_id").doUpdateSet(columns))
    .execute();
}
