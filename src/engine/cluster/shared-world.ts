// Takes the time of every stored date from the clock of the database that several processes share. So all
// processes agree on dates, even if the clock of one machine is wrong or jumps.

import type { Store } from "../../store/sql.ts";
import type { World } from "../../world.ts";

/**
 * Returns a world with the clock of the shared database. With an embedded store, returns the world unchanged.
 */
export function sharedWorld(store: Store, world: World): World {
  const { shared } = store;
  if (shared === undefined) return world;
  const { clock } = world;
  return {
    ...world,
    clock: {
      now: () => shared.now(),
      monotonic: () => clock.monotonic(),
      at: (atMs, fire, keep) => clock.after(atMs - shared.now(), fire, keep),
      after: (ms, fire, keep) => clock.after(ms, fire, keep),
    },
  };
}
