// Makes a connection to an embedded file distrust the file's own schema. Loaded by every start.

import type { DatabaseSync } from "node:sqlite";

/**
 * Prepares a connection for a file of unknown origin: its schema may call nothing that has side effects, and
 * no statement may write to the schema itself.
 */
export function distrust(database: DatabaseSync): void {
  database.enableDefensive(true);
  database.exec("pragma trusted_schema = off");
}
