// Shows a whole diagram or waterfall in a strip beside it, and the part that is in sight. The pointer moves
// that part; the keyboard scrolls the view itself.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { useSight } from "./sight.ts";

/** A horizontal line on the map, such as an arrow or a bar. */
interface Line {
  readonly from: number;
  readonly to: number;
  readonly y: number;
  readonly failed: boolean;
}

/** Everything that a view shows, in its own pixels. */
export interface Whole {
  readonly width: number;
  readonly height: number;
  readonly lanes: readonly { readonly x: number }[];
  readonly lines: readonly Line[];
}

/** The strip is shown if the diagram is at least this many times as high or as wide as the part in sight. */
const HIGH = 2;
const WIDE = 1.05;

const drawLines = (lines: readonly Line[]): string =>
  lines.map(({ from, to, y }) => `M ${from} ${y} H ${to}`).join(" ");

export function Minimap({ whole, box, sight }: { whole: Whole } & ReturnType<typeof useSight>) {
  const { width, height, lanes, lines } = whole;
  // Not part of the picture, so that scrolling does not paint thousands of lines again.
  const frame = useRef<HTMLDivElement>(null);
  const isShown = height > HIGH * sight.height || width > WIDE * sight.width;
  const picture = useMemo(
    () => (
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="map-lanes" d={lanes.map(({ x }) => `M ${x} 0 V ${height}`).join(" ")} />
        <path class="map-steps" d={drawLines(lines)} />
        <path class="map-failed" d={drawLines(lines.filter(({ failed }) => failed))} />
      </svg>
    ),
    [whole],
  );
  useLayoutEffect(() => {
    const scrolled = box.current;
    if (scrolled === null || !isShown) return;
    const follow = (): void => {
      const { scrollLeft, scrollTop, clientWidth, clientHeight } = scrolled;
      Object.assign(frame.current?.style ?? {}, {
        left: `${(scrollLeft / width) * 100}%`,
        top: `${(scrollTop / height) * 100}%`,
        width: `${Math.min(1, clientWidth / width) * 100}%`,
        height: `${Math.min(1, clientHeight / height) * 100}%`,
      });
    };
    follow();
    scrolled.addEventListener("scroll", follow);
    return () => scrolled.removeEventListener("scroll", follow);
  }, [whole, sight.height, isShown]);
  if (!isShown) return null;
  const go = (event: PointerEvent & { readonly currentTarget: HTMLElement }): void => {
    const scrolled = box.current;
    if (scrolled === null || event.buttons === 0) return;
    const place = event.currentTarget.getBoundingClientRect();
    const [x, y] = [(event.clientX - place.x) / place.width, (event.clientY - place.y) / place.height];
    scrolled.scrollTo(x * width - scrolled.clientWidth / 2, y * height - scrolled.clientHeight / 2);
  };
  return (
    <div
      class="flow-minimap"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        go(event);
      }}
      onPointerMove={go}
    >
      {picture}
      <div class="map-frame" ref={frame} />
    </div>
  );
}
