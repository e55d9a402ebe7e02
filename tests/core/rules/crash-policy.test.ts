// The decision about a run whose process died during its execution.

import { expect, test } from "vitest";
import { type Caution, cautionFor, crashedTooOften } from "../../../src/core/rules/crash-policy.ts";

test.each<[crashes: number, crashesInRow: number, Caution]>([
  [0, 0, "none"],
  [1, 1, "last"],
  [2, 2, "alone"],
  [3, 3, "end"],
  [1, 0, "none"],
  [2, 1, "last"],
  [3, 0, "last"],
  [6, 1, "alone"],
  [8, 0, "alone"],
  [9, 0, "end"],
])(
  "poison runs: after %i lost attempts, %i of them in a row, the decision is %s",
  (crashes, crashesInRow, caution) => {
    expect(cautionFor({ crashes, crashesInRow })).toBe(caution);
  },
);

test("poison runs: the error says how often the process died, and what to do", () => {
  const stuck = crashedTooOften({ crashes: 4, crashesInRow: 3 });
  expect(stuck).toMatchObject({ code: "run_crashed" });
  expect(stuck.error).toMatch(/died 3 times while it executed this run and made no progress in between/);
  expect(stuck.hint).toMatch(/Check the gateway's log/);
  expect(crashedTooOften({ crashes: 9, crashesInRow: 1 }).error).toMatch(/died 9 times .* this run; /);
});
