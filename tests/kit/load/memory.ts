// Measures the memory of a running process over time, in the way in which the system counts it.

import { readFileSync } from "node:fs";

/** The first part of the measurement is ignored, because caches fill and code is compiled. */
const WARM_UP = 0.3;

/** Clock ticks per second in /proc. */
const TICKS_A_SECOND = 100;

export interface MemorySample {
  /** Resident memory, in MB. */
  readonly rss: number;
  /** Resident memory that is not the content of a file: heap and stacks. */
  readonly anonymous: number;
}

/** Reads the memory of a process. Returns undefined if the system does not report it in /proc. */
export function memoryOf(pid: number): MemorySample | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    const read = (name: string): number =>
      Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1]) / 1_024;
    return { rss: read("VmRSS"), anonymous: read("RssAnon") };
  } catch {
    return undefined;
  }
}

/** Returns the processor time of a process in seconds. */
export function processorSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return 0;
  }
}

export interface Growth {
  /**
   * The minimum in the first third after the warm-up. This is the size shortly after a garbage collection.
   */
  readonly firstMb: number;
  /** The minimum in the last third. */
  readonly lastMb: number;
  readonly growthMb: number;
  readonly peakMb: number;
}

/** Returns the growth of memory after the warm-up. */
export function growthOf(samples: readonly number[]): Growth {
  const warm = samples.slice(Math.floor(samples.length * WARM_UP));
  const third = Math.max(1, Math.floor(warm.length / 3));
  const round = (value: number): number => Math.round(value * 10) / 10;
  const firstMb = round(Math.min(...warm.slice(0, third)));
  const lastMb = round(Math.min(...warm.slice(-third)));
  return { firstMb, lastMb, growthMb: round(lastMb - firstMb), peakMb: round(Math.max(...samples)) };
}
