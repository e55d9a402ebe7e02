// A small plot: lines over the last hour, the current values, and the values at the pointer.
// PL1: the plot is also available as text: as one sentence, and value by value with the arrow keys.

import { Plot, usePlace } from "../../operations/plot.tsx";
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

/** Number of points in five minutes, by which the page keys move the cursor. */
const PAGE_POINTS = 30;

export function Lines(props: { plotted: Plotted; times: readonly number[]; stepMs: number; span: Span }) {
  const { plotted, times, stepMs, span } = props;
  const { title, unit, lines } = plotted;
  const place = usePlace(times);
  const { at, isPointed } = place;
  const range = extremes(lines.map(({ values }) => values));
  const top = niceTop(range?.most ?? 0);
  const time = times[at];
  const values = lines.map(({ title: name, values: of }) => `${name} ${inUnit(of[at], unit)}`).join(", ");
  return (
    <Plot
      title={title}
      place={place}
      when={isPointed && time ? clockTime(time) : "now"}
      sentence={inWords(plotted)}
      unit="moment"
      words={time === undefined ? "nothing yet" : `${clockTime(time)}: ${values}`}
      page={PAGE_POINTS}
      findPlace={(share) => nearest(times, span.from + share * (span.to - span.from))}
      top={range === undefined || range.most === 0 ? "" : inUnit(top, unit)}
      axis={[
        `−${Math.round((span.to - span.from) / 60_000)} min`,
        range === undefined ? "nothing measured yet" : rangeOf(range, unit),
        "now",
      ]}
      width={WIDTH}
      head={
        <ul class="line small plot-values">
          {lines.map(({ title: name, help, values: of }, index) => (
            <li key={name} class={`line-${index}`} title={help}>
              <span class="plot-mark" aria-hidden="true" />
              <b>{inUnit(of[at], unit)}</b> <span class="soft">{name}</span>
            </li>
          ))}
        </ul>
      }
    >
      {lines.map(({ title: name, values: of }, index) => {
        const { line, area } = lineShape(times, of, { span, top, gapMs: stepMs * 3 });
        return (
          <g key={name} class={`line-${index}`}>
            {index === 0 && <path class="plot-fill" d={area} />}
            <path class="plot-line" d={line} />
          </g>
        );
      })}
      {isPointed && time && <path class="plot-cursor" d={`M${xOf(time, span)} 0V${HEIGHT}`} />}
    </Plot>
  );
}
