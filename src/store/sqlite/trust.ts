// Restricts a connection so that the schema in a file cannot do harm. Every start loads this module.

import type { DatabaseSync } from "node:sqlite";

/**
 * Prepares a connection for a file of unknown origin: SQL in its schema cannot call functions with side
 * effects, and statements cannot change the schema table.
 */
export function distrust(database: DatabaseSync): void {
  database.enableDefensive(true);
  database.exec("pragma trusted_schema = off");
}
