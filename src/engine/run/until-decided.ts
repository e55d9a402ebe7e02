// Waits for the decision about a permission request.

import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import { decidePermission, decisionOf } from "../../store/queries/permissions.ts";
import type { Store } from "../../store/sql.ts";
import { pause } from "../../world/pause.ts";
import type { Clock } from "../../world.ts";
import type { Bus } from "../bus.ts";
import type { Commit } from "../unit.ts";

/** A waiting agent reads its request at this interval, because an event may be lost. */
const LOOK_AGAIN_MS = 10_000;

/** Text of the log line about a request. */
export const ASKS = "an agent asks for permission; answer with: npx parley-gateway permissions";

interface DecisionParts {
  readonly store: Pick<Store, "db">;
  readonly bus: Pick<Bus, "subscribe">;
  readonly commit: Commit;
  readonly clock: Pick<Clock, "after">;
  now(): number;
}

/** The decision if nobody answers. */
const UNANSWERED: PermissionAnswered = { decision: "deny", scope: "once", by: "" };

/**
 * Resolves with the decision, or with a denial when the request expires or is deleted. Resolves with
 * undefined when the wait is aborted.
 */
export async function untilDecided(
  { store, bus, commit, clock, now }: DecisionParts,
  { id, sessionKey, expiresAt }: PermissionQuestion,
  signal: AbortSignal,
): Promise<PermissionAnswered | undefined> {
  while (!signal.aborted) {
    const news = new AbortController();
    const stop = bus.subscribe((event) => {
      if (event.kind === "permission" && event.id === id) news.abort();
    });
    try {
      const leftMs = expiresAt - now();
      // If an answer is stored before this denial, the answer counts, because the owner gets a confirmation
      // of it.
      if (leftMs <= 0) {
        await commit(async (unit) => {
          if (await decidePermission(unit.tx, id, { ...UNANSWERED, atMs: unit.now }))
            unit.publish({ kind: "permission", id, sessionKey, change: "settled", answer: UNANSWERED });
        });
      }
      const decided = await decisionOf(store.db, id);
      if (decided === "gone") return UNANSWERED;
      if (decided !== undefined) return decided;
      await pause(clock, Math.min(leftMs, LOOK_AGAIN_MS), AbortSignal.any([signal, news.signal]));
    } finally {
      stop();
    }
  }
  return undefined;
}
