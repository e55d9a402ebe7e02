// Owns reading something from the gateway for as long as it is shown: now, after a reconnect, and on demand.
// RD1: of two answers that overtake each other the later request's counts.
// RD2: what is read is what the newest drawing asks for, whoever asks for it to be read again.
// RD3: what moves is read again a few times a second at most.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { EventPayloads } from "../../../src/gateway/client/web.ts";
import { batched } from "../clock.ts";
import { on, whenConnected } from "../gateway.ts";

/** How long after news it is read; more of them in between cost nothing. */
const NEWS_MS = 300;

interface Reading<T> {
  /** The newest answer; it stays while the next one is on its way. */
  readonly value: T | undefined;
  readonly problem: unknown;
  readonly busy: boolean;
  /** Reads again; resolves when this answer is there, or it is known that none comes. */
  readonly again: () => Promise<unknown>;
}

/** `key`: what the answer depends on; when it changes, what was read before is dropped. */
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
    // Whoever kept an earlier `again` still means what is shown now (RD2).
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

/** Calls `again` soon after each event of this name, or after those alone that are about what is shown. */
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
