// Helpers for randomized tests of several processes: one process can crash while time continues for the
// others. The seed decides everything except how long a test waits.

import type { World } from "../../../src/world.ts";
import { PATIENCE_MS } from "../until.ts";
import { type FakeWorld, withTimers } from "../world.ts";

/** Time limit for a hanging test. On a busy machine a slow test takes half a minute. */

/** The state of one simulated process. */
export interface Life {
  dead: boolean;
}

/** Returns the world of one process. After the process has died, none of its timers fires. */
export function worldOf(world: World, life: Life): World {
  return withTimers(world, (fire) => () => life.dead || fire());
}

/** Resolves after this number of milliseconds of the world's clock, or when `signal` aborts. */
export function pauseIn({ clock }: World, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Advances time until a promise has settled, or until its process is dead. */
export async function inTime(
  world: FakeWorld,
  life: Life,
  what: string,
  work: Promise<unknown>,
): Promise<void> {
  let over = false;
  const watched = work.finally(() => {
    over = true;
  });
  watched.catch(() => undefined);
  const until = Date.now() + PATIENCE_MS;
  for (let round = 0; Date.now() < until && !over && !life.dead; round += 1)
    await world.advance(round < 100 ? 1 : 20);
  if (life.dead) return;
  if (!over) throw new Error(`${what} does not come to an end`);
  await watched;
}
