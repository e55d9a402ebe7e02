// The vitest configuration for the tests that must fail.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import all from "../../../vitest.config.ts";

const SUITE = new URL("./suite.ts", import.meta.url);

export default defineConfig({
  test: {
    ...all.test,
    projects: ["tests", "deep"].map((name) => ({
      extends: true as const,
      test: { name, include: [fileURLToPath(SUITE)] },
    })),
  },
});
