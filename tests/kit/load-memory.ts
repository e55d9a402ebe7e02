// The memory of a running process over time, as the system counts it.

import { readFileSync } from "node:fs";

/** Share of a run that is warm-up: caches fill, code is compiled. */
const WARM_UP = 0.3;

/** In which /proc counts processor time. */
const TICKS_A_SECOND = 100;

export interface MemorySample {
  /** Resident, in MB. */
  readonly rss: number;
  /** Of that what no file is behind: heap and stacks. */
  readonly anonymous: number;
}

/** Undefined where /proc doesn't tell. */
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

/** Seconds of processor time that a process has used. */
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
  /** The lowest of the first third after the warm-up: what is left when the runtime has just collected. */
  readonly firstMb: number;
  /** The lowest of the last third. */
  readonly lastMb: number;
  readonly growthMb: number;
  readonly peakMb: number;
}

/** How memory went, from the end of the warm-up on. */
export function growthOf(samples: readonly number[]): Growth {
  const warm = samples.slice(Math.floor(samples.length * WARM_UP));
  const third = Math.max(1, Math.floor(warm.length / 3));
  const round = (value: number): number => Math.round(value * 10) / 10;
  const firstMb = round(Math.min(...warm.slice(0, third)));
  const lastMb = round(Math.min(...warm.slice(-third)));
  return { firstMb, lastMb, growthMb: round(lastMb - firstMb), peakMb: round(Math.max(...samples)) };
}
