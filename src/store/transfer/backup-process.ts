// Makes a backup in a process of its own. The check of the finished file is one long call of SQLite, which
// would block the event loop and, in a thread, could not be cancelled: the gateway could not stop meanwhile.

import { fork } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { BackupWorkerOptions } from "./backup-worker.ts";
import type { Moved } from "./transfer.ts";

export const STOPPING = fail("shutting_down", "the gateway is stopping");

/** Returns the path of the process's file, which is in this folder in the sources and in the build. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./backup-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

/** Returns the folders in which a backup to this file is being made, or was interrupted. */
export async function unfinishedFolders(file: string): Promise<string[]> {
  const folder = dirname(file);
  const start = `${basename(file)}.unfinished-`;
  return (await readdir(folder)).filter((name) => name.startsWith(start)).map((name) => join(folder, name));
}

async function removeUnfinished(file: string): Promise<void> {
  for (const folder of await unfinishedFolders(file)) await rm(folder, { recursive: true, force: true });
}

/** Backs up a store to a new file. Aborting `signal` kills the process, and removes an unfinished backup. */
export async function backupInProcess(
  options: BackupWorkerOptions,
  signal: AbortSignal,
): Promise<Result<Moved>> {
  if (signal.aborted) return STOPPING;
  let result: Result<Moved> = fail("store_unavailable", "the backup ended unexpectedly");
  const { promise: exited, resolve } = Promise.withResolvers<void>();
  const child = fork(workerFile(), { execArgv: [], stdio: "ignore", serialization: "advanced" });
  const stop = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  child.on("message", (moved: Result<Moved>) => {
    result = moved;
  });
  child.on("error", (error) => {
    result = fail("store_unavailable", `the backup failed: ${error.message}`);
    if (child.pid === undefined) resolve();
  });
  child.on("exit", () => resolve());
  child.send(options);
  await exited;
  signal.removeEventListener("abort", stop);
  if (result.ok) return result;
  await removeUnfinished(options.file).catch(() => {});
  return signal.aborted ? STOPPING : result;
}
