// Plots of metrics as lines and texts, without a browser.

import { expect, test } from "vitest";
import {
  type History,
  inUnit,
  inWords,
  joined,
  plotsOf,
  rangeOf,
} from "../../../ui/src/features/metrics/figures.ts";
import { added, NOTHING } from "../../../ui/src/operations/log-lines.ts";
import {
  extremes,
  HEIGHT,
  lineShape,
  nearest,
  niceTop,
  WIDTH,
} from "../../../ui/src/operations/plot-shape.ts";

function history(times: number[], values: (number | null)[], pointsMax = 360): History {
  const series = [{ name: "runs", title: "Runs ended", unit: "per_minute" as const, help: "x", values }];
  return { stepMs: 10_000, pointsMax, times, series };
}

test("PS1: a gap in the values is a gap in the line, and a single value is a dot", () => {
  const place = { span: { from: 0, to: 60 }, top: 10, gapMs: 30 };
  const { line, area } = lineShape([0, 10, 20, 30, 40], [10, 5, null, 0, null], place);
  expect(line).toBe(`M0 0L${WIDTH / 6} 50M${WIDTH / 2} ${HEIGHT}h.01`);
  expect(area.match(/Z/g)).toHaveLength(1);
  const asleep = lineShape([0, 10, 60], [1, 1, 1], place);
  expect(asleep.line.match(/M/g)).toHaveLength(2);
  expect(lineShape([], [], place)).toEqual({ line: "", area: "" });
});

test("a scale ends at 1, 2 or 5 times a power of ten", () => {
  const tops = [0, -3, 0.03, 1, 1.2, 45, 51, 700, Number.NaN].map(niceTop);
  expect(tops).toEqual([1, 1, 0.05, 1, 2, 50, 100, 1000, 1]);
  expect(extremes([[null], [3, null, 1]])).toEqual({ least: 1, most: 3 });
  expect(extremes([[null], []])).toBeUndefined();
  expect([nearest([10, 20, 30], 24), nearest([], 5)]).toEqual([1, -1]);
});

test("FG1: new values are added to the known ones, and the page keeps at most as many as the gateway", () => {
  const first = history([1, 2, 3], [1, null, 3], 4);
  const both = joined(first, history([4, 5], [4, 5], 4));
  expect(both.times).toEqual([2, 3, 4, 5]);
  expect(both.series[0]?.values).toEqual([null, 3, 4, 5]);
  expect(joined(undefined, first)).toBe(first);
  const other = {
    ...history([9], [9]),
    series: [{ ...first.series[0], name: "new", values: [9] }],
  } as History;
  expect(joined(first, other).series[0]?.values).toEqual([null, null, null, 9]);
});

test("an unknown metric has a separate plot, and every plot has a description", () => {
  const known = history([1, 2], [3, 1]);
  const strange = {
    name: "strange",
    title: "Strange",
    unit: "bytes" as const,
    help: "x",
    values: [null, null],
  };
  const plots = plotsOf({ ...known, series: [...known.series, strange] });
  expect(plots.map(({ title }) => title)).toEqual(["Runs", "Strange"]);
  expect(plots.map(inWords)).toEqual([
    "Runs. ended: now 1/min, lowest 1/min, highest 3/min.",
    "Strange. : nothing measured.",
  ]);
  const said = [0, 0.04, 3.21, 1_200].map((value) => inUnit(value, "ms"));
  expect(said).toEqual(["0 ms", "0.04 ms", "3.2 ms", "1.2 s"]);
  expect(rangeOf({ least: 0, most: 1_200 }, "ms")).toBe("0 ms … 1.2 s");
  expect(rangeOf({ least: 2, most: 2 }, "count")).toBe("2");
  expect([inUnit(null, "ms"), inUnit(12_345, "count"), inUnit(0.5, "per_minute")]).toEqual([
    "—",
    "12.3k",
    "0.50/min",
  ]);
});

test("LL1: the page keeps a limited number of log lines, each once", () => {
  const line = (seq: number) => ({ seq, time: 1, level: "info" as const, msg: `m${seq}` });
  const many = Array.from({ length: 3_000 }, (_, at) => line(at + 1));
  const kept = added(added(NOTHING, many, 0), [line(2_999), line(3_000), line(3_001)], 7);
  expect(kept.lines).toHaveLength(1_000);
  expect(kept.lines.slice(-2).map(({ seq }) => seq)).toEqual([3_000, 3_001]);
  expect(kept.dropped).toBe(7);
});
