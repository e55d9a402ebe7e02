// Keeps where the reader was in each entry of the browser's history: scroll positions, the focus, and what the
// views keep with `useKept`. Going back or forward restores them.

import { useLayoutEffect, useState } from "preact/hooks";
import { after, now } from "./clock.ts";

/** The scrolling parts of the views. */
const SCROLLERS = [
  "#view",
  ".split-main",
  ".split-list",
  ".virtual-list",
  ".scroller",
  ".flow-scroll",
  ".chain-page",
  ".chain-list",
  ".step-details",
  ".log-lines",
];
const PLACES_MAX = 50;
/** Time in which a view has to become as long as it was, and the pause between two looks at it. */
const RESTORED_WITHIN_MS = 3_000;
const LOOK_MS = 30;

interface Position {
  readonly top: number;
  readonly left: number;
}

interface Place {
  /** For each part that was scrolled: its selector and its position. A conversation grows above, and a log
   * drops its first lines, so their positions count from the end. */
  readonly scrolls: ReadonlyMap<string, Position>;
  /** Selector of the row or the link that had the focus. */
  readonly focus: string | undefined;
  readonly kept: Map<string, unknown>;
}

const places = new Map<number, Place>();
/** Entries of an earlier load of the page have smaller numbers. */
let newest = now();
let here = newest;
let kept = new Map<string, unknown>();

const countsFromEnd = (selector: string): boolean => selector === ".scroller" || selector === ".log-lines";
const find = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);

function positionOf(selector: string): Position {
  const part = find(selector);
  if (part === null) return { top: 0, left: 0 };
  const { scrollTop, scrollLeft, scrollHeight, clientHeight } = part;
  if (!countsFromEnd(selector)) return { top: scrollTop, left: scrollLeft };
  return { top: scrollHeight - scrollTop - clientHeight < 4 ? 0 : scrollHeight - scrollTop, left: 0 };
}

/** Returns the selector of an element by its first of these attributes. */
function selectorOf(element: Element | null | undefined, ...names: readonly string[]): string | undefined {
  const name = names.find((one) => element?.hasAttribute(one));
  return name && `[${name}="${CSS.escape(element?.getAttribute(name) ?? "")}"]`;
}

function findFocus(): string | undefined {
  const element = document.activeElement;
  const focus = selectorOf(element, "data-row", "data-step", "href");
  if (focus === undefined || element?.closest("#view") == null) return undefined;
  // The same link may be in other parts, too.
  return `#view ${selectorOf(element.closest("[data-place]"), "data-place") ?? ""} ${focus}`;
}

/** Notes the place that the reader leaves. Has to be called before the view changes. */
export function leavePlace(): void {
  const scrolls = SCROLLERS.map((selector) => [selector, positionOf(selector)] as const);
  const scrolled = scrolls.filter(([, { top, left }]) => top > 0 || left > 0);
  places.set(here, { scrolls: new Map(scrolled), focus: findFocus(), kept });
  const [oldest] = places.keys();
  if (places.size > PLACES_MAX && oldest !== undefined) places.delete(oldest);
}

/** Returns what an entry of the history needs to be found again. */
export function newPlace(): { readonly place: number } {
  newest += 1;
  here = newest;
  kept = new Map();
  return { place: here };
}

/** Scrolls a part as far as its content allows. Returns whether it is where it was. */
function scrollBack(selector: string, position: Position): boolean {
  const part = find(selector);
  if (part === null) return false;
  const { left } = position;
  const top = countsFromEnd(selector) ? part.scrollHeight - position.top : position.top;
  part.scrollTo(left, top);
  return top >= 0 && part.scrollTop >= Math.floor(top) - 1 && part.scrollLeft >= Math.floor(left) - 1;
}

/** Restores a place, until the reader does something. */
function restore({ scrolls, focus }: Place): void {
  const left = new Map(scrolls);
  const end = now() + RESTORED_WITHIN_MS;
  let cancel = (): void => {};
  let wanted = focus;
  const events = ["wheel", "pointerdown", "keydown", "touchstart"] as const;
  const stop = (): void => {
    cancel();
    for (const event of events) window.removeEventListener(event, stop, { capture: true });
  };
  const look = (): void => {
    for (const [selector, position] of left) if (scrollBack(selector, position)) left.delete(selector);
    const row = wanted === undefined ? null : find(wanted);
    if (row !== null) {
      row.focus({ preventScroll: true });
      wanted = undefined;
    }
    if ((left.size === 0 && wanted === undefined) || now() > end) stop();
    else cancel = after(LOOK_MS, look);
  };
  for (const event of events) window.addEventListener(event, stop, { capture: true });
  cancel = after(0, look);
}

/** Notes that the address has changed. If the reader was here before, restores the place. */
export function reachPlace(): void {
  const place: unknown = window.history.state?.place;
  if (typeof place !== "number") {
    window.history.replaceState(newPlace(), "");
    return;
  }
  here = place;
  const known = places.get(place);
  kept = known?.kept ?? new Map();
  if (known !== undefined) restore(known);
}

/** Returns a state that going back or forward restores. `name`: different from those beside it. */
export function useKept<T>(name: string, initial: T) {
  const state = useState(() => (kept.has(name) ? (kept.get(name) as T) : initial));
  const [value] = state;
  // A component that stays in another entry of the history keeps its state there, too.
  useLayoutEffect(() => {
    if (value !== initial || kept.has(name)) kept.set(name, value);
  });
  return state;
}
