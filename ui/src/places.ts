// Keeps where the reader was in each entry of the browser's history: scroll positions, the focus, and what
// the views keep with `useKept` (parts/kept.ts). Going back or forward restores them.

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

interface Place {
  /** For each part that was scrolled: its selector and its position. A conversation grows above, and a log
   * drops its first lines, so their positions count from the end. */
  readonly scrolls: ReadonlyMap<string, readonly [top: number, left: number]>;
  /** Selector of the row or the link that had the focus. */
  readonly focus: string | undefined;
  readonly kept: Map<string, unknown>;
}

const places = new Map<number, Place>();
/** Entries of an earlier load of the page have smaller numbers. */
let newest = now();
let here = newest;
/** Of the current entry. */
export let kept = new Map<string, unknown>();

const countsFromEnd = (selector: string): boolean => selector === ".scroller" || selector === ".log-lines";
const find = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);

function readTop(selector: string, { scrollTop, scrollHeight, clientHeight }: HTMLElement): number {
  if (!countsFromEnd(selector)) return scrollTop;
  return scrollHeight - scrollTop - clientHeight < 4 ? 0 : scrollHeight - scrollTop;
}

/** Returns the selector of an element by its first of these attributes. */
function makeSelector(element: Element | null | undefined, ...names: readonly string[]): string | undefined {
  const name = names.find((one) => element?.hasAttribute(one));
  return name && `[${name}="${CSS.escape(element?.getAttribute(name) ?? "")}"]`;
}

function findFocus(): string | undefined {
  const element = document.activeElement;
  const focus = makeSelector(element, "data-row", "data-step", "href");
  if (focus === undefined || element?.closest("#view") == null) return undefined;
  // The same link may be in other parts, too.
  return `#view ${makeSelector(element.closest("[data-place]"), "data-place") ?? ""} ${focus}`;
}

/** Notes the place that the reader leaves. Has to be called before the view changes. */
export function leavePlace(): void {
  const scrolls = new Map<string, readonly [number, number]>();
  for (const selector of SCROLLERS) {
    const part = find(selector);
    const place = part && ([readTop(selector, part), part.scrollLeft] as const);
    if (place?.some((one) => one > 0)) scrolls.set(selector, place);
  }
  places.set(here, { scrolls, focus: findFocus(), kept });
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
function scrollBack(selector: string, [place, left]: readonly [number, number]): boolean {
  const part = find(selector);
  if (part === null) return false;
  const top = countsFromEnd(selector) ? part.scrollHeight - place : place;
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
