// Returns memory to the system after the start, and when the process becomes idle after being busy.
// IM1: no garbage is collected while the process is busy, because a full collection pauses it.
// IM2: garbage is collected once after each busy period, and only if memory has grown enough.
// IM3: Node keeps a copy of the compiled code of each module, to write it into its cache on disk when the
//      process ends. It is written earlier, which frees 3 MB, and keeps it for the start after a crash.

import { flushCompileCache } from "node:module";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock, Timer } from "./plain.ts";

const LOOK_EVERY_MS = 10_000;
/** CPU share between two checks above which the process is busy. */
const BUSY_SHARE = 0.05;
const IDLE_SHARE = 0.02;
/** Growth in bytes since the last idle period that makes a collection worthwhile. */
const WORTH_BYTES = 32 * 1024 * 1024;

/** The properties of the process that this file uses. */
export interface Machine {
  cpuMs(): number;
  residentBytes(): number;
  /** Writes compiled code into Node's cache on disk, and frees the copy in memory. */
  dropCode(): void;
  /** Collects all garbage and returns free memory to the system. */
  collect(): void;
}

type Collect = (options: { type: "major"; flavor: "last-resort" }) => void;

export function thisMachine(): Machine {
  let gc: Collect | undefined;
  return {
    cpuMs() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    },
    residentBytes: () => process.memoryUsage.rss(),
    dropCode: flushCompileCache,
    collect() {
      if (gc === undefined) {
        setFlagsFromString("--expose-gc");
        gc = runInNewContext("gc") as Collect;
        setFlagsFromString("--no-expose-gc");
      }
      // An ordinary collection would keep the freed memory in the process.
      gc({ type: "major", flavor: "last-resort" });
    },
  };
}

/** Checks the process every 10 s until the returned function is called. */
export function releaseIdleMemory(clock: Clock, machine: Machine): () => void {
  let floorBytes = machine.residentBytes();
  let [lookedAt, cpuMs] = [clock.monotonic(), machine.cpuMs()];
  let wasBusy = false;
  let timer: Timer;
  const look = (): void => {
    const now = clock.monotonic();
    const share = (machine.cpuMs() - cpuMs) / Math.max(1, now - lookedAt);
    if (share > BUSY_SHARE) wasBusy = true;
    else if (wasBusy && share < IDLE_SHARE) {
      wasBusy = false;
      if (machine.residentBytes() > floorBytes + WORTH_BYTES) {
        machine.dropCode();
        machine.collect();
      }
      floorBytes = machine.residentBytes();
    }
    [lookedAt, cpuMs] = [clock.monotonic(), machine.cpuMs()];
    timer = clock.after(LOOK_EVERY_MS, look);
  };
  timer = clock.after(LOOK_EVERY_MS, () => {
    machine.dropCode();
    look();
  });
  return () => timer.cancel();
}
