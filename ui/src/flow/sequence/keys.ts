// Owns the keyboard focus in the views of a chain: the Tab key reaches one row, and other keys move to other
// rows. Only the visible rows and the one that has the focus are in the document.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type ActionOf, pressed, stepOf } from "../../keys/table.ts";

type Action = ActionOf<"rows">;

const PAGE_ROWS = 10;

interface KeysProps {
  /** The rows from top to bottom. The attribute `data-step` of an element is the id of its row. */
  readonly ids: readonly string[];
  readonly box: { readonly current: HTMLElement | null };
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  /** Handles other actions on a row. Returns true if it handled the action. */
  readonly onOther?: (id: string, action: Action) => boolean;
  /** The row that a search must show. `count` is incremented each time, also for the same row. */
  readonly wanted: { readonly id: string; readonly count: number } | undefined;
}

const findId = ({ target }: Event): string | undefined =>
  (target as Element).closest("[data-step]")?.getAttribute("data-step") ?? undefined;

export function useKeys({ ids, box, chosen, onChoose, onOther, wanted }: KeysProps) {
  const [focused, setFocused] = useState<string>();
  const next = useRef<{ readonly id: string; readonly takesFocus: boolean } | undefined>(undefined);
  const inTab = [focused, chosen].find((id) => id !== undefined && ids.includes(id)) ?? ids[0];
  /** Scrolls to the next row as soon as it is in the document. */
  const reach = (): void => {
    const { id = "", takesFocus } = next.current ?? {};
    const element = box.current?.querySelector<HTMLElement | SVGElement>(`[data-step="${CSS.escape(id)}"]`);
    if (!element) return;
    next.current = undefined;
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (takesFocus) element.focus({ preventScroll: true });
  };
  const goTo = (id: string, takesFocus: boolean): void => {
    next.current = { id, takesFocus };
    setFocused(id);
    reach();
  };
  useLayoutEffect(reach);
  useLayoutEffect(() => {
    if (wanted !== undefined && ids.includes(wanted.id)) goTo(wanted.id, false);
  }, [wanted?.count]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const id = findId(event);
    const action = pressed("rows", event);
    if (id === undefined || !ids.includes(id) || action === undefined) return;
    const by = stepOf(action, PAGE_ROWS);
    const to = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(id) + (by ?? 0)))];
    if (action === "choose") onChoose(id);
    else if (by !== undefined && to !== undefined) goTo(to, true);
    else if (onOther?.(id, action) !== true) return;
    event.preventDefault();
  };
  const onClick = (event: MouseEvent): void => {
    const id = findId(event);
    if (id === undefined) return;
    setFocused(id);
    onChoose(id);
  };
  return { inTab, handlers: { onKeyDown, onClick } };
}
