// Measures the resources of this process: memory, CPU time, and event loop delay.
// WP1: values are read on demand. Only the loop delay is measured continuously, outside of JavaScript.

import { monitorEventLoopDelay } from "node:perf_hooks";

export interface ProcessUse {
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  /** User and system time together, since the start. */
  readonly cpuSeconds: number;
}

/** Delay of the event loop, in milliseconds. */
export interface LoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export type ProcessWatch = ReturnType<typeof watchProcess>;

/** Interval of the measurement. Node's figures include it, so it is subtracted. */
const RESOLUTION_MS = 20;

export function watchProcess() {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  return {
    use(): ProcessUse {
      const { rss, heapUsed } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      return { residentBytes: rss, heapUsedBytes: heapUsed, cpuSeconds: (user + system) / 1e6 };
    },
    /** Returns the delay since the last call, or undefined if nothing was measured in between. */
    loopDelay(): LoopDelay | undefined {
      if (delays.count === 0) return undefined;
      const delay = {
        p50: late(delays.percentile(50)),
        p99: late(delays.percentile(99)),
        max: late(delays.max),
      };
      delays.reset();
      return delay;
    },
    stop(): void {
      delays.disable();
    },
  };
}
