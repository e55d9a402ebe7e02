// Tests of the parts of a benchmark that judge, compare, draw and print figures.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { compare, comparison } from "../../bench/compare.ts";
import { meets, percentile, type Row, table } from "../../bench/measure.ts";
import { readOptions } from "../../bench/options.ts";
import { fileNameOf, plotsOf, svgOf } from "../../bench/plot.ts";
import { filled, markdown, withNewer } from "../../bench/report.ts";
import { optional } from "../../src/core/optional.ts";
import { numbersFrom } from "../kit/dice.ts";
import { readNumber, readTyped } from "../kit/typed.ts";

const row = (more: Partial<Row> = {}): Row => ({
  ...{ name: "a run", size: "empty", unit: "ms", samples: [1, 2, 3, 4, 100] },
  ...more,
});

test.each([
  ["< 3.1", true],
  ["< 3", false],
  ["> 2", true],
  ["max < 100", false],
  ["max < 101", true],
  ["p95 > 99", true],
])("for the samples 1, 2, 3, 4 and 100, the target %s is met: %s", (target, met) => {
  expect(meets(row({ target }))).toBe(met);
});

test("a target that cannot be parsed counts as missed", () => {
  expect(meets(row())).toBeUndefined();
  expect(() => meets(row({ target: "under 3 ms" }))).toThrow('write "< 5", "> 5" or "p99 < 5"');
});

test("a table has a line for each row, and marks missed targets", () => {
  expect(table([row({ target: "< 3" }), row({ unit: "MB", samples: [96.4] })]).split("\n")).toEqual([
    "what   size   n  p50   p95  p99  max  unit  target  met",
    "-----  -----  -  ----  ---  ---  ---  ----  ------  ---",
    "a run  empty  5  3.00  100  100  100  ms    < 3     NO",
    "a run  empty  1  96.4                 MB",
  ]);
});

const around = (value: number, seed: number, count = 60): number[] => {
  const random = numbersFrom(seed);
  return Array.from({ length: count }, () => value * (0.8 + 0.4 * random()));
};

test("CM1: a difference larger than noise counts, and the unit decides whether it is better or worse", () => {
  const rows = (value: number, seed: number, count = 60): Row[] => [
    row({ samples: around(value, seed, count) }),
    row({ name: "a rate", unit: "/s", samples: around(value, seed + 1, count) }),
    row({ name: "packages", unit: "packages", samples: [value] }),
  ];
  const changes = (before: Row[], after: Row[]) => compare(before, after).rows.map(({ change }) => change);
  expect(changes(rows(10, 1), rows(10, 7))).toEqual(["same", "same", "same"]);
  expect(changes(rows(10, 1), rows(14, 7))).toEqual(["slower", "faster", "larger"]);
  expect(changes(rows(14, 1), rows(10, 7))).toEqual(["faster", "slower", "smaller"]);
  expect(changes(rows(10, 1, 5), rows(99, 7, 5))).toEqual(["too few samples", "too few samples", "larger"]);
});

test("CM2: a comparison lists worse, missing and new figures, and gives the same result each time", () => {
  const before = [row({ samples: around(10, 1) }), row({ name: "old" })];
  const after = [row({ samples: around(20, 2) }), row({ name: "new" })];
  const text = comparison(compare(before, after));
  expect(text).toMatch(
    /Worse beyond noise: a run \(empty\) x[12]\.\d\d\.\nOnly before: old \(empty\)\.\nOnly after: new/,
  );
  expect(comparison(compare(before, after))).toBe(text);
});

const growing = (line: string, at: number, value: number, plot?: string): Row =>
  row({ samples: [value], growth: { line, at, of: "sessions", ...optional({ plot }) } });
const GROWN = [
  growing("<tree> & all", 1_000, 0.5, "lists"),
  growing("self", 1_000, 0.5, "lists"),
  growing("self", 1_000_000, 0.7, "lists"),
  growing("<tree> & all", 1_000_000, 60, "lists"),
  growing("history", 10, 1),
];

test("PL1: a plot has a line for each measured name, sorted by size, with the name at its end", () => {
  const plots = plotsOf([row(), ...GROWN]);
  expect(
    plots.map(({ name, lines }) => [name, lines.map((line) => line.points.map(({ at }) => at))]),
  ).toEqual([
    [
      "lists",
      [
        [1_000, 1_000_000],
        [1_000, 1_000_000],
      ],
    ],
    ["history", [[10]]],
  ]);
  const [lists] = plots.map(svgOf);
  expect(plots.map(fileNameOf)).toEqual(["lists.svg", "history.svg"]);
  expect(lists).toContain("lists: ms by sessions");
  expect(lists).toContain("&lt;tree> &amp; all");
  expect(lists).toContain("prefers-color-scheme:dark");
  expect(lists?.match(/<polyline /g)).toHaveLength(2);
  // Labels of lines that end at the same height must not overlap.
  const heights = [...(lists ?? "").matchAll(/class="tone\d name" x="\d+(?:\.\d+)?" y="([\d.]+)"/g)].map(
    ([, y]) => Number(y),
  );
  expect(heights).toHaveLength(2);
  expect(Math.abs((heights[0] ?? 0) - (heights[1] ?? 0))).toBeGreaterThanOrEqual(20);
});

