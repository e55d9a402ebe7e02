// Owns the kernel's limit on processes for a gateway that runs as root: a control group for each program.
// PW1: an ordinary user needs none and gets none: there the limit on a user's processes holds.
// PW2: where no control group can be made (a container, say) there is no wall, and the watch stands alone.
// Only the number of processes is limited so. A group of the newer kind lies beside the gateway's own group,
// because one that holds processes itself can't have groups below it with limits.

import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
const NAME = "parley-sandbox-";

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

/** Groups that a gateway left behind when it was killed. */
export function removeLeftWalls(): void {
  if (process.getuid?.() !== 0) return;
  for (const place of places()) {
    try {
      for (const name of readdirSync(place)) if (name.startsWith(NAME)) removeQuietly(join(place, name));
    } catch {
      // No such kind of group here.
    }
  }
}

/** A new group for `processesMax` processes and threads; undefined where none is needed or can be had. */
export function buildProcessWall(id: string, processesMax: number): ProcessWall | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const place of places()) {
    const folder = join(place, NAME + id);
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
