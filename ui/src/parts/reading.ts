// Reads data from the gateway while a component shows it: immediately, after each reconnect, and on demand.
// Only one read runs at a time. If there are reasons to read again during a slow read, one more read follows
// it.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EventPayloads } from "../../../src/contract/client/web.ts";
import { batched, inTurn } from "../clock.ts";
import { on, whenConnected } from "../gateway.ts";

/** Delay between an event and its read, which serves further events, too. */
const NEWS_MS = 300;

export interface Reading<T> {
  /** The latest answer. It stays here while the next one is read. */
  readonly value: T | undefined;
  readonly problem: unknown;
  readonly busy: boolean;
  /** Reads again. Resolves when the answer has arrived or the read has failed. */
  readonly again: () => Promise<void>;
}

/** `key`: all on which the answer depends. When it changes, the previous answer is dropped. */
export function useReading<T>(key: string, read: () => Promise<T>): Reading<T> {
  const [shown, setShown] = useState<{ key: string; value?: T; problem?: unknown; busy: boolean }>({
    key,
    busy: true,
  });
  const wanted = useRef(read);
  wanted.current = read;
  const readInTurn = useMemo(() => {
    const turn = inTurn(async () => {
      // Skip this read if the key has changed since it was requested.
      if (latest.current !== turn) return;
      setShown((before) => (before.key === key ? { ...before, busy: true } : { key, busy: true }));
      try {
        const value = await wanted.current();
        if (latest.current === turn) setShown({ key, value, busy: false });
      } catch (problem) {
        if (latest.current === turn) setShown((before) => ({ ...before, key, problem, busy: false }));
      }
    });
    return turn;
  }, [key]);
  const latest = useRef(readInTurn);
  latest.current = readInTurn;
  // This function must stay the same for all renders, because a component may call the `again` of an earlier
  // render.
  const again = useCallback(() => latest.current(), []);
  useEffect(() => whenConnected(again), [again, key]);
  const current = shown.key === key ? shown : { key, busy: true };
  return { value: current.value, problem: current.problem, busy: current.busy, again };
}

/** Reads the first page of a list, and one page more each time that `more` is called. */
export function usePages<P extends { readonly nextCursor?: string | undefined } | undefined>(
  key: string,
  readPage: (before: P | undefined) => Promise<P>,
) {
  const wanted = useRef({ key, pages: 1 });
  if (wanted.current.key !== key) wanted.current = { key, pages: 1 };
  const reading = useReading(key, async () => {
    const pages: P[] = [];
    do pages.push(await readPage(pages.at(-1)));
    while (pages.at(-1)?.nextCursor !== undefined && pages.length < wanted.current.pages);
    return pages;
  });
  const more = (): void => {
    wanted.current.pages += 1;
    void reading.again();
  };
  const hasMore = reading.value?.at(-1)?.nextCursor !== undefined;
  return { ...reading, more: hasMore ? more : undefined };
}

/** Calls `again` shortly after each event of this kind for which `isAbout` returns true. */
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
