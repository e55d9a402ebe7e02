// Owns the kernel's limit on processes for a gateway that runs as root: a control group for each program.
// PW1: an ordinary user needs none and gets none: there the limit on a user's processes holds.
// PW2: where no control group can be made (a container, say) there is no wall, and the watch stands alone.
// PW3: a group is named after the process that made it. Another process removes it only after that one has
//      ended: an empty group may be about to be entered.
// Only the number of processes is limited so. A group of the newer kind lies beside the gateway's own group,
// because one that holds processes itself can't have groups below it with limits.

import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
const NAME = "parley-sandbox-";
/** The maker's process namespace, process id and start, then the id of the run. */
const GROUP = new RegExp(`^${NAME}(\\d+)-(\\d+)-(\\d+)-`);
/** Of /proc/<pid>/stat, counted from the state on, which follows the name. */
const START_FIELD_AFTER_NAME = 19;

export interface ProcessWall {
  /** A process that writes its id here is behind the wall, with all that it starts. */
  readonly entrance: string;
  /** To be called when everybody behind it has ended. */
  remove(): void;
}

function groupsOfGateway(): string[] {
  try {
    return readFileSync("/proc/self/cgroup", "utf8").split("\n");
  } catch {
    // A kernel without control groups.
    return [];
  }
}

/** Folders in which a group with a limit on processes may be made: the older kind's, then the newer's. */
function places(): string[] {
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
    // Somebody lives in it, or it is gone.
  }
}

/** When a process started, in ticks since the machine did: tells it from a later one with its id. */
function startOf(pid: number | "self"): string | undefined {
  try {
    const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1) ?? "";
    return afterName.split(" ")[START_FIELD_AFTER_NAME];
  } catch {
    return undefined;
  }
}

/** The namespace in which process ids count: containers may share the folder of groups. */
function processNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "";
  } catch {
    return "";
  }
}

/** Whether a group's maker has ended, as far as this process can see it. */
function isLeft(name: string): boolean {
  const [, namespace, pid, start] = GROUP.exec(name) ?? [];
  return namespace === processNamespace() && startOf(Number(pid)) !== start;
}

/** Removes the groups that a gateway left behind when it was killed. */
export function removeLeftWalls(): void {
  if (process.getuid?.() !== 0) return;
  for (const place of places()) {
    try {
      for (const name of readdirSync(place)) if (isLeft(name)) removeQuietly(join(place, name));
    } catch {
      // No such kind of group here.
    }
  }
}

/** A new group for `processesMax` processes and threads; undefined where none is needed or can be had. */
export function buildProcessWall(id: string, processesMax: number): ProcessWall | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const maker = `${processNamespace()}-${process.pid}-${startOf("self") ?? 0}`;
  for (const place of places()) {
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
