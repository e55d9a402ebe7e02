// The backup worker: a thread that makes one backup and ends. transfer/backup-thread.ts starts it.

import { parentPort, workerData } from "node:worker_threads";
import type { StoreSettings } from "../../core/shapes/settings/settings.ts";
import { Redactor } from "../../core/text/redact/redact.ts";
import { realWorld } from "../../world.ts";
import { backupStore } from "./transfer.ts";

/** Start options of the thread. Any message to the thread cancels the backup. */
export interface BackupWorkerOptions {
  readonly settings: StoreSettings;
  readonly file: string;
  /** Texts to remove from the search index of the backup. */
  readonly secrets: readonly string[];
}

const { settings, file, secrets } = workerData as BackupWorkerOptions;
const stop = new AbortController();
parentPort?.once("message", () => stop.abort());
const world = realWorld({ level: "silent", redactor: new Redactor(secrets) });
parentPort?.postMessage(await backupStore({ settings, world, signal: stop.signal }, file));
parentPort?.close();
