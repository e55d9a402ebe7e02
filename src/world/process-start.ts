// Tells apart processes that had the same process id: the system uses an id again, after a restart of the
// machine or when it has no new ids left. So a file that names a process contains the start of the process,
// too.

import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";

/** Index of the start time in /proc/<pid>/stat, counted from the field after the program's name. */
const START_FIELD_AFTER_NAME = 19;

/** Returns the start of a process in ticks since the machine started, or undefined. Works on Linux only. */
export function startTicks(pid: number | "self"): string | undefined {
  try {
    const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1) ?? "";
    return afterName.split(" ")[START_FIELD_AFTER_NAME];
  } catch {
    return undefined;
  }
}

/** Returns the start of a process, or undefined if it cannot be read. */
function startOf(pid: number, platform: NodeJS.Platform): string | undefined {
  try {
    if (platform === "linux") {
      const ticks = startTicks(pid);
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
      return ticks === undefined ? undefined : `${boot}/${ticks}`;
    }
    // The answer must not depend on the reader's language and time zone.
    const env = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
    const args = ["-o", "lstart=", "-p", String(pid)];
    const stdio = ["ignore", "pipe", "ignore"] as const;
    return execFileSync("ps", args, { encoding: "utf8", env, stdio: [...stdio] }).trim() || undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Returns the namespace of this process's ids, which only Linux has: elsewhere, an empty text. */
export function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** Returns a text that names a process: its id and, if the start can be read, its start. */
export function markOf(pid: number, platform = process.platform): string {
  const start = startOf(pid, platform);
  return start === undefined ? String(pid) : `${pid} ${start}`;
}

/** Returns the id of the process that a mark names, if this process is running. */
export function runningProcess(mark: string, platform = process.platform): number | undefined {
  const [, id, start] = /^([1-9]\d*)(?: (.+))?$/.exec(mark) ?? [];
  const pid = Number(id);
  if (id === undefined || !isAlive(pid)) return undefined;
  const now = start === undefined ? undefined : startOf(pid, platform);
  return now === undefined || now === start ? pid : undefined;
}
