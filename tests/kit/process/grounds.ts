// Stores for the gateway processes of a test. Each test gets a new store, which can be opened afterwards for
// checks.

import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { realWorld } from "../../../src/world.ts";
import { cleanup } from "../engine/engine.ts";
import { freshSchema, runSql, serverUrl } from "../store/postgres.ts";
import type { Fleet } from "./fleet.ts";

/** A new store. */
export interface FreshStore {
  /** The section `store` in the configuration of every process. */
  readonly config: Record<string, unknown>;
  /** Opens the store after all processes have ended. */
  open(fleet: Fleet): Promise<Store>;
  /**
   * Returns the folder with the files of the embedded store and with its JSONL copies. Absent if the store
   * has no files.
   */
  filesDir?(fleet: Fleet): string;
  /** Removes the store, except the parts that `open` closes itself. */
  remove(): Promise<void>;
}

export interface Ground {
  readonly name: string;
  /** Maximum number of processes that share the store. */
  readonly processes: number;
  /** Maximum error of a recorded time, because clocks differ and transactions wait for locks. */
  readonly skewMs: number;
  fresh(): Promise<FreshStore>;
}

/** One process with its own database file. */
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

/** Three processes on one PostgreSQL server at `address`. Each store is a schema. */
export function clusterGround(address: () => Promise<string>): Ground {
  return {
    name: "cluster",
    processes: 3,
    // The recorded time of a claim is the start of its transaction, which may then wait for the locks of a
    // paused process. One more second allows for clocks that differ.
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

/** The two kinds of stores. Each function returns the part of the configuration that names a new store. */
export const STORES: [string, () => Promise<{ store?: { postgresUrl: string } }>][] = [
  ["the embedded store", async () => ({})],
  [
    "PostgreSQL",
    async () => {
      const { url, schema } = freshSchema(await serverUrl());
      cleanup(() => runSql(url, `drop schema if exists ${schema} cascade`).then(() => {}));
      return { store: { postgresUrl: url } };
    },
  ],
];
