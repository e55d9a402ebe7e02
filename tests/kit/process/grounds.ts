// The store of a fleet: new for each story, and open for checks afterwards.

import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { realWorld } from "../../../src/world.ts";
import { freshSchema, runSql } from "../store/postgres.ts";
import type { Fleet } from "./fleet.ts";

/** A new store. */
export interface FreshStore {
  /** The section `store` of every process's configuration. */
  readonly config: Record<string, unknown>;
  /** Opens it when no process of the fleet is left. */
  open(fleet: Fleet): Promise<Store>;
  /** The files of the embedded store and its readable copies; absent: none. */
  filesDir?(fleet: Fleet): string;
  /** Removes everything that `open` does not. */
  remove(): Promise<void>;
}

export interface Ground {
  readonly name: string;
  /** Maximum number of processes over it. */
  readonly processes: number;
  /**
   * How much later than recorded an event may have happened: clock differences, and transactions that waited
   * for locks.
   */
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

/** Three processes over one PostgreSQL: each store is a schema on the server at `address`. */
export function clusterGround(address: () => Promise<string>): Ground {
  return {
    name: "cluster",
    processes: 3,
    // The time of a claim is the start of its transaction. That may have waited for the locks of a paused
    // process, for the length of the pause. A second more allows for differing clocks.
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
