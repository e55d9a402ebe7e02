// Defines the methods for the upkeep of an installation: backups.

import { about, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NOTHING } from "./parts.ts";

const begun = {
  name: text("Name of its file in the folder."),
  startedAtMs: number(),
} as const;

const BACKUP_LIST = named(
  "BackupList",
  "The backups in the gateway's backup folder.",
  object(
    {
      ts: number(),
      folder: text("The setting `store.backupDir`, or `backups` in the store's folder."),
      backups: list(
        object({ name: text(), bytes: number(), createdAtMs: number() }),
        "Complete backups, newest first, at most 100.",
      ),
      total: number("Number of backups in the folder."),
    },
    {
      running: about(
        object(
          { ...begun, bytes: number("Size of the copy so far.") },
          { totalBytes: number("Size of the store. Absent for PostgreSQL.") },
        ),
        "The backup that is being made.",
      ),
      failed: about(
        object({ name: text(), atMs: number(), error: text() }),
        "The last failure since the start of the gateway, until a backup succeeds.",
      ),
    },
  ),
);
export type BackupList = Of<typeof BACKUP_LIST>;

export const UPKEEP_METHODS = {
  "store.backups": {
    scope: ADMIN,
    everySession: true,
    summary: `Lists the backups in the gateway's backup folder, with the progress of a running one.`,
    params: NOTHING,
    result: BACKUP_LIST,
    errors: ["store_unavailable"],
  },
  "store.backup": {
    scope: ADMIN,
    everySession: true,
    summary: `Starts a backup of the store in the gateway's backup folder, one at a time.`,
    params: object({}, { idempotencyKey }),
    result: object({ ok: oneOf(true), ...begun }),
    errors: ["store_unavailable"],
  },
} as const satisfies Record<string, MethodSpec>;
