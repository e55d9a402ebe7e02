// Loads parts of the page when they are first shown, and draws parts that a click unfolds.

import { signal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { whenConnected } from "../gateway.ts";
import { Awaited } from "./failure.tsx";

/** Returns a component whose code `load` loads once, when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  // A signal, so that a component that was shown during the load is drawn again, even if the load ends
  // between its first drawing and its effects.
  const loaded = signal<{ readonly Part: ComponentType<P> } | undefined>(undefined);
  return function Lazy(props: P) {
    const [problem, setProblem] = useState<unknown>();
    const begin = (): void => {
      if (loaded.value !== undefined) return;
      setProblem(undefined);
      load().then(
        (Part) => {
          loaded.value = { Part };
        },
        (cause) => setProblem(new Error("This part of the page could not be loaded.", { cause })),
      );
    };
    // Also after each connect, because the load may have failed while the gateway was away.
    useEffect(() => {
      begin();
      return whenConnected(begin);
    }, []);
    const Part = loaded.value?.Part;
    if (Part === undefined) return <Awaited problem={problem} again={begin} />;
    return <Part {...props} />;
  };
}

/** Draws its content only while it is open. `isOpen`: until the reader opens or closes it. */
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
    <details
      class={name}
      open={open}
      onToggle={({ currentTarget }) => currentTarget.open !== open && setChosen(currentTarget.open)}
    >
      <summary class={lineClass}>{line}</summary>
      {open && inside()}
    </details>
  );
}
