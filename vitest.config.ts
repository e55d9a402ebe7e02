import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: ["tests/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: "forks",
    // Whoever polls waits for what must come: on a busy machine it comes late.
    expect: { poll: { timeout: 15_000 } },
  },
});
