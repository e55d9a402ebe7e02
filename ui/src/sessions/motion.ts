// Moves rows from their old places to their new ones, so that a reader sees what moved. Without motion if the
// reader prefers that.

const MOTION = { duration: 180, easing: "ease-out" };
/** A row that comes from farther away is drawn as if it came from here. */
const WAY_MAX_PX = 160;

/** Lets a row arrive from `fromY` pixels below its place. Without `fromY`, the row is new and fades in. */
export function arrive(row: Element | null, fromY?: number): void {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches || fromY === 0) return;
  const way = Math.max(-WAY_MAX_PX, Math.min(WAY_MAX_PX, fromY ?? 0));
  row?.animate(fromY === undefined ? { opacity: [0, 1] } : { translate: [`0 ${way}px`, "0 0"] }, MOTION);
}
