// A chart with one bar for each day of the period.
// UD1: the chart is also available as text: as a sentence, and day by day with the arrow keys.

import type { UsageLine, UsageOrder } from "../../../../src/core/shapes/usage.ts";
import { exactMoney, money, tokens } from "../../parts/format.ts";
import { Cost } from "../../parts/time.tsx";
import { Plot, usePlace } from "../plot.tsx";
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
  const place = usePlace(days);
  const isCost = measure === "cost";
  const byDay = new Map(lines.map((line) => [line.name, line]));
  const values = days.map((day) => byDay.get(day)?.[isCost ? "cost" : "totalTokens"] ?? 0);
  const most = Math.max(...values);
  const top = niceTop(most);
  const write = isCost ? money : tokens;
  const day = days[place.at] ?? "";
  const { cost = 0, totalTokens = 0 } = byDay.get(day) ?? {};
  const words = `${dayWords(day)}: ${money(cost)}, ${tokens(totalTokens)} tokens`;
  const title = isCost ? "Cost by day" : "Tokens by day";
  return (
    <Plot
      title={title}
      class="usage-days"
      place={place}
      when={
        <>
          {dayWords(day)}: <Cost usd={cost} />, {tokens(totalTokens)} tokens
        </>
      }
      sentence={`${title}: at most ${write(most)}, on ${dayWords(days[values.indexOf(most)] ?? day)}.`}
      unit="day"
      words={words}
      page={PAGE_DAYS}
      findPlace={(share) => Math.floor(share * days.length)}
      top={most === 0 ? "" : write(top)}
      axis={[dayWords(days[0] ?? ""), days.length > 1 ? "today, UTC" : ""]}
      width={days.length * DAY_WIDTH}
    >
      <title>{`${dayWords(day)}: ${exactMoney(cost)}`}</title>
      {values.map((value, index) => {
        const height = value === 0 ? 0 : Math.max(BAR_MIN, (value / top) * HEIGHT);
        return (
          <rect
            key={days[index]}
            class={`usage-bar${place.isPointed && index === place.at ? " pointed" : ""}`}
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
