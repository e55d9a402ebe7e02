// The frame of a plot: title, sentence, scale, and a slider with which the keyboard reads value by value.

import "./plot.css";
import type { ComponentChildren, TargetedPointerEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { pressed, stepOf } from "../keys/table.ts";
import { HEIGHT } from "./plot-shape.ts";

/** Owns the place in a plot that the reader looks at: a time or a day, because new values move the others. */
export function usePlace<P>(places: readonly P[]) {
  const [pointed, setPointed] = useState<P>();
  const index = pointed === undefined ? -1 : places.indexOf(pointed);
  const last = places.length - 1;
  const move = (to: number | undefined): void =>
    setPointed(to === undefined ? undefined : places[Math.max(0, Math.min(last, to))]);
  return { at: index < 0 ? last : index, isPointed: index >= 0, last, move };
}

interface PlotProps {
  readonly title: string;
  readonly class?: string;
  readonly place: ReturnType<typeof usePlace>;
  /** The time or the day at the place. */
  readonly when: ComponentChildren;
  /** The plot in one sentence, for screen readers. */
  readonly sentence: string;
  /** The unit of the places, and the value at the place in words. */
  readonly unit: string;
  readonly words: string;
  /** Number of places by which the page keys move. */
  readonly page: number;
  /** Returns the place of the pointer, from 0 at the start to 1 at the end. */
  readonly findPlace: (share: number) => number;
  readonly top: string;
  readonly axis: readonly ComponentChildren[];
  /** Width of the drawing, in its own unit. */
  readonly width: number;
  /** Stands above the drawing. */
  readonly head?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Plot(props: PlotProps) {
  const {
    title,
    class: name = "",
    place,
    when,
    sentence,
    unit,
    words,
    page,
    findPlace,
    top,
    axis,
    width,
  } = props;
  const { at, last, move } = place;
  const titleId = useId();
  const point = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    move(findPlace((event.clientX - box.left) / Math.max(1, box.width)));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("plot", event);
    if (action === "leave") move(undefined);
    const step = stepOf(action, page);
    if (step === undefined) return;
    event.preventDefault();
    move(at + step);
  };
  return (
    <section class={`plot card box ${name}`} aria-labelledby={titleId}>
      <header class="row">
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
        onBlur={() => move(undefined)}
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
          onPointerLeave={() => move(undefined)}
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
