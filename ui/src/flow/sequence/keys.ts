// Owns the keyboard focus in the views of a chain: the Tab key reaches one row, and other keys move to other
// rows.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ActionOf, pressed, stepOf } from "../../keys/table.ts";

type Action = ActionOf<"rows">;

const PAGE_ROWS = 10;

/** A row that can have the focus. The attribute `data-step` of its element is the id. */
export interface KeyRow {
  readonly id: string;
  readonly y: number;
}

interface KeysOf {
  /** Rows from top to bottom. */
  readonly rows: readonly KeyRow[];
  readonly box: { readonly current: HTMLElement | null };
  readonly look: () => void;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  /** Handles other actions on a row. Returns true if it handled the action. */
  readonly onOther?: (id: string, action: Action) => boolean;
  /** The row that a search must show. `count` is incremented each time, also for the same row. */
  readonly wanted: { readonly id: string; readonly count: number } | undefined;
}

/**
 * A row counts as hidden if it is nearer than `ABOVE` to the upper edge, where the names cover it, or nearer
 * than `BELOW` to the lower edge. CSS pixels.
 */
const ABOVE = 96;
const BELOW = 60;

/** Moves the focus between all rows, although only the visible rows are in the document. */
export function useKeys({ rows, box, look, chosen, onChoose, onOther, wanted }: KeysOf) {
  const [focused, setFocused] = useState<string>();
  const next = useRef<string | undefined>(undefined);
  const ids = useMemo(() => new Set(rows.map(({ id }) => id)), [rows]);
  const inTab = [focused, chosen].find((id) => id !== undefined && ids.has(id)) ?? rows[0]?.id;
  const show = ({ id, y }: KeyRow): void => {
    setFocused(id);
    const element = box.current;
    const isHidden =
      element !== null &&
      (y < element.scrollTop + ABOVE || y > element.scrollTop + element.clientHeight - BELOW);
    if (isHidden) element.scrollTop = y - element.clientHeight / 2;
    look();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const id = (event.target as Element).closest("[data-step]")?.getAttribute("data-step");
    const at = rows.findIndex((row) => row.id === id);
    const action = pressed("rows", event);
    if (at < 0 || id == null || action === undefined) return;
    const by = action === "choose" ? 0 : stepOf(action, PAGE_ROWS);
    if (by === undefined) {
      if (onOther?.(id, action) === true) event.preventDefault();
      return;
    }
    event.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (by === 0) onChoose(id);
    else if (row !== undefined) {
      next.current = row.id;
      show(row);
    }
  };
  useLayoutEffect(() => {
    if (next.current === undefined) return;
    const element = box.current?.querySelector(`[data-step="${CSS.escape(next.current)}"]`);
    if (!(element instanceof SVGElement || element instanceof HTMLElement)) return;
    element.focus({ preventScroll: true });
    next.current = undefined;
  });
  useLayoutEffect(() => {
    const row = rows.find(({ id }) => id === wanted?.id);
    if (row !== undefined) show(row);
  }, [wanted?.count]);
  const onClick = (event: MouseEvent): void => {
    const id = (event.target as Element).closest("[data-step]")?.getAttribute("data-step");
    if (id == null) return;
    setFocused(id);
    onChoose(id);
  };
  return { inTab, onKeyDown, onClick };
}
