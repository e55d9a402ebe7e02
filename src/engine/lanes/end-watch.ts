// Wakes waiters in this process when what they wait for may have ended. The rows are the truth; events only
// say when to read them.

import type { Run } from "../../core/shapes/run.ts";
import { settledAmong } from "../../store/queries/runs/waits.ts";
import type { Db } from "../../store/sql.ts";
import type { Clock } from "../../world.ts";
import type { Bus } from "../bus.ts";

export type EndWatch = ReturnType<typeof createEndWatch>;

type Wake = (run?: Run) => void;

const HOLD = "hold ";
/** Returns the id under which runs of a session wait until a person releases them. */
export const holdId = (sessionKey: string): string => `${HOLD}${sessionKey}`;

/** Tells waiters in this process to read their rows again. */
export function createEndWatch(db: Db, clock: Clock, bus: Bus) {
  const watchers = new Map<string, Set<Wake>>();
  /** Notifies the waiters that something has ended. Without `run`, they read its row. */
  const noteEnd = (id: string, run?: Run): void => {
    for (const wake of watchers.get(id) ?? []) wake(run);
  };
  bus.subscribe((event) => {
    if (event.kind === "permission") noteEnd(event.id);
    if (event.kind === "session" && event.change === "state") noteEnd(holdId(event.sessionKey));
    if (event.kind !== "flow" || event.step !== "ended") return;
    for (const id of [event.flowId, event.runId]) noteEnd(id);
  });
  return {
    /**
     * Calls `isOver` at once, when one of these runs, jobs, permission requests or holds may have ended, and
     * when the deadline has passed or the signal has fired. Resolves when it returns true, or after the last
     * of these calls. `isOver` gets the run that has ended, if it is known.
     */
    async until(
      ids: readonly string[],
      isOver: (ended?: Run) => Promise<boolean>,
      deadlineAt: number,
      signal?: AbortSignal,
    ): Promise<void> {
      let news = Promise.withResolvers<void>();
      let known: Run | undefined;
      let isLast = false;
      const wake: Wake = (run) => {
        known = run ?? known;
        news.resolve();
      };
      const giveUp = (): void => {
        isLast = true;
        wake();
      };
      for (const id of ids) watchers.set(id, (watchers.get(id) ?? new Set()).add(wake));
      const timer = deadlineAt === Number.POSITIVE_INFINITY ? undefined : clock.at(deadlineAt, giveUp);
      signal?.addEventListener("abort", giveUp, { once: true });
      if (signal?.aborted === true) giveUp();
      try {
        // Each round reads the rows after the promise is made, so that an end in between is not missed.
        for (;;) {
          const isDone = isLast;
          if ((await isOver(known)) || isDone) return;
          await news.promise;
          news = Promise.withResolvers();
        }
      } finally {
        timer?.cancel();
        signal?.removeEventListener("abort", giveUp);
        for (const id of ids) {
          watchers.get(id)?.delete(wake);
          if (watchers.get(id)?.size === 0) watchers.delete(id);
        }
      }
    },
    noteEnd,
    /** Notifies waiters of all ends in the store, because an event may have been lost. */
    async look(): Promise<void> {
      for (const id of watchers.keys()) if (id.startsWith(HOLD)) noteEnd(id);
      for (const id of await settledAmong(db, [...watchers.keys()])) noteEnd(id);
    },
    isIdle: () => watchers.size === 0,
  };
}
