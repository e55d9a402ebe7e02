// What the figures inside this process are measured on: an engine over an embedded store, without a gateway.

import type { Settings } from "../src/core/settings.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { realWorld } from "../src/world.ts";
import { benchSettings, instantEngine } from "./instant.ts";

export const world = realWorld({ level: "silent" });

export interface Bench {
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
}

/** An engine over the store in `dir`, with a model that answers at once. */
export async function withEngine<T>(dir: string, work: (bench: Bench) => Promise<T>): Promise<T> {
  const settings = benchSettings(dir);
  const store = await openSqlite({ dir: settings.store.dir, durability: "full", log: world.log });
  const { maxConcurrent } = settings;
  const engine = await instantEngine({ store, world, settings, maxConcurrent });
  try {
    return await work({ engine, store, settings });
  } finally {
    await engine.stop(0);
    await store.close();
  }
}
