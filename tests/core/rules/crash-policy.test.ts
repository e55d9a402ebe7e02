// The decision about a run whose process died during its execution.

import { expect, test } from "vitest";
import { crashedTooOften, isCrashed, pauseAfterDeath } from "../../../src/core/rules/crash-policy.ts";

test.each([
  [1, 0],
  [2, 2_000],
  [3, 15_000],
  [4, 60_000],
])("poison runs: after death %i, which hit no other run, a run pauses %i ms", (crashes, pauseMs) => {
  expect(pauseAfterDeath({ crashes, deaths: 9 }, undefined)).toBe(pauseMs);
  expect(isCrashed({ crashes })).toBe(false);
});

test("poison runs: runs that die together again and again start one after the other", () => {
  const pauses = (deaths: number) => [0, 1, 2].map((place) => pauseAfterDeath({ crashes: 4, deaths }, place));
  expect(pauses(2)).toEqual([0, 0, 0]);
  expect(pauses(3)).toEqual([0, 2_000, 4_000]);
  expect(pauses(5)).toEqual([0, 8_000, 16_000]);
  expect(pauses(50)).toEqual([0, 60_000, 120_000]);
});

test("poison runs: the fifth death ends a run, and its error says what to do", () => {
  expect(isCrashed({ crashes: 5 })).toBe(true);
  const { code, error, hint } = crashedTooOften(5);
  expect(code).toBe("run_crashed");
  expect(error).toMatch(/died 5 times while it executed only this run/);
  expect(hint).toMatch(/Check the gateway's log/);
});
