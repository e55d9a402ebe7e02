// Checks that each of these mutants makes its test fail, and that the test passes with the unchanged source.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { TESTED_MUTANTS, type TestedMutant } from "./list.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const CONFIG = fileURLToPath(new URL("./vitest.config.ts", import.meta.url));
const PATIENCE_MS = 900_000;

/** Runs the test of a mutant. Returns the last line of the output: whether it has passed or failed. */
function outcomeOf({ test: [file, title] }: TestedMutant, mutant: string): Promise<string | undefined> {
  const pattern = `${title.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")}$`;
  const args = [`${ROOT}node_modules/vitest/vitest.mjs`, "run", "--config", CONFIG, file, "-t", pattern];
  const env = { ...process.env, PARLEY_MUTANT: mutant };
  return new Promise((resolve) => {
    // The process ends with a failure if the test fails.
    execFile(process.execPath, args, { cwd: ROOT, env }, (_, output) =>
      resolve(output.trim().split("\n").at(-1)),
    );
  });
}

test.each(TESTED_MUTANTS)(
  "the test of the mutant $name fails with it, and passes without it",
  {
    timeout: PATIENCE_MS,
  },
  async (mutant) => {
    expect(await outcomeOf(mutant, "")).toBe('["passed"]');
    expect(await outcomeOf(mutant, mutant.name)).toBe('["failed"]');
  },
);
