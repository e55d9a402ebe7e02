// Owns the time of a store that several processes share: the database's clock, for every date that is stored.
// SW1: a process whose own clock is wrong, or jumps, sets and meets dates like all the others.

import type { Store } from "../store/sql.ts";
import type { World } from "../world.ts";

/** The world as those see it who deal with dates in this store. Embedded: the world as it is. */
export function sharedWorld(store: Store, world: World): World {
  const { shared } = store;
  if (shared === undefined) return world;
  const { clock } = world;
  return {
    ...world,
    clock: {
      now: () => shared.now(),
      monotonic: () => clock.monotonic(),
      at: (atMs, fire, keep) => clock.at(clock.now() + Math.max(0, atMs - shared.now()), fire, keep),
    },
  };
}
