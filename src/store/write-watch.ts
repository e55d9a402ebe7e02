// Owns what is known of whether a store can be written at the moment: a full disk lets everything be read.
// WW1: nothing is written for it while writing works. Once a transaction was refused, an embedded store is
//      tried again by whoever asks; the heartbeat of a process tries a shared one each second.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "kysely";
import { SCHEMA_VERSION } from "./migrations.ts";
import { StoreProblem } from "./problems.ts";
import type { Store } from "./sql.ts";

/** Below this a disk counts as full, once something did not fit. */
const ROOM_BYTES_MIN = 1024 * 1024;

function isFull(file: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(file));
  return bavail * bsize < ROOM_BYTES_MIN;
}

/** A store that says whether it can be written, by its last transaction. */
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
        // Too many questions of our own are no fault of the store.
        if (error instanceof StoreProblem && error.problem !== "busy") refused = error;
        throw error;
      }
    };
  const transaction = watched(store.transaction);
  // The version that it has: a change of the file's first page that changes nothing.
  const again = (): Promise<void> =>
    transaction(async (tx) => {
      // A small change may still fit where messages do not.
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
