// Runs every fuzz target on its corpus (inputs that once failed), and on a few new inputs. fuzz.deep.test.ts
// tries many.

import { expect, test } from "vitest";
import { drive } from "./drive.ts";
import { TARGETS } from "./targets.ts";

const NEW_INPUTS = 2;
/** Time limit of a target, in case it hangs. */
const TARGET_MAX_MS = 120_000;

test.each(TARGETS)(
  "the property $name holds for its corpus and for a few new inputs",
  async (target) => {
    const report = await drive(target, { seed: Date.now() | 0, runsMax: NEW_INPUTS, enough: () => true });
    expect(report.failure ?? "").toBe("");
    expect(report.corpus).toBeGreaterThan(0);
  },
  TARGET_MAX_MS,
);
