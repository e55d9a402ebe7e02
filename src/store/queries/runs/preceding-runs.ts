// Finds the runs of a chain that ended before another run of the chain was accepted. They may have caused
// that run.

import type { Run } from "../../../core/shapes/run.ts";
import type { Db } from "../../sql.ts";

/** A run that ended earlier. */
export interface PrecedingRun {
  readonly runId: string;
  readonly sessionKey: string;
  readonly acceptedAt: number;
  readonly endedAt: number;
  readonly flowId?: string;
  readonly flowStep?: string;
  readonly flowTurn?: number;
}

/** Maximum number of runs that are returned, beginning with the one that ended last. */
const RUNS_MAX = 500;

/** Returns the earlier turns of a run's chain. The turn that ended last comes first. */
export async function precedingRuns(
  db: Db,
  { runId, chainId, acceptedAt }: Pick<Run, "runId" | "chainId" | "acceptedAt">,
): Promise<PrecedingRun[]> {
  const rows = await db
    .selectFrom("runs")
    .select(["run_id", "session_key", "accepted_at", "ended_at", "flow_id", "flow_step", "flow_turn"])
    .where("chain_id", "=", chainId)
    .where("kind", "=", "turn")
    .where("run_id", "!=", runId)
    .where("accepted_at", "<=", acceptedAt)
    .where("ended_at", "<=", acceptedAt)
    .orderBy("ended_at", "desc")
    .orderBy("accepted_at", "desc")
    .limit(RUNS_MAX)
    .execute();
  return rows.map((row) => ({
    runId: row.run_id,
    sessionKey: row.session_key,
    acceptedAt: row.accepted_at,
    endedAt: Number(row.ended_at),
    ...(row.flow_id === null ? {} : { flowId: row.flow_id }),
    ...(row.flow_step === null ? {} : { flowStep: row.flow_step }),
    ...(row.flow_turn === null ? {} : { flowTurn: row.flow_turn }),
  }));
}
