// Computes the receipts of messages between sessions from their runs and inbox marks.

import { hasMark, isSessionMessage, receiptOf } from "../../../core/rules/receipt.ts";
import type { Receipt, Run } from "../../../core/shapes/run.ts";
import type { Db } from "../../sql.ts";
import { marksOf } from "./inbox-marks.ts";

/**
 * Returns the receipts of the messages that these runs delivered, by run id. Runs that delivered no message
 * between sessions are missing.
 */
export async function receiptsOf(db: Db, runs: readonly Run[]): Promise<Map<string, Receipt>> {
  const messages = runs.filter(isSessionMessage);
  const marked = messages.filter(hasMark);
  const marks = await marksOf(
    db,
    marked.map(({ runId }) => runId),
  );
  return new Map(
    messages.flatMap((run) => {
      const receipt = receiptOf({ run, mark: marks.get(run.runId) });
      return receipt === undefined ? [] : [[run.runId, receipt] as const];
    }),
  );
}
