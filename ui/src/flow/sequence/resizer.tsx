// The edge of a column, which the pointer and the arrow keys move.

import { useRef } from "preact/hooks";
import { pressed } from "../../keys/table.ts";

const LEAST = 48;
const MOST = 1_600;
/** Number of CSS pixels by which a key moves the edge. */
const BY = 24;

interface ResizerProps {
  readonly name: string;
  readonly left: number;
  readonly width: number;
  /** Undefined: the column gets the same width as the others again. */
  readonly onWidth: (width?: number) => void;
}

export function Resizer({ name, left, width, onWidth }: ResizerProps) {
  const drag = useRef<number | undefined>(undefined);
  const resize = (to: number): void => onWidth(Math.max(LEAST, Math.min(MOST, Math.round(to))));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that moves is a control, and not a line
    <span
      class="flow-resizer"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={`Width of ${name}`}
      aria-valuenow={Math.round(width)}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      style={{ left: `${left}px` }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        drag.current = event.clientX - width;
      }}
      onPointerMove={(event) => drag.current !== undefined && resize(event.clientX - drag.current)}
      onLostPointerCapture={() => {
        drag.current = undefined;
      }}
      onDblClick={() => onWidth()}
      onKeyDown={(event) => {
        const action = pressed("column", event);
        if (action === undefined) return;
        event.preventDefault();
        if (action === "reset") onWidth();
        else resize(width + (action === "wider" ? BY : -BY));
      }}
    />
  );
}
