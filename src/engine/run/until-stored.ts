// Retries work that the store refuses, so that no run fails because a disk is full for a short time or a
// database restarts.

import { isInDoubt, StoreProblem } from "../../store/problems.ts";
import { pause } from "../../world/pause.ts";
import type { Log, World } from "../../world.ts";

/** Pause before a retry after the store refused, and the maximum number of tries. */
export const STORE_RETRY_MS = 500;
const STORE_TRIES_MAX = 20;

/** Logs that something will be retried: a refusal of the store as a warning, anything else as an error. */
export function logRetry(log: Log, error: unknown, text: string): void {
  const level = error instanceof StoreProblem ? "warn" : "error";
  log[level]({ err: error }, `${text}; it will be retried`);
}

/**
 * Repeats `work` while it fails because of the store; `work` must be safe to repeat. Throws the store's error
 * after the last try, or when `signal` has fired.
 */
export async function untilStored<T>(world: World, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreProblem) || tries === STORE_TRIES_MAX || signal.aborted) throw error;
      world.log.warn({ err: error, tries }, "the store refused an operation; retrying");
      await pause(world.clock, STORE_RETRY_MS, signal);
    }
  }
}

/**
 * Calls `store`, and repeats this until the store accepts it or `signal` has fired: the work that it records
 * cannot be repeated.
 */
export async function storedAtLast(
  world: World,
  signal: AbortSignal,
  store: () => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      return await untilStored(world, signal, store);
    } catch (error) {
      if (!(error instanceof StoreProblem) || signal.aborted) throw error;
    }
  }
}

/**
 * Calls `ask`. If the connection to the database broke during a commit, repeats the call until the store
 * answers. A result that was stored is then found by the key or the id of the call, so no caller gets a
 * failure for work that succeeded.
 */
export async function throughDoubt<T>(world: World, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isInDoubt(error)) throw error;
    return untilStored(world, signal, ask);
  }
}
