// Owns parts of the page that are loaded when they are first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Awaited } from "./failure.tsx";

/** A component whose code is loaded by `load` when it is first shown, and only once. */
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
