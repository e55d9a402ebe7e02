// Runs every fuzz target on its corpus (inputs that once failed), and on some new inputs. fuzz.deep.test.ts
// tries many.

import { expect, test } from "vitest";
import { drive } from "./drive.ts";
import { TARGETS } from "./targets.ts";

/** One new input for this number of inputs in CI, so that quick properties get many and slow ones few. */
const CI_RUNS_PER_INPUT = 100;
const NEW_INPUTS_MIN = 2;

test.each(TARGETS)("the property $name holds for its corpus and for new inputs", async (target) => {
  const runsMax = Math.max(NEW_INPUTS_MIN, Math.ceil(target.ciRuns / CI_RUNS_PER_INPUT));
  const report = await drive(target, { seed: Date.now() | 0, runsMax, enough: () => true });
  expect(report.failure ?? "").toBe("");
  expect(report.corpus).toBeGreaterThan(0);
});
