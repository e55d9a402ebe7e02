// Shows long lists: only the visible rows are in the document. All rows have the same height.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { useSize } from "../parts/size.ts";

/** Number of rows that are drawn above and below the visible ones, so that quick scrolling shows no gaps. */
const MARGIN_ROWS = 8;

interface VirtualListProps {
  readonly count: number;
  /** Height in CSS pixels. */
  readonly rowHeight: number;
  /** Draws one row. The row must be `rowHeight` high and have a `key`. */
  readonly row: (index: number) => ComponentChildren;
  readonly class: string;
  /** Attributes of the list element: its role, and names for screen readers. */
  readonly attributes: Record<string, string | number | undefined>;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, row, attributes, onKeyDown } = props;
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const look = (element: HTMLElement): void =>
    setSight({ top: element.scrollTop, height: element.clientHeight });
  useSize(box, look);
  const first = Math.max(0, Math.floor(sight.top / rowHeight) - MARGIN_ROWS);
  const last = Math.min(count, Math.ceil((sight.top + sight.height) / rowHeight) + MARGIN_ROWS);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index++) rows.push(row(index));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is among the attributes
    <div
      ref={box}
      class={`virtual-list ${props.class}`}
      onScroll={(event) => look(event.currentTarget)}
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
