// Shows long lists: only the visible rows are in the document. All rows have the same height.

import type { ComponentChildren, HTMLAttributes, RefObject } from "preact";
import { useState } from "preact/hooks";
import { useSize } from "../parts/size.ts";
import { ROW_HEIGHT } from "./facts.ts";

/** Number of rows that are drawn above and below the visible ones, so that quick scrolling shows no gaps. */
const MARGIN_ROWS = 8;

type VirtualListProps = HTMLAttributes<HTMLDivElement> & {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly count: number;
  /** Draws one row. The row must be `ROW_HEIGHT` high and have a `key`. */
  readonly row: (index: number) => ComponentChildren;
};

export function VirtualList({ box, count, row, ...attributes }: VirtualListProps) {
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const look = (element: HTMLElement): void =>
    setSight({ top: element.scrollTop, height: element.clientHeight });
  useSize(box, look);
  const first = Math.max(0, Math.floor(sight.top / ROW_HEIGHT) - MARGIN_ROWS);
  const last = Math.min(count, Math.ceil((sight.top + sight.height) / ROW_HEIGHT) + MARGIN_ROWS);
  return (
    <div ref={box} onScroll={(event) => look(event.currentTarget)} {...attributes}>
      <div class="virtual-space" style={{ height: `${count * ROW_HEIGHT}px` }} role="presentation">
        <div
          class="virtual-rows"
          style={{ transform: `translateY(${first * ROW_HEIGHT}px)` }}
          role="presentation"
        >
          {Array.from({ length: Math.max(0, last - first) }, (_, at) => row(first + at))}
        </div>
      </div>
    </div>
  );
}