test("a plot of figures with several units is refused", () => {
  expect(() => plotsOf([...GROWN, { ...growing("self", 5, 5, "lists"), unit: "MB" }])).toThrow(
    "several units: ms, MB",
  );
});

test("RP1: the tables are inserted into the document, and the rest of the document stays unchanged", () => {
  const document =
    "# Figures\n<!-- figures a, b -->\nold\n<!-- /figures -->\nwords\n<!-- machine -->\n<!-- /machine -->\n";
  const rows = [
    { ...row({ name: "mine|yours" }), part: "a" },
    { ...row(), part: "c" },
  ];
  const measured = { machine: "2 x CPU", date: "2026-11-20T01:02:03Z", commit: "abc", rows };
  const { text, homeless } = filled(document, measured);
  expect(text).toContain("- mine|yours, empty: 3.00 ms, p95 100\n");
  expect(text).toContain("words\n<!-- machine -->\n2 x CPU; 2026-11-20 of abc;");
  expect(text).not.toContain("old");
  expect(homeless).toEqual(["c"]);
  expect(filled(text, measured).text).toBe(text);
  const newer = { ...measured, rows: [{ ...row({ name: "anew" }), part: "a" }] };
  expect(withNewer(measured, newer).rows.map(({ name }) => name)).toEqual(["anew", "a run"]);
});

test("RP1: docs/reference/FIGURES.md has a place for every table", () => {
  const path = fileURLToPath(new URL("../../docs/reference/FIGURES.md", import.meta.url));
  expect(readFileSync(path, "utf8")).toMatch(/<!-- figures [\w, -]+ -->\n[\s\S]*?<!-- \/figures -->/);
});

test("the markdown list has the target of a figure, and marks a missed one", () => {
  expect(markdown([row({ target: "< 3" }), row({ target: "< 9", samples: [8] })]).split("\n")).toEqual([
    "- a run, empty: 3.00 ms, p95 100 (target < 3: **missed**)",
    "- a run, empty: 8.00 ms (target < 9)",
  ]);
});

test.each([
  [["--only", "lists,x"], 'unknown part "x"; valid: lists, start'],
  [["--sizes", "5"], "--sizes takes whole numbers from 100 to 10000000, such as 1000,10000"],
  [["--sizes", "1000;2000"], "--sizes takes whole numbers"],
  [["a.json"], '"a.json" belongs to no option'],
  [["--compare", "a", "b", "c"], '"c" belongs to no option'],
  [["--compare", "a", "b", "--only", "lists"], "measures nothing"],
  [["--jsn", "a"], "Unknown option '--jsn'"],
])("%j is refused with a message that explains the problem", (args, words) => {
  expect(() => readOptions(args, ["lists", "start"])).toThrow(words);
});

test("programs for developers refuse unknown options and invalid numbers with a message", () => {
  const known = { rounds: { type: "string", default: "3" } } as const;
  expect(readTyped([], known).values).toEqual({ rounds: "3", help: false });
  expect(() => readTyped(["--sedes", "1"], known)).toThrow("Unknown option '--sedes'; there are: --rounds");
  expect(() => readTyped(["more"], known)).toThrow(/'more'/);
  expect(readNumber("--rounds", "1e3", 1)).toBe(1_000);
  for (const text of ["", "many", "0", "-1", "Infinity"]) {
    expect(() => readNumber("--rounds", text, 1)).toThrow("--rounds takes a number from 1");
  }
});

test("--sizes are sorted, and --compare accepts one file or two", () => {
  expect(readOptions(["--sizes", "10_000,1000"], [])?.sizes).toEqual([1_000, 10_000]);
  expect(readOptions(["--compare", "a"], [])?.compare).toEqual({ before: "a" });
  expect(readOptions(["--compare", "a", "b"], [])?.compare).toEqual({ before: "a", after: "b" });
  expect(readOptions(["--help"], [])).toBeUndefined();
});

test("without samples, percentiles are undefined", () => {
  expect(percentile([], 0.5)).toBeNaN();
});

test("figures that grow with size have a separate list with a figure for each size; if one size is missed, the target is missed", () => {
  const at = (size: number, value: number): Row => ({
    ...growing("self", size, value, "lists"),
    target: "< 3",
  });
  expect(
    markdown([at(1_000, 1), at(1_000_000, 4), growing("tree", 1_000, 0.5, "lists")]).split("\n"),
  ).toEqual([
    "lists, ms with 1k, 1M sessions:",
    "",
    "- self: 1.00, 4.00 (target < 3: **missed**)",
    "- tree: 0.50, -",
  ]);
});
