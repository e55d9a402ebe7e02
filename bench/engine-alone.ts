// Opens an engine over an embedded store, without a gateway, for benchmarks in this process.

import { optional } from "../src/core/optional.ts";
import type { Settings } from "../src/core/shapes/settings/settings.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { realWorld } from "../src/world.ts";
import { Filling } from "./filling.ts";
import { inFolder } from "./in-folder.ts";
import { benchSettings, instantEngine } from "./instant.ts";

export const world = realWorld({ level: "silent" });

export interface Bench {
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
}

/**
 * Opens an engine over a store in its own folder, with a model that answers at once. `maxConcurrent`: the
 * number of runs that execute at once. Default: the setting's default.
 */
export async function withEngine<T>(work: (bench: Bench) => Promise<T>, maxConcurrent?: number): Promise<T> {
  return inFolder(async (dir) => {
    const settings = benchSettings(dir);
    const store = await openSqlite({
      dir: settings.store.dir,
      durability: "full",
      log: world.log,
      clock: world.clock,
      ...optional({ gather: world.gather }),
    });
    const slots = maxConcurrent ?? settings.maxConcurrent;
    const engine = await instantEngine({ store, world, settings, maxConcurrent: slots });
    try {
      return await work({ engine, store, settings });
    } finally {
      await engine.stop(0);
      await store.close();
    }
  });
}

/** Runs `work` with an engine, and with a `Filling` that fills its store quickly. */
export async function withFilling<T>(work: (bench: Bench & { filling: Filling }) => Promise<T>): Promise<T> {
  return withEngine(async (bench) => {
    const filling = new Filling(bench.settings.store.dir, world.clock.now());
    try {
      return await work({ ...bench, filling });
    } finally {
      filling.close();
    }
  });
}
