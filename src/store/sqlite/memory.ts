// Opens an empty store in memory, which ends with the process. One connection reads and writes.

import { DatabaseSync } from "node:sqlite";
import type { Store } from "../sql.ts";
import { committedRows, sqliteTransactions } from "./driver.ts";
import { bringUp } from "./schema.ts";

const NAME = ":memory:";

/** `transcriptPath`: the path that the store gives for the readable copy of a transcript. None is written. */
export function openMemoryStore(transcriptPath: (sessionId: string) => string | undefined): Store {
  const database = new DatabaseSync(NAME, { enableForeignKeyConstraints: false });
  bringUp(database, 0);
  return {
    kind: "sqlite",
    db: committedRows(database, NAME),
    transaction: sqliteTransactions(database, NAME),
    transcriptPath,
    writtenTranscript: () => undefined,
    close: async () => database.close(),
  };
}
