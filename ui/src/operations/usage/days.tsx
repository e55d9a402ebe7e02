// A chart with one bar for each day of the period.
// UD1: the chart is also available as text: as a sentence, and day by day with the arrow keys.

import { useState } from "preact/hooks";
import type { UsageLine, UsageOrder } from "../../../../src/core/shapes/usage.ts";
import { money, tokens } from "../../parts/format.ts";
import { Plot } from "../plot.tsx";
import { HEIGHT, niceTop } from "../plot-shape.ts";

/** Width of a day in the drawing, including the gap to the next day. */
const DAY_WIDTH = 12;
const GAP = 3;
/** Minimum height of a bar, so that even little usage is visible. */
const BAR_MIN = 1.5;

/** Number of days by which the page keys move. */
const PAGE_DAYS = 7;

/** Formats a day, such as `Mon, 1 Mar`. */
export function dayWords(day: string): string {
  const shape = { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" } as const;
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, shape);
}

interface DaysProps {
  /** All days of the period, oldest first. */
  readonly days: readonly string[];
  readonly lines: readonly UsageLine[];
  readonly measure: UsageOrder;
}

export function Days({ days, lines, measure }: DaysProps) {
  const [pointed, setPointed] = useState<string>();
  const byDay = new Map(lines.map((line) => [line.name, line]));
  const write = measure === "cost" ? money : tokens;
  const values = days.map((day) => {
    const line = byDay.get(day);
    return (measure === "cost" ? line?.cost : line?.totalTokens) ?? 0;
  });
  const most = Math.max(...values);
  const top = niceTop(most);
  const last = days.length - 1;
  const found = pointed === undefined ? -1 : days.indexOf(pointed);
  const at = found < 0 ? last : found;
  const day = days[at] ?? "";
  const words = (one: string): string => {
    const line = byDay.get(one);
    const both = `${money(line?.cost ?? 0)}, ${tokens(line?.totalTokens ?? 0)} tokens`;
    return `${dayWords(one)}: ${both}`;
  };
  const title = measure === "cost" ? "Cost by day" : "Tokens by day";
  return (
    <Plot
      title={title}
      class="usage-days"
      when={words(day)}
      sentence={`${title}: at most ${write(most)}, on ${dayWords(days[values.indexOf(most)] ?? day)}.`}
      slider={{ unit: "day", at, last, words: words(day) }}
      page={PAGE_DAYS}
      onMove={(index) => setPointed(index === undefined ? undefined : days[index])}
      onPoint={(share) =>
        setPointed(
          share === undefined
            ? undefined
            : days[Math.max(0, Math.min(last, Math.floor(share * days.length)))],
        )
      }
      top={most === 0 ? "" : write(top)}
      axis={[dayWords(days[0] ?? ""), last > 0 ? "today, UTC" : ""]}
      width={days.length * DAY_WIDTH}
    >
      {values.map((value, index) => {
        const height = value === 0 ? 0 : Math.max(BAR_MIN, (value / top) * HEIGHT);
        return (
          <rect
            key={days[index]}
            class={index === found ? "usage-bar pointed" : "usage-bar"}
            x={index * DAY_WIDTH + GAP / 2}
            y={HEIGHT - height}
            width={DAY_WIDTH - GAP}
            height={height}
          />
        );
      })}
    </Plot>
  );
}
