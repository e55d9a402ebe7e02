// Polls the gateway while a component is shown and the page is visible.

import { useEffect, useRef } from "preact/hooks";
import { after } from "../clock.ts";

/** Calls `ask` again `everyMs` after each answer, as long as `wanted` is true. An error does not stop it. */
export function usePolling(everyMs: number, ask: () => Promise<unknown>, wanted = true): void {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (!wanted) return;
    let isOver = false;
    let cancel = (): void => {};
    const wait = (): void => {
      cancel = after(everyMs, () => {
        const asked = document.hidden ? undefined : latest.current();
        const next = (): unknown => isOver || wait();
        void Promise.resolve(asked).then(next, next);
      });
    };
    wait();
    return () => {
      isOver = true;
      cancel();
    };
  }, [everyMs, wanted]);
}
