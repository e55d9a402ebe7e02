// Tracks whether a store accepts writes. On a full disk, reads still work and writes fail. While writes
// succeed, nothing extra is written. After a failed write to an embedded store, each query of the store's
// status tries to write again. A shared store needs no such attempt, because the heartbeat of the process
// writes to it every second.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "kysely";
import { StoreProblem } from "./problems.ts";
import { SCHEMA_VERSION } from "./schema/conversion.ts";
import type { Store } from "./sql.ts";

/** After a failed write, the disk counts as full while it has less free space than this. */
const ROOM_BYTES_MIN = 1024 * 1024;

/** Wraps a store. If its last transaction could not be written, `refusal` returns the reason. */
export function watchWrites(store: Store): Store {
  let refused: StoreProblem | undefined;
  let trying: Promise<void> | undefined;
  const watchTransaction =
    (transaction: Store["transaction"]): Store["transaction"] =>
    async (work) => {
      try {
        const value = await transaction(work);
        refused = undefined;
        return value;
      } catch (error) {
        // "busy" means that too many queries of this gateway wait, which is not a problem of the store.
        if (error instanceof StoreProblem && error.problem !== "busy") refused = error;
        throw error;
      }
    };
  const transaction = watchTransaction(store.transaction);
  // Writes the version number that the file already has. This changes the file's first page, but no data.
  const again = (): Promise<void> =>
    transaction(async (tx) => {
      if (refused?.problem === "full") {
        const { bavail, bsize } = statfsSync(dirname(refused.place));
        // On a nearly full disk this small write may succeed although messages do not fit.
        if (bavail * bsize < ROOM_BYTES_MIN) throw refused;
      }
      await sql`pragma user_version = ${sql.lit(SCHEMA_VERSION)}`.execute(tx);
    }).catch(() => {});
  const { shared } = store;
  return {
    ...store,
    transaction,
    ...(shared === undefined ? {} : { shared: { ...shared, urgently: watchTransaction(shared.urgently) } }),
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
