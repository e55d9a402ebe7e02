// Publishes the delivery state of a message between sessions, after the commit that changes it. The rows hold
// the state (`core/rules/receipt.ts`). After a crash, an event may be published again.

import { optional } from "../../core/optional.ts";
import { isSessionMessage, sourceOf } from "../../core/rules/receipt.ts";
import type { ReceiptState, Run } from "../../core/shapes/run.ts";
import type { Unit } from "../unit.ts";

/** Publishes a state of the message that this run delivered, if it delivered one. */
export function publishReceipt(
  unit: Unit,
  run: Pick<Run, "runId" | "sessionKey" | "flow" | "input">,
  state: ReceiptState,
  code?: string,
): void {
  const from = sourceOf(run.input);
  if (!isSessionMessage(run) || from === undefined) return;
  const { runId, sessionKey } = run;
  unit.publish({ kind: "receipt", runId, sessionKey, from, state, atMs: unit.now, ...optional({ code }) });
}
