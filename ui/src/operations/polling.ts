// Owns asking again and again while something is shown: nobody is asked while the page is out of sight.

import { useEffect, useRef } from "preact/hooks";
import { after } from "../clock.ts";

/** Calls `ask` `everyMs` after its last answer, while it is `wanted`. What it throws is its own business. */
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
        void Promise.resolve(asked).finally(() => isOver || wait());
      });
    };
    wait();
    return () => {
      isOver = true;
      cancel();
    };
  }, [everyMs, wanted]);
}
