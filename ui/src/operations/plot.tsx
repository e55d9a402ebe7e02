// The frame of a plot: title, sentence, scale, and a slider with which the keyboard reads value by value.

import "./plot.css";
import type { ComponentChildren, TargetedPointerEvent } from "preact";
import { useId } from "preact/hooks";
import { pressed, stepOf } from "../keys/table.ts";
import { HEIGHT } from "./plot-shape.ts";

interface PlotProps {
  readonly title: string;
  readonly class?: string;
  /** The time or the day at the pointer. */
  readonly when: ComponentChildren;
  /** The plot in one sentence, for screen readers. */
  readonly sentence: string;
  /** The slider: the name of its unit, its place, the last place, and the value there in words. */
  readonly slider: {
    readonly unit: string;
    readonly at: number;
    readonly last: number;
    readonly words: string;
  };
  /** Number of places by which the page keys move. */
  readonly page: number;
  /** Called with the place that the keyboard has reached. */
  readonly onMove: (at: number | undefined) => void;
  /** Called with the place of the pointer, from 0 at the start to 1 at the end. */
  readonly onPoint: (share: number | undefined) => void;
  readonly top: string;
  readonly axis: readonly ComponentChildren[];
  /** Width of the drawing, in its own unit. */
  readonly width: number;
  /** Stands above the drawing. */
  readonly head?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Plot(props: PlotProps) {
  const { title, class: name = "", when, sentence, slider, page, onMove, onPoint, top, axis, width } = props;
  const { unit, at, last, words } = slider;
  const titleId = useId();
  const point = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    onPoint((event.clientX - box.left) / Math.max(1, box.width));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("plot", event);
    if (action === "leave") onMove(undefined);
    const step = stepOf(action, page);
    if (step === undefined || last < 0) return;
    event.preventDefault();
    onMove(Math.max(0, Math.min(last, at + step)));
  };
  return (
    <section class={`plot card ${name}`} aria-labelledby={titleId}>
      <header>
        <h3 id={titleId}>{title}</h3>
        <span class="soft small plot-when">{when}</span>
      </header>
      {props.head}
      <p class="visually-hidden">{sentence}</p>
      <div
        class="plot-area"
        role="slider"
        tabIndex={0}
        aria-label={`${title}: ${unit}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={Math.max(0, at)}
        aria-valuetext={words}
        onKeyDown={onKeyDown}
        onBlur={() => onMove(undefined)}
      >
        <span class="plot-top soft" aria-hidden="true">
          {top}
        </span>
        <svg
          viewBox={`0 0 ${width} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onPointerMove={point}
          onPointerDown={point}
          onPointerLeave={() => onPoint(undefined)}
        >
          <path class="plot-grid" d={`M0 ${HEIGHT / 2}H${width}M0 0H${width}`} />
          {props.children}
        </svg>
        <span class="plot-axis soft" aria-hidden="true">
          {axis.map((mark, index) => (
            <span key={index}>{mark}</span>
          ))}
        </span>
      </div>
    </section>
  );
}
