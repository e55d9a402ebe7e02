// Runs every fuzz target for a few seconds: its corpus, and inputs from a new seed. Longer runs: npm run fuzz
// -- --minutes 60.

import { expect, test } from "vitest";
import { dice } from "../kit/dice.ts";
import { drive } from "./drive.ts";
import { TARGETS } from "./targets.ts";

const SEEDS = 1_000_000_000;
const seed = dice(process.env.PARLEY_SEED ?? String(Date.now())).below(SEEDS);

console.log(`fuzz: seed ${seed}`);

test.each(TARGETS)("$name: $proves", async (target) => {
  const { ciRuns } = target;
  const report = await drive(target, { seed, runsMax: ciRuns, enough: (runs) => runs >= ciRuns });
  expect(report.failure ?? "").toBe("");
  expect(report.runs).toBe(ciRuns);
  expect(report.corpus).toBeGreaterThan(0);
});
