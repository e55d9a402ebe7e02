// Handles the keys that act in every view: the palette, the search of the view, the dialog of keys, and moves
// between the rows of a list.
// A list is an element with `data-list`. Its rows have `data-item`. A list without such rows handles its keys
// itself.

import { may } from "../gateway.ts";
import { keepLetter, overlay, takeLetters } from "../overlay.ts";
import { route } from "../route.ts";
import { isTyping, pressed } from "./table.ts";

export function visible(selector: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`#view ${selector}`)].filter((one) =>
    one.checkVisibility(),
  );
}

/** Focuses the search field of the view. A view without one has the palette. */
function search(): void {
  const field = visible("input[type=search]").at(-1) as HTMLInputElement | undefined;
  field?.focus();
  field?.select();
  if (field === undefined) overlay.value = "palette";
}

/** Moves the focus by one row. Returns false if there is no list. */
function move(within: Element, step: 1 | -1, isArrow: boolean): boolean {
  const isNowhere = within.matches("body, #view");
  // Elsewhere the arrow keys scroll.
  const mayEnter = !isArrow || (isNowhere && route.value.view === "inbox");
  const list = within.closest<HTMLElement>("[data-list]") ?? (mayEnter && visible("[data-list]").at(-1));
  if (!list) return false;
  const rows = [...list.querySelectorAll<HTMLElement>("[data-item]")];
  const at = rows.findIndex((row) => row.contains(within));
  const top = Math.max(0, list.getBoundingClientRect().top);
  const inSight = rows.find((row) => row.getBoundingClientRect().top >= top);
  const row = at < 0 ? inSight : rows[Math.max(0, Math.min(rows.length - 1, at + step))];
  (row?.querySelector<HTMLElement>("a, button, input") ?? list).focus();
  return true;
}

/** Moves the focus from a search field to the list below it. */
function toList(field: Element): boolean {
  if (!field.matches("#view input[type=search]")) return false;
  let box: Element | null = field;
  while (box !== null && box.querySelector("[data-list]") === null) box = box.parentElement;
  const list = box?.querySelector("[data-list]");
  return list != null && move(list, 1, false);
}

function act(event: KeyboardEvent): boolean {
  const action = pressed("page", event);
  if (action === "search") search();
  else if (action === "dispatch") {
    if (!may("operator.write")) return false;
    if (event.key === "@") keepLetter("@");
    overlay.value = action;
  } else if (action !== undefined) overlay.value = action;
  if (action !== undefined) return true;
  const row = pressed("rows", event);
  const within = event.target instanceof Element ? event.target : document.body;
  if (isTyping(within)) return (row === "next" || row === "choose") && toList(within);
  if (row !== "next" && row !== "previous") return false;
  return move(within, row === "next" ? 1 : -1, event.key.length > 1);
}

/** Handles the keys until the returned function is called. */
export function followKeys(): () => void {
  const isOpen = (): boolean => document.querySelector("dialog[open]") !== null;
  /** While a dialog loads, no key acts in the view behind it, and the palette keeps typed letters. */
  const guard = (event: KeyboardEvent): void => {
    if (overlay.value === undefined || isOpen() || event.key === "Tab") return;
    if (event.key === "Escape") {
      overlay.value = undefined;
      takeLetters();
    } else if (event.target instanceof Element && event.target.closest(".overlay") !== null) return;
    else if (/palette|dispatch/.test(overlay.value) && !event.ctrlKey && !event.metaKey)
      keepLetter(event.key);
    event.preventDefault();
    event.stopPropagation();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || isOpen()) return;
    if (act(event)) event.preventDefault();
  };
  window.addEventListener("keydown", guard, { capture: true });
  // The handlers of the views are on elements of the document, so they come first.
  window.addEventListener("keydown", press);
  return () => {
    window.removeEventListener("keydown", guard, { capture: true });
    window.removeEventListener("keydown", press);
    overlay.value = undefined;
  };
}
