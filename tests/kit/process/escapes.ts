// Notes failures that would end the process, because nobody waits for them.

import { setImmediate as nextTurn } from "node:timers/promises";

const EVENTS = ["unhandledRejection", "uncaughtException"] as const;

export interface Escapes {
  /** Stops, and returns the failures. */
  end(): Promise<unknown[]>;
}

export function noteEscapes(): Escapes {
  const escapes: unknown[] = [];
  const note = (error: unknown): void => void escapes.push(error);
  for (const event of EVENTS) process.on(event, note);
  return {
    async end() {
      await nextTurn();
      for (const event of EVENTS) process.off(event, note);
      return escapes;
    },
  };
}
