// Keeps where the reader was in each entry of the browser's history: scroll positions and the focus. Going
// back or forward restores them.

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
];
const PLACES_MAX = 50;
/** Time in which a view has to become as long as it was, and the pause between two looks at it. */
const RESTORED_WITHIN_MS = 3_000;
const LOOK_MS = 30;

interface Place {
  /** For each part that was scrolled: its selector and its position. A conversation grows above, so its
   * position counts from its end. */
  readonly scrolls: ReadonlyMap<string, number>;
  /** Selector of the row or the link that had the focus. */
  readonly focus: string | undefined;
}

const places = new Map<number, Place>();
/** Entries of an earlier load of the page have smaller numbers. */
let newest = now();
let here = newest;

const countsFromEnd = (selector: string): boolean => selector === ".scroller";
const find = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);

function positionOf(selector: string): number {
  const part = find(selector);
  if (part === null) return 0;
  const { scrollTop, scrollHeight, clientHeight } = part;
  if (!countsFromEnd(selector)) return scrollTop;
  return scrollHeight - scrollTop - clientHeight < 4 ? 0 : scrollHeight - scrollTop;
}

function findFocus(): string | undefined {
  const { activeElement } = document;
  if (!(activeElement instanceof HTMLElement) || activeElement.closest("#view") === null) return undefined;
  const row = activeElement.dataset.row;
  if (row !== undefined) return `#view [data-row="${CSS.escape(row)}"]`;
  const href = activeElement.getAttribute("href");
  return href === null ? undefined : `#view a[href="${CSS.escape(href)}"]`;
}

/** Notes the place that the reader leaves. Has to be called before the view changes. */
export function leavePlace(): void {
  const scrolls = SCROLLERS.map((selector) => [selector, positionOf(selector)] as const);
  places.set(here, { scrolls: new Map(scrolls.filter(([, top]) => top > 0)), focus: findFocus() });
  const [oldest] = places.keys();
  if (places.size > PLACES_MAX && oldest !== undefined) places.delete(oldest);
}

/** Returns what an entry of the history needs to be found again. */
export function newPlace(): { readonly place: number } {
  newest += 1;
  here = newest;
  return { place: here };
}

/** Scrolls a part as far as its content allows. Returns whether it is where it was. */
function scrollBack(selector: string, position: number): boolean {
  const part = find(selector);
  if (part === null) return false;
  const top = countsFromEnd(selector) ? part.scrollHeight - position : position;
  part.scrollTop = top;
  return top >= 0 && part.scrollTop >= Math.floor(top) - 1;
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
  if (known !== undefined) restore(known);
}
