// A small plot: lines over the last hour, the current values, and the values at the pointer.
// PL1: the plot is also available as text: as one sentence, and value by value with the arrow keys.

import type { TargetedPointerEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { pressed, stepOf } from "../../keys/table.ts";
import {
  extremes,
  HEIGHT,
  lineShape,
  nearest,
  niceTop,
  type Span,
  WIDTH,
  xOf,
} from "../../operations/plot-shape.ts";
import { clockTime } from "../../parts/format.ts";
import { inUnit, inWords, type Plotted, rangeOf } from "./figures.ts";

interface PlotProps {
  readonly plotted: Plotted;
  readonly times: readonly number[];
  readonly stepMs: number;
  readonly span: Span;
}

/** Number of points in five minutes, by which the page keys move the cursor. */
const PAGE_POINTS = 30;

function Values({ plotted: { lines, unit }, at }: { plotted: Plotted; at: number }) {
  return (
    <ul class="plot-values">
      {lines.map(({ title, help, values }, index) => (
        <li key={title} class={`line-${index}`} title={help}>
          <span class="plot-mark" aria-hidden="true" />
          <b>{inUnit(values[at], unit)}</b> <span class="soft">{title}</span>
        </li>
      ))}
    </ul>
  );
}

interface DrawingProps extends Pick<PlotProps, "times" | "stepMs" | "span"> {
  readonly lines: Plotted["lines"];
  readonly top: number;
  /** The time at which the pointer is. */
  readonly cursor: number | undefined;
  readonly onPoint: (time: number | undefined) => void;
}

function Drawing({ lines, times, stepMs, span, top, cursor, onPoint }: DrawingProps) {
  const point = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    onPoint(span.from + share * (span.to - span.from));
  };
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerMove={point}
      onPointerDown={point}
      onPointerLeave={() => onPoint(undefined)}
    >
      <path class="plot-grid" d={`M0 ${HEIGHT / 2}H${WIDTH}M0 0H${WIDTH}`} />
      {lines.map(({ title, values }, index) => {
        const { line, area } = lineShape(times, values, { span, top, gapMs: stepMs * 3 });
        return (
          <g key={title} class={`line-${index}`}>
            {index === 0 && <path class="plot-fill" d={area} />}
            <path class="plot-line" d={line} />
          </g>
        );
      })}
      {cursor !== undefined && <path class="plot-cursor" d={`M${xOf(cursor, span)} 0V${HEIGHT}`} />}
    </svg>
  );
}

export function Plot({ plotted, times, stepMs, span }: PlotProps) {
  const { title, unit, lines } = plotted;
  // Store a time, not an index, because indexes change when new points arrive.
  const [pointed, setPointed] = useState<number>();
  const titleId = useId();
  const last = times.length - 1;
  const at = pointed === undefined ? last : nearest(times, pointed);
  const found = extremes(lines.map(({ values }) => values));
  const top = niceTop(found?.most ?? 0);
  const time = times[at];
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("plot", event);
    if (action === "leave") setPointed(undefined);
    const step = stepOf(action, PAGE_POINTS);
    if (step === undefined || last < 0) return;
    event.preventDefault();
    setPointed(times[Math.max(0, Math.min(last, at + step))]);
  };
  const said = lines.map(({ title: name, values }) => `${name} ${inUnit(values[at], unit)}`).join(", ");
  return (
    <section class="plot card" aria-labelledby={titleId}>
      <header>
        <h3 id={titleId}>{title}</h3>
        <span class="soft plot-when">{pointed === undefined ? "now" : time && clockTime(time)}</span>
      </header>
      <Values plotted={plotted} at={at} />
      <p class="visually-hidden">{inWords(plotted)}</p>
      <div
        class="plot-area"
        role="slider"
        tabIndex={0}
        aria-label={`${title}: moment`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={Math.max(0, at)}
        aria-valuetext={time === undefined ? "nothing yet" : `${clockTime(time)}: ${said}`}
        onKeyDown={onKeyDown}
        onBlur={() => setPointed(undefined)}
      >
        <span class="plot-top soft" aria-hidden="true">
          {found === undefined || found.most === 0 ? "" : inUnit(top, unit)}
        </span>
        <Drawing
          lines={lines}
          times={times}
          span={span}
          top={top}
          stepMs={stepMs}
          cursor={pointed === undefined ? undefined : time}
          onPoint={setPointed}
        />
        <span class="plot-axis soft" aria-hidden="true">
          <span>−{Math.round((span.to - span.from) / 60_000)} min</span>
          <span>{found === undefined ? "nothing measured yet" : rangeOf(found, unit)}</span>
          <span>now</span>
        </span>
      </div>
    </section>
  );
}
