// Limits the number of processes of each program by a control group, if the gateway runs as root.
// PW1: a gateway of an ordinary user needs no group, because the kernel limits the processes of an ordinary
//      user.
// If no control group can be created (for example in a container), only the watch remains.
// PW3: the name of a group identifies the process that created it. Another process removes the group only
// after its creator has exited, because even an empty group may be about to be used.
// Only the number of processes is limited here. A group of version 2 is created next to the gateway's own
// group, because a group that contains processes cannot have children with limits.

import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startTicks } from "../../world/process-start.ts";

const MOUNT = "/sys/fs/cgroup";
const NAME = "parley-sandbox-";
/**
 * Matches a group's name: process namespace, process id and start time of the creator, then the id of the
 * run.
 */
const GROUP = new RegExp(`^${NAME}(\\d+)-(\\d+)-(\\d+)-`);

export interface ProcessWall {
  /**
   * A file that adds processes to the group. A process that writes its own id into the file enters the group,
   * with its later children.
   */
  readonly entrance: string;
  /** Removes the group. Call it after all processes of the group have exited. */
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

/**
 * Returns the folders in which a group with a limit on processes may be created, in the order of
 * /proc/self/cgroup.
 */
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
    // The group is in use, or was already removed.
  }
}

/** Returns the process namespace, because containers may share the folder of control groups. */
function processNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "";
  } catch {
    return "";
  }
}

/**
 * Returns whether the creator of a group has exited. Returns false if the creator is in another process
 * namespace, because this process cannot see it.
 */
function isLeft(name: string): boolean {
  const [, namespace, pid, start] = GROUP.exec(name) ?? [];
  return namespace === processNamespace() && startTicks(Number(pid)) !== start;
}

/** Removes groups that a killed gateway left behind. */
export function removeLeftWalls(): void {
  if (process.getuid?.() !== 0) return;
  for (const place of groupFolders()) {
    try {
      for (const name of readdirSync(place)) if (isLeft(name)) removeQuietly(join(place, name));
    } catch {
      // The system does not have this version of control groups.
    }
  }
}

/**
 * Creates a group for at most `processesMax` processes and threads, or returns undefined if it is not needed
 * or not possible.
 */
export function buildProcessWall(id: string, processesMax: number): ProcessWall | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const maker = `${processNamespace()}-${process.pid}-${startTicks("self") ?? 0}`;
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
