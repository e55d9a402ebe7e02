// Keeps the selected runs. A run that has ended is no longer selected.

import { useRef, useState } from "preact/hooks";

/** `ids`: the runs that can be selected, in the order in which they are shown. */
export function useSelection(ids: readonly string[]) {
  const [all, setAll] = useState<ReadonlySet<string>>(new Set());
  const before = useRef<string | undefined>(undefined);
  const chosen = new Set(ids.filter((id) => all.has(id)));
  /** `range`: does the same for all runs up to the one that was changed before. */
  const turn = (id: string, range: boolean): void => {
    const [from = 0, to = 0] = [ids.indexOf(before.current ?? ""), ids.indexOf(id)].sort((a, b) => a - b);
    const part = new Set(range && from >= 0 ? ids.slice(from, to + 1) : [id]);
    before.current = id;
    const next = chosen.has(id) ? [...chosen].filter((one) => !part.has(one)) : [...chosen, ...part];
    setAll(new Set(next));
  };
  return { chosen, turn, choose: (some: readonly string[]) => setAll(new Set(some)) };
}
