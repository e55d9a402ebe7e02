// The configuration of all tests, but for one suite that must fail.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import all from "../../vitest.config.ts";

const SUITE = new URL("./failing-suite.ts", import.meta.url);

export default defineConfig({
  test: {
    ...all.test,
    projects: [{ extends: true, test: { name: "failing", include: [fileURLToPath(SUITE)] } }],
  },
});
