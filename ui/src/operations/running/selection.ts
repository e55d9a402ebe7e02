// Keeps the selected runs. A run that has ended is no longer selected.

import { useRef, useState } from "preact/hooks";

interface Selection {
  readonly chosen: ReadonlySet<string>;
  /** `range`: does the same for all runs up to the one that was changed before. */
  turn(id: string, range: boolean): void;
  choose(ids: readonly string[]): void;
}

/** `ids`: the runs that can be selected, in the order in which they are shown. */
export function useSelection(ids: readonly string[]): Selection {
  const [all, setAll] = useState<ReadonlySet<string>>(new Set());
  const before = useRef<string | undefined>(undefined);
  const chosen = new Set(ids.filter((id) => all.has(id)));
  return {
    chosen,
    turn(id, range) {
      const on = !chosen.has(id);
      const [from, to] = [ids.indexOf(before.current ?? ""), ids.indexOf(id)].sort((a, b) => a - b);
      const part = range && from !== undefined && from >= 0 ? ids.slice(from, (to ?? 0) + 1) : [id];
      const next = new Set(chosen);
      for (const one of part) {
        if (on) next.add(one);
        else next.delete(one);
      }
      before.current = id;
      setAll(next);
    },
    choose: (some) => setAll(new Set(some)),
  };
}
