// Common functions for started programs: finding them, signalling them with their child processes, and
// reading their last output.

import type { ChildProcess } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";

/** PATH for programs that get no environment from this process. */
export const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Returns PATH without relative folders, which would be resolved in a folder that the caller chose. */
function searchPath(env: Readonly<Record<string, string | undefined>>): string {
  const folders = (env.PATH ?? "").split(":").filter((folder) => folder.startsWith("/"));
  return folders.length === 0 ? SEARCH_PATH : folders.join(":");
}

/** Returns the environment of a program that gets no other variables of this process. */
export function minimalEnvironment({
  env,
  home,
}: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}): Record<string, string> {
  return { PATH: searchPath(env), HOME: home, LANG: "C.UTF-8", TERM: "dumb", TMPDIR: env.TMPDIR ?? "/tmp" };
}

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

/** Sends a signal to a process group and to the process that leads it. */
export function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The process group is empty.
  }
}

export const killGroup = (child: ChildProcess): void => signalGroup(child, "SIGKILL");

/**
 * Resolves after all output that a program wrote before its exit was read. The output is in the pipe by then,
 * but the end of the pipe can't be awaited: a process that left the group may hold the pipe open forever. Two
 * calls of the file system take two rounds of the event loop, and the first complete round reads everything
 * in the pipe.
 */
export async function lastOutputRead(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await stat(process.execPath).catch(() => undefined);
}
