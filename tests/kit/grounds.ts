// What a fleet stands on: a store of a kind, fresh for each story, and how to look into it afterwards.

import { openPostgres } from "../../src/store/postgres.ts";
import type { Store } from "../../src/store/sql.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { realWorld } from "../../src/world.ts";
import type { Fleet } from "./fleet.ts";
import { freshSchema, runSql } from "./postgres.ts";

/** A store that nobody has used yet. */
export interface FreshStore {
  /** The section `store` of every process's configuration. */
  readonly config: Record<string, unknown>;
  /** Opens it once no process of the fleet is left. */
  open(fleet: Fleet): Promise<Store>;
  /** The files of the embedded store and its readable copies; absent: it has none. */
  filesDir?(fleet: Fleet): string;
  /** Takes away what `open` does not. */
  remove(): Promise<void>;
}

export interface Ground {
  readonly name: string;
  /** Processes that may work over it at once. */
  readonly processes: number;
  /** How much later than it says something may have happened: clocks apart, and units that waited for locks. */
  readonly skewMs: number;
  fresh(): Promise<FreshStore>;
}

/** One process over its own database file. */
export const EMBEDDED: Ground = {
  name: "embedded",
  processes: 1,
  skewMs: 0,
  fresh: async () => ({
    config: {},
    open(fleet) {
      const { log } = realWorld({ level: "silent" });
      return openSqlite({ dir: fleet.storeDir(0), durability: "full", log });
    },
    filesDir: (fleet) => fleet.storeDir(0),
    remove: async () => {},
  }),
};

/** Three processes over one PostgreSQL: each store is a schema of its own on the server at `address`. */
export function clusterGround(address: () => Promise<string>): Ground {
  return {
    name: "cluster",
    processes: 3,
    // A claim carries the time at which its unit began, and may have waited for the locks of a process that
    // stood still: as long as one is paused, and a second for the clocks.
    skewMs: 7_000,
    async fresh() {
      const { url, schema } = freshSchema(await address());
      const world = realWorld({ level: "silent" });
      return {
        config: { postgresUrl: url },
        open: () => openPostgres({ url, world }),
        remove: async () => {
          await runSql(url, `drop schema if exists ${schema} cascade`);
        },
      };
    },
  };
}
