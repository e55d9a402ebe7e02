// Keeps a state of a view in an entry of the browser's history.

import { useLayoutEffect, useState } from "preact/hooks";
import { kept } from "../places.ts";

/** Returns a state that going back or forward restores. `name`: different from those beside it. */
export function useKept<T>(name: string, initial: T) {
  const state = useState(() => (kept.has(name) ? (kept.get(name) as T) : initial));
  const [value] = state;
  // A component that stays in another entry of the history keeps its state there, too.
  useLayoutEffect(() => {
    if (value !== initial || kept.has(name)) kept.set(name, value);
  });
  return state;
}
