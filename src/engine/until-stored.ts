// Owns patience with the store: what can be tried again is, while it is the store that refuses.
// US1: a disk that is full for a moment, or a database that starts again, costs a run nothing.

import { StoreProblem } from "../store/problems.ts";
import { pause } from "../world/pause.ts";
import type { Log, World } from "../world.ts";

/** Pause before a store that refused is asked again, and how often it is asked. */
export const STORE_RETRY_MS = 500;
const STORE_TRIES_MAX = 20;

/** Says that something is tried again. The store's refusals pass by themselves; the rest is our fault. */
export function logRetry(log: Log, error: unknown, text: string): void {
  const level = error instanceof StoreProblem ? "warn" : "error";
  log[level]({ err: error }, `${text}; it is tried again`);
}

/**
 * Does `work` again while the store refuses; what it did before must not count twice. Throws the refusal once
 * the tries are used up, or when `signal` has fired.
 */
export async function untilStored<T>(world: World, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreProblem) || tries === STORE_TRIES_MAX || signal.aborted) throw error;
      world.log.warn({ err: error, tries }, "the store refused; it is asked again");
      await pause(world.clock, STORE_RETRY_MS, signal);
    }
  }
}
