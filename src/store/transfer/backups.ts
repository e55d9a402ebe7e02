// Owns the backups that a gateway makes of its store, in one folder.
// BK1: at most one backup is made at a time. Its name comes from the clock, never from a caller.
// BK2: each listed file is a complete backup, because a backup gets its name only when it is complete. An
//      interrupted backup leaves a folder, which is not listed. A backup that is made more than a day later
//      removes this folder.

import { readdir, rm, stat, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { backupFolder, type StoreSettings } from "../../core/shapes/settings/settings.ts";
import { ensureFolder } from "../../world/folders.ts";
import { runWorker } from "../../world/worker.ts";
import type { World } from "../../world.ts";
import { databaseBytes } from "../sqlite/file.ts";
import { STORE_FILE } from "../sqlite/sqlite.ts";
import type { BackupWorkerOptions } from "./backup-worker.ts";
import type { Moved } from "./transfer.ts";

const LISTED_MAX = 100;
/** Maximum number of backup files whose size and time are read. Further files are only counted. */
const READ_MAX = 1_000;
const ENDING = ".sqlite";
/** Matches the name of a folder that holds an unfinished backup. */
const UNFINISHED = /^parley-[\dTZ-]+\.sqlite\.unfinished-/;
const LEFT_AFTER_MS = 86_400_000;
/** Free disk space that must remain during a backup, so that the gateway can continue to write. */
const SPARE_BYTES = 64 * 1024 ** 2;

const STOPPING = fail("shutting_down", "the gateway is stopping");

/** Returns the folders in which a backup to this file is being made, or was interrupted. */
async function unfinishedFolders(file: string): Promise<string[]> {
  const folder = dirname(file);
  const start = `${basename(file)}.unfinished-`;
  return (await readdir(folder)).filter((name) => name.startsWith(start)).map((name) => join(folder, name));
}

/**
 * Backs up a store to a new file, in a process of its own: the check of the finished file is one long call of
 * SQLite, which would block the event loop and, in a thread, could not be cancelled. Aborting `signal` kills
 * the process, and removes an unfinished backup.
 */
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

interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  readonly createdAtMs: number;
}

interface RunningBackup {
  readonly name: string;
  readonly startedAtMs: number;
  /** Size of the store. Absent for a database server. */
  readonly totalBytes?: number;
}

export interface BackupList {
  readonly folder: string;
  /** Newest first. */
  readonly backups: readonly BackupFile[];
  readonly total: number;
  /** `bytes`: size of the copy so far. */
  readonly running?: RunningBackup & { readonly bytes: number };
  /** The last backup of this process that failed. Absent after a later backup has succeeded. */
  readonly failed?: { readonly name: string; readonly atMs: number; readonly error: string };
}

interface BackupParts {
  readonly settings: StoreSettings;
  readonly world: World;
  /** Texts to remove from the search index of a backup. */
  readonly secrets: readonly string[];
  readonly make?: typeof backupInProcess;
}

const unreadable = (folder: string, error: unknown) =>
  fail("store_unavailable", `the folder ${folder} cannot be used: ${(error as Error).message}`, {
    hint: "Check its owner and its mode, or set store.backupDir.",
  });

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

const sizeOf = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.size ?? 0;

async function sizeIn(folders: readonly string[]): Promise<number> {
  const files = await Promise.all(
    folders.map(async (folder) => (await namesIn(folder)).map((name) => join(folder, name))),
  );
  return (await Promise.all(files.flat().map(sizeOf))).reduce((sum, one) => sum + one, 0);
}

export class Backups {
  readonly #parts: BackupParts;
  readonly #folder: string;
  readonly #stop = new AbortController();
  #isBusy = false;
  #running: RunningBackup | undefined;
  #making: Promise<void> = Promise.resolve();
  #failed: BackupList["failed"];

  constructor(parts: BackupParts) {
    this.#parts = parts;
    this.#folder = backupFolder(parts.settings);
  }

