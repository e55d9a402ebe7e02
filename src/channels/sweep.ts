// Deletes old rows periodically.

import type { Commit, Unit } from "../engine/unit.ts";
import type { Timer, World } from "../world.ts";

interface SweepParts {
  readonly commit: Commit;
  readonly world: World;
  readonly everyMs: number;
  /** Message for the log if deleting old rows fails. */
  readonly failed: string;
}

/** Calls `work` periodically, each time in a new transaction. The returned function stops this. */
export function sweep(parts: SweepParts, work: (unit: Unit) => Promise<void>): () => Promise<void> {
  const { commit, everyMs, failed } = parts;
  const { clock, log } = parts.world;
  let timer: Timer | undefined;
  let working: Promise<void> = Promise.resolve();
  let open = true;
  const begin = (): void => {
    working = commit(work)
      .catch((error: unknown) => log.warn({ err: error }, failed))
      .then(() => {
        if (open) timer = clock.after(everyMs, begin);
      });
  };
  timer = clock.after(everyMs, begin);
  return async () => {
    open = false;
    timer?.cancel();
    await working;
  };
}
