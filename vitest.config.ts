import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: ["tests/setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Two files at once on two cores as well: many tests wait for processes, browsers and databases.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Whoever polls waits for what must come: on a busy machine it comes late.
    expect: { poll: { timeout: 15_000 } },
  },
});
