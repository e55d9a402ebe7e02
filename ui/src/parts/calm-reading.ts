// Reads what follows from a text while somebody types it.

import { useEffect, useRef, useState } from "preact/hooks";
import { after } from "../clock.ts";

/** Reads once the key has stayed the same for `ms`. The answer, for the key `of`, stays until the next. */
export function useCalmReading<T>(key: string, ms: number, read: () => Promise<T>) {
  const [answer, setAnswer] = useState<{ of?: string; value?: T; problem?: unknown }>({});
  const latest = useRef(key);
  latest.current = key;
  useEffect(() => {
    const show = (end: { value: T } | { problem: unknown }): void => {
      if (latest.current === key) setAnswer({ of: key, ...end });
    };
    return after(ms, () =>
      read().then(
        (value) => show({ value }),
        (problem: unknown) => show({ problem }),
      ),
    );
  }, [key]);
  return answer;
}
