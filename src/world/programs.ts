// Owns what all programs that are started here have in common: where they are looked up, how one ends
// together with what it started, and when everything is read that it wrote.

import type { ChildProcess } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";

/** Where programs are looked up by those that get nothing of this process's own environment. */
export const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Whether a program of this name can be started: a path, relative to `cwd`, or a name that is looked up in
 * the folders of `path`.
 */
export async function isProgram(
  name: string,
  { path, cwd }: { path: string; cwd: string },
): Promise<boolean> {
  const places = name.includes("/") ? [cwd] : path.split(delimiter).filter((folder) => folder !== "");
  for (const place of places) {
    const file = resolve(cwd, place, name);
    const found = await stat(file).catch(() => undefined);
    if (found?.isFile() !== true) continue;
    const isAllowed = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isAllowed) return true;
  }
  return false;
}

/** Signals a process that was started as the leader of a group, and the group. */
export function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody is left in the group.
  }
}

export const killGroup = (child: ChildProcess): void => signalGroup(child, "SIGKILL");

/**
 * Resolves once all has been read that a program wrote before it ended. It is in the pipe by then, but a
 * process that left the group may hold the pipe open for ever, so its end can't be waited for. Two answers of
 * the file system are two turns of the event loop, and the first whole turn reads all that is there.
 */
export async function lastWordsRead(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await stat(process.execPath).catch(() => undefined);
}
