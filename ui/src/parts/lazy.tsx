// Loads parts of the page when they are first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Awaited } from "./failure.tsx";

/** Returns a component whose code `load` loads once, when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, redraw] = useState(0);
    const [problem, setProblem] = useState<unknown>();
    const begin = (): void => {
      setProblem(undefined);
      load().then((component) => {
        loaded = component;
        redraw((count) => count + 1);
      }, setProblem);
    };
    useEffect(() => {
      if (loaded === undefined) begin();
    }, []);
    const Loaded = loaded;
    if (Loaded === undefined) return <Awaited problem={problem} again={begin} />;
    return <Loaded {...props} />;
  };
}
