// Reads the receipts of messages between sessions, from their runs, transcripts and inbox marks.

import { sql } from "kysely";
import { isSessionMessage, receiptOf } from "../../../core/rules/receipt.ts";
import type { Receipt, Run } from "../../../core/shapes/run.ts";
import type { Db } from "../../sql.ts";
import { marksOf } from "./inbox-marks.ts";

/** Returns when the model of each run stored its first message, by run id. */
async function heardIn(db: Db, runIds: readonly string[]): Promise<Map<string, number>> {
  if (runIds.length === 0) return new Map();
  const rows = await db
    .selectFrom("runs")
    .select([
      "run_id",
      sql<number | null>`(select m.created_at from messages m where m.run_id = runs.run_id
        and m.role = 'assistant' order by m.seq limit 1)`.as("at"),
    ])
    .where("run_id", "in", runIds)
    .execute();
  return new Map(rows.flatMap(({ run_id, at }) => (at === null ? [] : [[run_id, Number(at)] as const])));
}

/** Returns the receipts of these runs' messages, by run id. A run that brought no message has none. */
export async function receiptsOf(db: Db, runs: readonly Run[]): Promise<Map<string, Receipt>> {
  const messages = runs.filter(isSessionMessage);
  const idsOf = (kind: Run["kind"]): string[] =>
    messages.filter((run) => run.kind === kind).map(({ runId }) => runId);
  const [heard, marks] = await Promise.all([heardIn(db, idsOf("turn")), marksOf(db, idsOf("append"))]);
  return new Map(
    messages.flatMap((run) => {
      const { runId } = run;
      const receipt = receiptOf({ run, heardAt: heard.get(runId), mark: marks.get(runId) });
      return receipt === undefined ? [] : [[runId, receipt] as const];
    }),
  );
}
