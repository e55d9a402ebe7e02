// Owns the scroll position of a diagram of the flow view, and the part of it that is drawn.
// SI1: scrolling by less than a tile draws nothing new, so that most frames while scrolling need no work.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSize } from "../../parts/size.ts";

/** Number of CSS pixels after which scrolling draws the diagram again. */
export const TILE = 240;
/** Distance from the visible part up to which things are drawn, so that quick scrolling shows no gaps. */
const MARGIN = 480;
/** Maximum distance from the end at which the reader counts as being at the end. */
const AT_END = 60;

export interface Sight {
  readonly top: number;
  readonly left: number;
  readonly height: number;
  readonly width: number;
  readonly atEnd: boolean;
}

const tile = (px: number): number => Math.floor(px / TILE) * TILE;

/** `startsAtEnd`: the reader counts as being at the end before scrolling, so that growth shows the end. */
export function useSight(startsAtEnd: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState<Sight>({ top: 0, left: 0, height: 900, width: 900, atEnd: true });
  const atEnd = useRef(startsAtEnd);
  const look = (): void => {
    const element = box.current;
    if (element === null) return;
    const { scrollTop, scrollLeft, clientHeight, clientWidth, scrollHeight } = element;
    const isAtEnd = scrollTop + clientHeight > scrollHeight - AT_END;
    atEnd.current = scrollTop > 0 && isAtEnd;
    const next = {
      top: tile(scrollTop),
      left: tile(scrollLeft),
      height: clientHeight,
      width: clientWidth,
      atEnd: isAtEnd,
    };
    setSight((before) =>
      (Object.keys(next) as (keyof Sight)[]).every((name) => before[name] === next[name]) ? before : next,
    );
  };
  useSize(box, look);
  const isNear = (top: number, end: number): boolean =>
    end > sight.top - MARGIN && top < sight.top + TILE + sight.height + MARGIN;
  const isBeside = (left: number, right: number): boolean =>
    right > sight.left - MARGIN && left < sight.left + TILE + sight.width + MARGIN;
  /** Returns the rows of this height to draw: those near, and the row that the Tab key reaches. */
  const rowsNear = <R>(rows: readonly R[], rowHeight: number, inTab: number) =>
    rows.flatMap((row, at) => {
      const isDrawn = at === inTab || isNear(at * rowHeight, (at + 1) * rowHeight);
      return isDrawn ? [{ row, at }] : [];
    });
  const toEnd = (): void => box.current?.scrollTo({ top: box.current.scrollHeight });
  const grew = (): void => {
    if (atEnd.current) toEnd();
    look();
  };
  return { box, sight, look, isNear, isBeside, rowsNear, toEnd, grew };
}

/** If the reader is at the end, keeps the view at the end when the height of the content changes. */
export function useGrowth({ grew }: { readonly grew: () => void }, height: number): void {
  useLayoutEffect(grew, [height]);
}
