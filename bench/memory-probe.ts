// Loaded into a gateway that is measured: at SIGUSR2 it collects garbage and tells its parent how much memory
// is left, how long the event loop stood still at most since the last time, and how much processor time its
// longest step took, which other load on the machine does not lengthen.

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
  // What finalisers let go of is collected by the second one.
  setTimeout(() => {
    collect?.();
    // The collection is a delay of our own making.
    setTimeout(() => {
      process.send?.({ ...process.memoryUsage(), ...worst });
      delay.reset();
      worstStepMs = 0;
    }, 50);
  }, 200);
});
