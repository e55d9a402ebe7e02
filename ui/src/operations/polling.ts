// Polls the gateway as long as a component is shown and the page is visible.
// PO1: while other data is loading, the earlier data stays visible, so that nothing flickers.

import { useEffect, useRef } from "preact/hooks";
import { after } from "../clock.ts";
import { useReading } from "../parts/reading.ts";

/** Calls `ask` `everyMs` after each of its answers and errors, as long as `wanted` is true. */
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

export function usePolled<T>(key: string, everyMs: number, read: () => Promise<T>) {
  const reading = useReading(key, read);
  const kept = useRef(reading.value);
  if (reading.value !== undefined) kept.current = reading.value;
  usePolling(everyMs, reading.again);
  return {
    ...reading,
    value: kept.current,
    isOld: reading.value === undefined && kept.current !== undefined,
  };
}
