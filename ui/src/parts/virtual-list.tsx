// Owns long lists: only the rows in sight are in the document.
// VL1: every row has the same height; how many are in the document does not depend on how many there are.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows above and below the visible ones, so that quick scrolling shows no gaps. */
const MARGIN_ROWS = 8;

export interface VirtualListProps {
  readonly count: number;
  /** CSS pixels. */
  readonly rowHeight: number;
  /** Draws one row, `rowHeight` high, with a `key`. */
  readonly row: (index: number) => ComponentChildren;
  /** Told when the last row comes near: time to read the next page. */
  readonly onNearEnd?: () => void;
  readonly class?: string;
  /** What the list is: `role` and names for screen readers. */
  readonly attributes?: Record<string, string | number | undefined>;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  /** A row to be scrolled into sight when this changes. */
  readonly show?: number | undefined;
}

export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, row, onNearEnd, attributes, onKeyDown, show } = props;
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const look = (): void => {
    const element = box.current;
    if (element !== null) setSight({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || show === undefined || show < 0) return;
    const top = show * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
  }, [show, rowHeight]);
  const first = Math.max(0, Math.floor(sight.top / rowHeight) - MARGIN_ROWS);
  const last = Math.min(count, Math.ceil((sight.top + sight.height) / rowHeight) + MARGIN_ROWS);
  useEffect(() => {
    if (last >= count - MARGIN_ROWS) onNearEnd?.();
  }, [last, count]);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index++) rows.push(row(index));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is among the attributes
    <div
      ref={box}
      class={`virtual-list ${props.class ?? ""}`}
      onScroll={look}
      onKeyDown={onKeyDown}
      {...attributes}
    >
      <div class="virtual-space" style={{ height: `${count * rowHeight}px` }} role="presentation">
        <div
          class="virtual-rows"
          style={{ transform: `translateY(${first * rowHeight}px)` }}
          role="presentation"
        >
          {rows}
        </div>
      </div>
    </div>
  );
}
