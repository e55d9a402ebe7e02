// Polls the gateway as long as a component is shown and the page is visible.
// PO1: while other data is loading, the earlier data stays visible, so that nothing flickers.

import { useEffect, useRef, useState } from "preact/hooks";
import { after } from "../clock.ts";
import { useReading } from "../parts/reading.ts";

/** Calls `ask` `everyMs` after each of its answers and errors, as long as `wanted` is true. */
export function usePolling(everyMs: number, ask: () => Promise<unknown>, wanted = true): void {
  const latest = useRef(ask);
  latest.current = ask;
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const next = (): void => setTurn(turn + 1);
    const poll = () => (document.hidden ? next() : latest.current().then(next, next));
    return wanted ? after(everyMs, poll) : undefined;
  }, [everyMs, wanted, turn]);
}

export function usePolled<T>(key: string, everyMs: number, read: () => Promise<T>) {
  const reading = useReading(key, read);
  const kept = useRef(reading.value);
  kept.current = reading.value ?? kept.current;
  usePolling(everyMs, reading.again);
  const { current: value } = kept;
  return { ...reading, value, isOld: reading.value === undefined && value !== undefined };
}
