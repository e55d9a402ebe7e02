// Makes a connection to an embedded file distrust the file's own schema. Every start loads this module.

import type { DatabaseSync } from "node:sqlite";

/**
 * Prepares a connection for a file of unknown origin: its schema may call no function with side effects, and
 * no statement may change the schema itself.
 */
export function distrust(database: DatabaseSync): void {
  database.enableDefensive(true);
  database.exec("pragma trusted_schema = off");
}
