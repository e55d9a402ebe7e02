// A module that is loaded into the measured gateway. At SIGUSR2 it collects garbage and reports to the parent
// process: the memory in use, and, since the last report, the longest time that the event loop was blocked
// and the processor time of the longest uninterrupted work. Other load on the machine does not affect this
// processor time.

import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 5;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

const usedMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
let usedBefore = usedMs();
let worstStepMs = 0;
setInterval(() => {
  const used = usedMs();
  worstStepMs = Math.max(worstStepMs, used - usedBefore);
  usedBefore = used;
}, RESOLUTION_MS).unref();

process.on("SIGUSR2", () => {
  const worst = { worstDelayMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS), worstStepMs };
  const collect = (globalThis as { gc?: () => void }).gc;
  collect?.();
  // Collects again, to free the memory that finalizers released.
  setTimeout(() => {
    collect?.();
    // Resets the histogram, because the collection itself blocks the event loop.
    setTimeout(() => {
      process.send?.({ ...process.memoryUsage(), ...worst });
      delay.reset();
      worstStepMs = 0;
    }, 50);
  }, 200);
});
