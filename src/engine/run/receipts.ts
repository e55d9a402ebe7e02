// Publishes how far a message between sessions has come, after the commit that makes it so. The rows tell the
// state (`core/rules/receipt.ts`); an event may be repeated after a crash.

import { optional } from "../../core/optional.ts";
import { isSessionMessage, sourceOf } from "../../core/rules/receipt.ts";
import type { ReceiptState, Run } from "../../core/shapes/run.ts";
import type { Unit } from "../unit.ts";

/** Publishes a state of the message that this run brought, if it brought one. */
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
