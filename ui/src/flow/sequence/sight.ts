// Owns the scroll position of a view of a chain, and the part of it that is drawn.
// SI1: scrolling by less than a tile draws nothing new, so that most frames while scrolling need no work.

import { useRef, useState } from "preact/hooks";
import { useSize } from "../../parts/size.ts";

/** Number of CSS pixels after which scrolling draws the view again. */
export const TILE = 240;
/** Distance from the visible part up to which things are drawn, so that quick scrolling shows no gaps. */
const MARGIN = 480;
/** Maximum distance from the end at which the reader counts as being at the end. */
const AT_END = 60;

const tile = (px: number): number => Math.floor(px / TILE) * TILE;

/** `startsAtEnd`: the reader counts as being at the end before scrolling, so that growth shows the end. */
export function useSight(startsAtEnd: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, left: 0, height: 900, width: 900, atEnd: true });
  const follows = useRef(startsAtEnd);
  const look = (): void => {
    if (box.current === null) return;
    const { scrollTop, scrollLeft, clientHeight: height, clientWidth: width, scrollHeight } = box.current;
    const atEnd = scrollTop + height > scrollHeight - AT_END;
    follows.current = scrollTop > 0 && atEnd;
    const next = { top: tile(scrollTop), left: tile(scrollLeft), height, width, atEnd };
    setSight((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next));
  };
  useSize(box, look);
  const isNear = (top: number, end: number): boolean =>
    end > sight.top - MARGIN && top < sight.top + TILE + sight.height + MARGIN;
  const isBeside = (left: number, right: number): boolean =>
    right > sight.left - MARGIN && left < sight.left + TILE + sight.width + MARGIN;
  /** Returns the rows of this height to draw: those near, and the row that the Tab key reaches. */
  const rowsNear = <R>(rows: readonly R[], rowHeight: number, isInTab: (row: R) => boolean) =>
    rows
      .map((row, at) => ({ row, at }))
      .filter(({ row, at }) => isNear(at * rowHeight, (at + 1) * rowHeight) || isInTab(row));
  const toEnd = (): void => box.current?.scrollTo({ top: box.current.scrollHeight });
  /** Keeps a reader who is at the end there. Has to be called when the content has changed its height. */
  const grew = (): void => {
    if (follows.current) toEnd();
    look();
  };
  return { box, sight, look, isNear, isBeside, rowsNear, toEnd, grew };
}
