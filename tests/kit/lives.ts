// What random stories of processes share: a process that dies in a world that goes on, and time that passes while
// something is waited for. All of it is the seed's; only how long a test is patient is the machine's.

import type { Timer, World } from "../../src/world.ts";
import type { FakeWorld } from "./world.ts";

const PATIENCE_MS = 10_000;

/** One process of a story. */
export interface Life {
  dead: boolean;
}

/** The world as one process sees it: once it is dead, none of its timers fires. */
export function worldOf(world: World, life: Life): World {
  const { clock } = world;
  const at = (atMs: number, fire: () => void): Timer => clock.at(atMs, () => life.dead || fire());
  return { ...world, clock: { ...clock, at } };
}

/** Resolves when so much of the world's time has passed, or at the abort. */
export function pauseIn({ clock }: World, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    clock.at(clock.now() + ms, resolve);
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Lets time pass until something has come to its end, or the process that does it is dead. */
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
