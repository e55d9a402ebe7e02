// Loaded into a gateway whose memory is measured: at SIGUSR2 it collects what nobody needs any more and tells
// whoever started it what is left.

process.on("SIGUSR2", () => {
  const collect = (globalThis as { gc?: () => void }).gc;
  collect?.();
  // What finalisers let go of is collected by the second one.
  setTimeout(() => {
    collect?.();
    process.send?.(process.memoryUsage());
  }, 200);
});
