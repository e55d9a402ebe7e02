// Loaded into a measured gateway. At SIGUSR2 it collects garbage and reports to its parent the remaining
// memory, the longest block of the event loop since the last report, and the processor time of its longest
// step, which other load on the machine does not affect.

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
  // The second collection frees what finalisers released.
  setTimeout(() => {
    collect?.();
    // The collection itself causes a delay.
    setTimeout(() => {
      process.send?.({ ...process.memoryUsage(), ...worst });
      delay.reset();
      worstStepMs = 0;
    }, 50);
  }, 200);
});
