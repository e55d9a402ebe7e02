// Owns what this process uses of the machine: memory, CPU time, and how late its event loop is.
// WP1: it is read when it is asked for; only the loop's delay is watched all the time, outside of JavaScript.

import { monitorEventLoopDelay } from "node:perf_hooks";

export interface ProcessUse {
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  /** User and system together, since the start. */
  readonly cpuSeconds: number;
}

/** How late the event loop came to what was due, in milliseconds. */
export interface LoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface ProcessWatch {
  use(): ProcessUse;
  /** Since it was last asked; undefined: it was not measured in between. */
  loopDelay(): LoopDelay | undefined;
  stop(): void;
}

/** How often the delay is measured, which the histogram counts as a part of it. */
const RESOLUTION_MS = 20;

export function watchProcess(): ProcessWatch {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  return {
    use() {
      const { rss, heapUsed } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      return { residentBytes: rss, heapUsedBytes: heapUsed, cpuSeconds: (user + system) / 1e6 };
    },
    loopDelay() {
      if (delays.count === 0) return undefined;
      const delay = {
        p50: late(delays.percentile(50)),
        p99: late(delays.percentile(99)),
        max: late(delays.max),
      };
      delays.reset();
      return delay;
    },
    stop: () => void delays.disable(),
  };
}
