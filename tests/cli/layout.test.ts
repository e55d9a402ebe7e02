import { expect, test } from "vitest";
import { age, size, table } from "../../src/cli/layout.ts";

test("columns are aligned with their names, and empty columns are omitted", () => {
  const rows = [
    ["agent:main:main", "", "idle"],
    ["cron:x", "", "running"],
  ];
  expect(table(["KEY", "LABEL", "STATE"], rows)).toEqual([
    "KEY              STATE",
    "agent:main:main  idle",
    "cron:x           running",
  ]);
});

test("a cell has one line, and a long text is cut between whole signs", () => {
  for (const sign of ["😀", "👨‍👩‍👧‍👦", "👍🏽"]) {
    const [, row = ""] = table(["TEXT"], [[`a\nb${sign.repeat(200)}`]]);
    expect(row.replaceAll(sign, "")).toBe("a\\nb…");
    expect(row.length).toBeLessThanOrEqual(100);
    expect(row.length).toBeGreaterThan(85);
  }
});

test.each([
  [0, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [7_200_000, "2 h"],
  [900_000_000, "10 d"],
  [-5, "0 s"],
])("an age of %i ms is displayed as %s", (pastMs, words) => {
  expect(age(1_000_000_000_000 - pastMs, 1_000_000_000_000)).toBe(words);
});

test.each([
  [0, "0 bytes"],
  [1_023, "1023 bytes"],
  [1_024, "1.0 KB"],
  [176_451_584, "168 MB"],
  [5 * 2 ** 40, "5.0 TB"],
  [2 ** 60, "1048576 TB"],
])("a size of %i bytes is displayed as %s", (bytes, words) => {
  expect(size(bytes)).toBe(words);
});
