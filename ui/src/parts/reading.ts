// Reads data from the gateway as long as it is shown: immediately, after each reconnect, and on demand. If
// answers arrive out of order, the answer to the latest request is used. Events cause at most a few reads per
// second.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { EventPayloads } from "../../../src/contract/client/web.ts";
import { batched } from "../clock.ts";
import { on, whenConnected } from "../gateway.ts";

/**
 * Delay between an event and the read that it causes. Further events during this time cause no additional
 * read.
 */
const NEWS_MS = 300;

interface Reading<T> {
  /** Latest answer. It stays while the next one is loading. */
  readonly value: T | undefined;
  readonly problem: unknown;
  readonly busy: boolean;
  /** Reads again. Resolves when the answer has arrived or the read has failed. */
  readonly again: () => Promise<unknown>;
}

/**
 * Returns the data that `read` reads. `key` identifies what the answer depends on; when it changes, the
 * previous answer is dropped.
 */
export function useReading<T>(key: string, read: () => Promise<T>): Reading<T> {
  const [shown, setShown] = useState<{ key: string; value?: T; problem?: unknown; busy: boolean }>({
    key,
    busy: true,
  });
  const latest = useRef(0);
  const wanted = useRef({ key, read });
  wanted.current = { key, read };
  const again = useCallback(() => {
    const mine = ++latest.current;
    // If a component calls the `again` of an earlier render, this uses the `read` of the latest render.
    const { key, read } = wanted.current;
    setShown((before) => (before.key === key ? { ...before, busy: true } : { key, busy: true }));
    return read().then(
      (value) => mine === latest.current && setShown({ key, value, busy: false }),
      (problem: unknown) =>
        mine === latest.current && setShown((before) => ({ ...before, key, problem, busy: false })),
    );
  }, []);
  useEffect(() => whenConnected(again), [again, key]);
  const current = shown.key === key ? shown : { key, busy: true };
  return { value: current.value, problem: current.problem, busy: current.busy, again };
}

/**
 * Calls `again` soon after each event of this name that `isAbout` accepts. Without `isAbout`, after every
 * event.
 */
export function useNews<E extends keyof EventPayloads>(
  event: E,
  again: () => void,
  isAbout: (payload: EventPayloads[E]) => boolean = () => true,
): void {
  const latest = useRef({ again, isAbout });
  latest.current = { again, isAbout };
  useEffect(() => {
    const soon = batched(NEWS_MS, () => latest.current.again());
    return on(event, (payload) => latest.current.isAbout(payload) && soon());
  }, [event]);
}
