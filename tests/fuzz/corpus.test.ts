// Every fuzz target: its corpus, in which are the inputs that once failed, and a few new inputs. fuzz.deep.test.ts
// tries many.

import { expect, test } from "vitest";
import { drive } from "./drive.ts";
import { TARGETS } from "./targets.ts";

const NEW_INPUTS = 20;
/** For a target that hangs. */
const TARGET_MAX_MS = 120_000;

test.each(TARGETS)(
  "$name: its corpus and a few new inputs pass",
  async (target) => {
    const report = await drive(target, { seed: Date.now() | 0, runsMax: NEW_INPUTS, enough: () => true });
    expect(report.failure ?? "").toBe("");
    expect(report.corpus).toBeGreaterThan(0);
  },
  TARGET_MAX_MS,
);
