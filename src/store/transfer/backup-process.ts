// Makes a backup in a process of its own. The check of the finished file is one long call of SQLite, which
// would block the event loop and, in a thread, could not be cancelled: the gateway could not stop meanwhile.

import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fail, type Result } from "../../core/shapes/errors.ts";
import { runWorker } from "../../world/worker.ts";
import type { BackupWorkerOptions } from "./backup-worker.ts";
import type { Moved } from "./transfer.ts";

export const STOPPING = fail("shutting_down", "the gateway is stopping");

/** Returns the folders in which a backup to this file is being made, or was interrupted. */
export async function unfinishedFolders(file: string): Promise<string[]> {
  const folder = dirname(file);
  const start = `${basename(file)}.unfinished-`;
  return (await readdir(folder)).filter((name) => name.startsWith(start)).map((name) => join(folder, name));
}

/** Backs up a store to a new file. Aborting `signal` kills the process, and removes an unfinished backup. */
export async function backupInProcess(
  options: BackupWorkerOptions,
  signal: AbortSignal,
): Promise<Result<Moved>> {
  if (signal.aborted) return STOPPING;
  let result: Result<Moved> = fail("store_unavailable", "the backup ended unexpectedly");
  const problem = await runWorker({
    file: new URL("./backup-worker.ts", import.meta.url),
    order: options,
    signal,
    heard: (moved) => {
      result = moved as Result<Moved>;
    },
  });
  if (problem !== undefined) result = fail("store_unavailable", `the backup failed: ${problem.message}`);
  if (result.ok) return result;
  const left = await unfinishedFolders(options.file).catch(() => []);
  for (const folder of left) await rm(folder, { recursive: true, force: true }).catch(() => {});
  return signal.aborted ? STOPPING : result;
}
