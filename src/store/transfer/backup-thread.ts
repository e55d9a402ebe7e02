// Makes a backup in a thread, because the check of the finished file reads all of it at once and would block
// the event loop.

import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { BackupWorkerOptions } from "./backup-worker.ts";
import type { Moved } from "./transfer.ts";

/** Returns the path of the thread's file, which is in this folder in the sources and in the build. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./backup-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

/** Backs up a store to a new file. Aborting `signal` cancels the backup, unless its file is complete. */
export function backupInThread(options: BackupWorkerOptions, signal: AbortSignal): Promise<Result<Moved>> {
  const { promise, resolve } = Promise.withResolvers<Result<Moved>>();
  const worker = new Worker(workerFile(), { workerData: options });
  let result: Result<Moved> = fail("store_unavailable", "the backup ended unexpectedly");
  const stop = (): void => worker.postMessage("stop");
  signal.addEventListener("abort", stop, { once: true });
  worker.on("message", (moved: Result<Moved>) => {
    result = moved;
  });
  worker.on("error", (error) => {
    result = fail("store_unavailable", `the backup failed: ${(error as Error).message}`);
  });
  worker.on("exit", () => {
    signal.removeEventListener("abort", stop);
    resolve(result);
  });
  return promise;
}
