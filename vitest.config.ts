import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** A thousand clients need the machine to themselves. */
const ALONE = ["tests/e2e/load.test.ts"];

export default defineConfig({
  test: {
    globalSetup: ["tests/setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Whoever polls waits for what must come: on a busy machine it comes late.
    expect: { poll: { timeout: 15_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "tests",
          include: ["tests/**/*.test.ts"],
          exclude: ALONE,
          sequence: { groupOrder: 0 },
          // One file more than cores: many wait for processes, browsers and databases.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: { name: "alone", include: ALONE, sequence: { groupOrder: 1 }, maxWorkers: 1 },
      },
    ],
  },
});
