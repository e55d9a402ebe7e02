// Limits the processes of each program by a control group, if the gateway runs as root.
// PW1: an ordinary user gets none: the limit on a user's processes works there.
// If no control group can be created (for example in a container), only the watch remains.
// PW3: the name of a group contains the process that created it. Another process removes the group only after
// that one has exited: an empty group may be about to be used.
// Only the number of processes is limited here. A group of version 2 is created next to the gateway's own
// group, because a group that contains processes cannot have children with limits.

import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
const NAME = "parley-sandbox-";
/** Process namespace, process id and start time of the creator, then the id of the run. */
const GROUP = new RegExp(`^${NAME}(\\d+)-(\\d+)-(\\d+)-`);
/** Index in /proc/<pid>/stat, counted from the state, which follows the name. */
const START_FIELD_AFTER_NAME = 19;

export interface ProcessWall {
  /** A process that writes its id to this file enters the group, with everything that it starts. */
  readonly entrance: string;
  /** Call it after all processes of the group have exited. */
  remove(): void;
}

function groupsOfGateway(): string[] {
  try {
    return readFileSync("/proc/self/cgroup", "utf8").split("\n");
  } catch {
    // The kernel has no control groups.
    return [];
  }
}

/** Returns folders in which a group with a limit on processes may be created: version 1, then version 2. */
function groupFolders(): string[] {
  return groupsOfGateway().flatMap((line) => {
    const [, controllers, path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "pids") return [join(MOUNT, "pids", path)];
    return controllers === "" ? [join(MOUNT, dirname(path))] : [];
  });
}

function removeQuietly(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // The group is in use, or was removed.
  }
}

/**
 * Returns the start of a process, in ticks since the machine started. It distinguishes processes with the
 * same id.
 */
function startOf(pid: number | "self"): string | undefined {
  try {
    const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1) ?? "";
    return afterName.split(" ")[START_FIELD_AFTER_NAME];
  } catch {
    return undefined;
  }
}

/** Returns the namespace of process ids, because containers may share the folder of control groups. */
function processNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "";
  } catch {
    return "";
  }
}

/** Returns whether the creator of a group has exited, as far as this process can see. */
function isLeft(name: string): boolean {
  const [, namespace, pid, start] = GROUP.exec(name) ?? [];
  return namespace === processNamespace() && startOf(Number(pid)) !== start;
}

/** Removes groups that a killed gateway left behind. */
export function removeLeftWalls(): void {
  if (process.getuid?.() !== 0) return;
  for (const place of groupFolders()) {
    try {
      for (const name of readdirSync(place)) if (isLeft(name)) removeQuietly(join(place, name));
    } catch {
      // This version of control groups is not available.
    }
  }
}

/** Creates a group for `processesMax` processes and threads. undefined: not needed or not possible. */
export function buildProcessWall(id: string, processesMax: number): ProcessWall | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const maker = `${processNamespace()}-${process.pid}-${startOf("self") ?? 0}`;
  for (const place of groupFolders()) {
    const folder = join(place, `${NAME}${maker}-${id}`);
    try {
      mkdirSync(folder);
      writeFileSync(join(folder, "pids.max"), String(processesMax), { flag: "r+" });
      return { entrance: join(folder, "cgroup.procs"), remove: () => removeQuietly(folder) };
    } catch {
      removeQuietly(folder);
    }
  }
  return undefined;
}
