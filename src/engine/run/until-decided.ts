// Waits for the decision about a permission request.

import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import { decidePermission, decisionOf } from "../../store/queries/permissions.ts";
import type { Store } from "../../store/sql.ts";
import type { EndWatch } from "../lanes/end-watch.ts";
import type { Commit } from "../unit.ts";

interface DecisionParts {
  readonly store: Pick<Store, "db">;
  readonly commit: Commit;
  readonly watch: Pick<EndWatch, "until">;
}

/** Text of the log line about a request. */
export const ASKS = "an agent asks for permission; answer with: npx parley-gateway permissions";

/** The decision if nobody answers. */
const UNANSWERED: PermissionAnswered = { decision: "deny", scope: "once", by: "" };

/**
 * Resolves with the decision, or with a denial when the request expires or is deleted. Resolves with
 * undefined when the wait is aborted.
 */
export async function untilDecided(
  { store, commit, watch }: DecisionParts,
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