  async list(): Promise<Result<BackupList>> {
    const folder = this.#folder;
    try {
      const names = await namesIn(folder);
      const complete = names.filter((name) => name.endsWith(ENDING)).sort();
      const found = await Promise.all(
        complete
          .reverse()
          .slice(0, READ_MAX)
          .map(async (name) => {
            const facts = await stat(join(folder, name)).catch(() => undefined);
            if (facts?.isFile() !== true) return [];
            return [{ name, bytes: facts.size, createdAtMs: Math.round(facts.mtimeMs) }];
          }),
      );
      const backups = found.flat().sort((one, other) => other.createdAtMs - one.createdAtMs);
      const base = { folder, backups: backups.slice(0, LISTED_MAX), total: complete.length };
      const running = this.#running;
      if (running === undefined) return ok({ ...base, ...optional({ failed: this.#failed }) });
      const bytes = await sizeIn(await unfinishedFolders(join(folder, running.name)));
      return ok({ ...base, running: { ...running, bytes }, ...optional({ failed: this.#failed }) });
    } catch (error) {
      return unreadable(folder, error);
    }
  }

  /** Starts a backup. `list` shows its progress and its end. */
  async begin(): Promise<Result<RunningBackup>> {
    if (this.#stop.signal.aborted) return STOPPING;
    if (this.#isBusy)
      return fail("rate_limited", "a backup is being made; wait for its end before you start another");
    this.#isBusy = true;
    const ready = await this.#prepare();
    const isStopping = this.#stop.signal.aborted;
    if (ready.ok && !isStopping) this.#making = this.#make(ready.value);
    else this.#isBusy = false;
    return isStopping ? STOPPING : ready;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#making;
  }

  async #prepare(): Promise<Result<RunningBackup>> {
    const folder = this.#folder;
    const { settings, world } = this.#parts;
    const startedAtMs = world.clock.now();
    try {
      await ensureFolder(folder);
      for (const name of (await namesIn(folder)).filter((one) => UNFINISHED.test(one))) {
        const left = join(folder, name);
        const facts = await stat(left).catch(() => undefined);
        // A younger one may be under way in another process.
        if (facts === undefined || startedAtMs - facts.mtimeMs < LEFT_AFTER_MS) continue;
        await rm(left, { recursive: true, force: true });
        world.log.info({ what: name }, "an unfinished backup was removed");
      }
      const totalBytes =
        settings.postgresUrl === undefined ? databaseBytes(join(settings.dir, STORE_FILE)) : undefined;
      const { bavail, bsize } = await statfs(folder);
      if (bavail * bsize < (totalBytes ?? 0) + SPARE_BYTES)
        return fail("store_unavailable", `the disk of ${folder} has too little free space for a backup`, {
          hint: "Remove old backups, or set store.backupDir to a folder on another disk.",
        });
      const stamp = new Date(startedAtMs).toISOString().replaceAll(/[:.]/g, "-");
      return ok({ name: `parley-${stamp}${ENDING}`, startedAtMs, ...optional({ totalBytes }) });
    } catch (error) {
      return unreadable(folder, error);
    }
  }

  async #make(running: RunningBackup): Promise<void> {
    const { settings, world, secrets, make = backupInProcess } = this.#parts;
    const { name, startedAtMs } = running;
    this.#running = running;
    const file = join(this.#folder, name);
    const made = await make({ settings, file, secrets }, this.#stop.signal).catch((error: unknown) =>
      fail("store_unavailable", `the backup failed: ${(error as Error).message}`),
    );
    this.#running = undefined;
    this.#isBusy = false;
    const ms = world.clock.now() - startedAtMs;
    if (made.ok) {
      this.#failed = undefined;
      world.log.info({ what: name, ms }, "a backup was made");
      return;
    }
    const { error, code } = made;
    this.#failed = { name, atMs: world.clock.now(), error };
    world.log.warn({ what: name, ms, why: error, code }, "a backup failed");
  }
}
