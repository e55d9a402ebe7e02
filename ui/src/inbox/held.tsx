// Holds a button that appeared or moved a moment ago, because a click may have been meant for another one.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useHold } from "./moved.ts";

/** `of`: names what the button does. `children`: draws it; while it is held, it must have no effect. */
export function Held({ of, children }: { of: string; children: (isHeld: boolean) => ComponentChildren }) {
  const part = useRef<HTMLSpanElement>(null);
  const isHeld = useHold(part, of);
  return (
    <span ref={part} class="held">
      {children(isHeld)}
    </span>
  );
}
