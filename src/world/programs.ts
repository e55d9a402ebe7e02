// Common functions for started programs: finding them, signalling them with their child processes, and
// reading their last output.

import type { ChildProcess } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";

/** PATH for programs that get nothing of this process's environment. */
export const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Returns whether a program can be started: a path, relative to `cwd`, or a name in the folders of `path`.
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

/** Signals a process that leads a group, and the group. */
export function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has no process left.
  }
}

export const killGroup = (child: ChildProcess): void => signalGroup(child, "SIGKILL");

/**
 * Resolves after all output that a program wrote before its exit was read. It is in the pipe by then, but a
 * process that left the group may hold the pipe open forever, so waiting for its end is impossible. Two
 * answers of the file system take two turns of the event loop, and the first complete turn reads everything
 * that is there.
 */
export async function lastOutputRead(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await stat(process.execPath).catch(() => undefined);
}
