// Measures an element when it is first drawn and whenever its size changes.

import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

export function useSize<E extends HTMLElement>(box: RefObject<E | null>, look: (element: E) => void): void {
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    look(element);
    const observer = new ResizeObserver(() => look(element));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}
