// Waits for the decision about a permission request.

import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import { decidePermission, decisionOf } from "../../store/queries/permissions.ts";
import type { EngineCore } from "../engine.ts";
import type { EndWatch } from "../lanes/end-watch.ts";

const UNANSWERED: PermissionAnswered = { decision: "deny", scope: "once", by: "" };

/**
 * Resolves with the decision, or with a denial when the request expires or is deleted. Resolves with
 * undefined when the wait is aborted.
 */
export async function untilDecided(
  { store, commit, watch }: Pick<EngineCore, "store" | "commit"> & { watch: Pick<EndWatch, "until"> },
  { id, sessionKey, expiresAt }: PermissionQuestion,
  signal: AbortSignal,
): Promise<PermissionAnswered | undefined> {
  let decided: PermissionAnswered | "gone" | undefined;
  const look = async (): Promise<boolean> => {
    decided = await decisionOf(store.db, id);
    return decided !== undefined;
  };
  await watch.until([id], look, expiresAt, signal);
  if (signal.aborted) return undefined;
  if (decided === undefined) {
    await commit(async (unit) => {
      if (await decidePermission(unit.tx, id, { ...UNANSWERED, atMs: unit.now }))
        unit.publish({ kind: "permission", id, sessionKey, change: "settled", answer: UNANSWERED });
    });
    // If an answer was stored before this denial, it counts, because the owner gets a confirmation of it.
    await look();
  }
  return decided === undefined || decided === "gone" ? UNANSWERED : decided;
}
