// Checks that each of these mutants makes its test fail, and that the test passes with the unchanged source.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { TESTED_MUTANTS, type TestedMutant } from "./list.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const CONFIG = fileURLToPath(new URL("./vitest.config.ts", import.meta.url));
const PATIENCE_MS = 900_000;

/** Runs the tests, with a mutant if one is given. Returns the last line of the output: how each has ended. */
function runTests(tests: readonly TestedMutant["test"][], mutant = ""): Promise<string | undefined> {
  const files = new Set(tests.map(([file]) => file));
  const titles = tests.map(([, title]) => `${title.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")}$`);
  const program = `${ROOT}node_modules/vitest/vitest.mjs`;
  const args = [program, "run", "--config", CONFIG, ...files, "-t", titles.join("|")];
  const env = { ...process.env, PARLEY_MUTANT: mutant };
  return new Promise((resolve) => {
    // The process ends with a failure if a test fails.
    execFile(process.execPath, args, { cwd: ROOT, env }, (_, output) =>
      resolve(output.trim().split("\n").at(-1)),
    );
  });
}

test("each of the tests passes with the unchanged source", { timeout: PATIENCE_MS }, async () => {
  const passed = TESTED_MUTANTS.map(() => "passed");
  expect(await runTests(TESTED_MUTANTS.map((mutant) => mutant.test))).toBe(JSON.stringify(passed));
});

// At once, because some wait for their time limit.
test.concurrent.each(TESTED_MUTANTS)(
  "the test of the mutant $name fails with it",
  { timeout: PATIENCE_MS },
  async (mutant) => {
    expect(await runTests([mutant.test], mutant.name)).toBe('["failed"]');
  },
);
