// A part of a view that a click unfolds. Its content is drawn only while it is open.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

/** `isOpen`: until the reader opens or closes it. */
export function Fold(props: {
  class?: string;
  line: ComponentChildren;
  lineClass?: string;
  isOpen?: boolean;
  inside: () => ComponentChildren;
}) {
  const { class: name, line, lineClass, isOpen = false, inside } = props;
  const [chosen, setChosen] = useState<boolean>();
  const open = chosen ?? isOpen;
  return (
    <details class={name} open={open} onToggle={(event) => setChosen(event.currentTarget.open)}>
      <summary class={lineClass}>{line}</summary>
      {open && inside()}
    </details>
  );
}
