// A chart with one bar for each day of the period.
// UD1: the chart is also available as text: as a sentence, and day by day with the arrow keys.

import type { TargetedPointerEvent } from "preact";
import { useState } from "preact/hooks";
import type { UsageLine, UsageOrder } from "../../../../src/core/shapes/usage.ts";
import { pressed, stepOf } from "../../keys/table.ts";
import { exactMoney, money, tokens } from "../../parts/format.ts";
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

interface BarsProps {
  readonly days: readonly string[];
  readonly values: readonly number[];
  /** The value that corresponds to the top of the drawing. */
  readonly top: number;
  /** Index of the day at the pointer, or -1 if there is none. */
  readonly found: number;
  readonly onPoint: (day: string | undefined) => void;
}

function Bars({ days, values, top, found, onPoint }: BarsProps) {
  const point = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    onPoint(days[Math.max(0, Math.min(days.length - 1, Math.floor(share * days.length)))]);
  };
  return (
    <svg
      viewBox={`0 0 ${days.length * DAY_WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerMove={point}
      onPointerDown={point}
      onPointerLeave={() => onPoint(undefined)}
    >
      <path
        class="plot-grid"
        d={`M0 ${HEIGHT / 2}H${days.length * DAY_WIDTH}M0 0H${days.length * DAY_WIDTH}`}
      />
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
    </svg>
  );
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
  const figureOf = (day: string): number => {
    const line = byDay.get(day);
    return (measure === "cost" ? line?.cost : line?.totalTokens) ?? 0;
  };
  const values = days.map(figureOf);
  const most = Math.max(...values);
  const top = niceTop(most);
  const last = days.length - 1;
  const found = pointed === undefined ? -1 : days.indexOf(pointed);
  const at = found < 0 ? last : found;
  const day = days[at] ?? "";
  const words = (one: string): string => {
    const line = byDay.get(one);
    const both = `${exactMoney(line?.cost ?? 0)}, ${tokens(line?.totalTokens ?? 0)} tokens`;
    return `${dayWords(one)}: ${both}`;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("plot", event);
    if (action === "leave") setPointed(undefined);
    const step = stepOf(action, PAGE_DAYS);
    if (step === undefined) return;
    event.preventDefault();
    setPointed(days[Math.max(0, Math.min(last, at + step))]);
  };
  const title = measure === "cost" ? "Cost by day" : "Tokens by day";
  return (
    <section class="plot card usage-days" aria-label={title}>
      <header>
        <h3>{title}</h3>
        <span class="soft plot-when">{words(day)}</span>
      </header>
      <p class="visually-hidden">
        {`${title}: at most ${write(most)}, on ${dayWords(days[values.indexOf(most)] ?? day)}.`}
      </p>
      <div
        class="plot-area"
        role="slider"
        tabIndex={0}
        aria-label={`${title}: day`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={words(day)}
        onKeyDown={onKeyDown}
        onBlur={() => setPointed(undefined)}
      >
        <span class="plot-top soft" aria-hidden="true">
          {most === 0 ? "" : write(top)}
        </span>
        <Bars {...{ days, values, top, found }} onPoint={setPointed} />
        <span class="plot-axis soft" aria-hidden="true">
          <span>{dayWords(days[0] ?? "")}</span>
          {last > 0 && <span>today, UTC</span>}
        </span>
      </div>
    </section>
  );
}
