// The backup worker: a process that makes one backup and ends. transfer/backups.ts starts it. It also
// ends when the process that started it has ended.

import { fail } from "../../core/shapes/errors.ts";
import type { StoreSettings } from "../../core/shapes/settings/settings.ts";
import { Redactor } from "../../core/text/redact/redact.ts";
import { realWorld } from "../../world.ts";
import { backupStore } from "./transfer.ts";

export interface BackupWorkerOptions {
  readonly settings: StoreSettings;
  readonly file: string;
  /** Texts to remove from the search index of the backup. */
  readonly secrets: readonly string[];
}

const gone = new AbortController();
process.once("disconnect", () => gone.abort());
process.once("message", async ({ settings, file, secrets }: BackupWorkerOptions) => {
  const world = realWorld({ level: "silent", redactor: new Redactor(secrets) });
  const made = await backupStore({ settings, world, signal: gone.signal }, file).catch((error: unknown) =>
    fail("store_unavailable", `the backup failed: ${(error as Error).message}`),
  );
  if (process.connected) process.send?.(made, () => process.disconnect());
});
