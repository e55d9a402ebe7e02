// Tracks whether a store can be written: on a full disk reads still work. It writes nothing for this while
// writing works. After a refused transaction, a status query tries to write to an embedded store; for a
// shared store the process's heartbeat tries each second.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "kysely";
import { StoreProblem } from "./problems.ts";
import { SCHEMA_VERSION } from "./schema/sqlite-schema.ts";
import type { Store } from "./sql.ts";

/** After a failed write a disk with less free space counts as full. */
const ROOM_BYTES_MIN = 1024 * 1024;

function isFull(file: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(file));
  return bavail * bsize < ROOM_BYTES_MIN;
}

/** Wraps a store so that it reports whether its last transaction could be written. */
export function watchWrites(store: Store): Store {
  let refused: StoreProblem | undefined;
  let trying: Promise<void> | undefined;
  const watched =
    (transaction: Store["transaction"]): Store["transaction"] =>
    async (work) => {
      try {
        const value = await transaction(work);
        refused = undefined;
        return value;
      } catch (error) {
        // "busy" means too many of our own queries: not a fault of the store.
        if (error instanceof StoreProblem && error.problem !== "busy") refused = error;
        throw error;
      }
    };
  const transaction = watched(store.transaction);
  // Writes the version that it already has: this changes the file's first page, but no data.
  const again = (): Promise<void> =>
    transaction(async (tx) => {
      // On a disk that is nearly full this small change may succeed although messages do not fit.
      if (refused?.problem === "full" && isFull(refused.place)) throw refused;
      await sql`pragma user_version = ${sql.lit(SCHEMA_VERSION)}`.execute(tx);
    }).catch(() => {});
  const { shared } = store;
  return {
    ...store,
    transaction,
    ...(shared === undefined ? {} : { shared: { ...shared, urgently: watched(shared.urgently) } }),
    refusal: async () => {
      if (refused !== undefined && store.kind === "sqlite") {
        trying ??= again().finally(() => {
          trying = undefined;
        });
        await trying;
      }
      return refused?.what;
    },
  };
}
