// Loaded into a gateway that is measured: at SIGUSR2 it collects garbage and tells its parent how much memory
// is left, and how long the event loop stood still at most since the last time.

import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 5;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

process.on("SIGUSR2", () => {
  const worstDelayMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
  const collect = (globalThis as { gc?: () => void }).gc;
  collect?.();
  // What finalisers let go of is collected by the second one.
  setTimeout(() => {
    collect?.();
    // Behind the collection, which is a delay of our making.
    setTimeout(() => {
      process.send?.({ ...process.memoryUsage(), worstDelayMs });
      delay.reset();
    }, 50);
  }, 200);
});
