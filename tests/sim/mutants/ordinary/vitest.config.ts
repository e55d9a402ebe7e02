// Runs tests with the mutant that PARLEY_MUTANT names, or with the unchanged source if it names none.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import type { TestModule } from "vitest/node";
import { TESTED_MUTANTS } from "./list.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const mutant = TESTED_MUTANTS.find(({ name }) => name === process.env.PARLEY_MUTANT);
/** Time limit of a test, which may wait forever because of its mutant. */
const PATIENCE_MS = 30_000;

const statesOf = ({ children }: TestModule): string[] =>
  [...children.allTests()].map((one) => one.result().state).filter((state) => state !== "skipped");

export default defineConfig({
  root,
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      transform: (code, id) =>
        mutant !== undefined && id === join(root, mutant.file)
          ? code.replace(mutant.from, () => mutant.to)
          : undefined,
    },
  ],
  test: {
    include: TESTED_MUTANTS.map(({ test: [file] }) => file),
    globalSetup: ["tests/setup.ts"],
    setupFiles: ["tests/setup-file.ts"],
    provide: { isDeep: false },
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    // A cache would not notice the mutant.
    fsModuleCache: false,
    pool: "forks",
    isolate: false,
    reporters: [{ onTestRunEnd: (modules) => console.log(JSON.stringify(modules.flatMap(statesOf))) }],
  },
});
