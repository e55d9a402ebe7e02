// Protects against clicks that were meant for another row: after a row has moved, because a row above it
// came or went, its buttons have no effect for a moment.

import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { after } from "../clock.ts";

/** Longer than the time between the two clicks of a double click or an impatient second tap. */
const SETTLE_MS = 1_000;

/** The rows that have moved a moment ago, by id, each with a value that identifies its last move. */
export const moved = signal<ReadonlyMap<string, object>>(new Map());

/** Returns whether the buttons in `part` appeared or moved a moment ago. `shown`: what they do. */
export function useHold(part: RefObject<HTMLElement | null>, shown: string): boolean {
  const [held, setHeld] = useState(true);
  const place = useRef("");
  const cancel = useRef<(() => void) | undefined>(undefined);
  useLayoutEffect(() => {
    const { left = 0, top = 0 } = part.current?.getBoundingClientRect() ?? {};
    const now = `${shown} ${left} ${top}`;
    if (now === place.current) return;
    place.current = now;
    setHeld(true);
    cancel.current?.();
    cancel.current = after(SETTLE_MS, () => setHeld(false));
  });
  useEffect(() => () => cancel.current?.(), []);
  return held;
}

/** Notices each row in `frame` that appears or moves, whatever the reason. */
export function useMoves(frame: RefObject<HTMLElement | null>): void {
  const places = useRef<ReadonlyMap<string, number> | undefined>(undefined);
  const look = (): void => {
    const links = [...(frame.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const before = places.current;
    places.current = new Map(
      links.map((link) => [link.dataset.row ?? "", link.closest("li")?.offsetTop ?? 0]),
    );
    if (before === undefined) return;
    const ids = [...places.current].flatMap(([id, top]) => (before.get(id) === top ? [] : id));
    if (ids.length > 0) {
      const move = {};
      moved.value = new Map([...moved.value, ...ids.map((id) => [id, move] as const)]);
      after(SETTLE_MS, () => {
        moved.value = new Map([...moved.value].filter(([, last]) => last !== move));
      });
    }
  };
  useLayoutEffect(look);
  useEffect(() => {
    // The details of a row grow when they have been read.
    const observer = new ResizeObserver(look);
    if (frame.current !== null) observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
}
