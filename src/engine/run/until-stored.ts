// Retries work that the store refuses, so that no run fails because a disk is full or a database is away.

import { isInDoubt, StoreProblem } from "../../store/problems.ts";
import { pause } from "../../world/pause.ts";
import type { Log, World } from "../../world.ts";

/** Pause before a retry after the store refused. */
export const STORE_RETRY_MS = 500;
/**
 * Maximum number of tries for a client that waits for an answer, and of tries that end in a conflict with
 * other transactions: unlike a full disk, a conflict that lasts is a bug.
 */
export const CLIENT_TRIES_MAX = 20;

/** Logs that something will be retried: a refusal of the store as a warning, anything else as an error. */
export function logRetry(log: Log, error: unknown, text: string): void {
  const level = error instanceof StoreProblem ? "warn" : "error";
  log[level]({ err: error }, `${text}; it will be retried`);
}

/**
 * Repeats `work` while it fails because of the store, for as long as the store needs to recover; `work` must
 * be safe to repeat. Throws the store's error when `signal` has fired, or after `triesMax` tries.
 */
export async function untilStored<T>(
  world: World,
  signal: AbortSignal,
  work: () => Promise<T>,
  triesMax = Number.POSITIVE_INFINITY,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      const value = await work();
      if (tries > 1) world.log.info({ tries }, "the store accepted the operation");
      return value;
    } catch (error) {
      if (!(error instanceof StoreProblem) || signal.aborted) throw error;
      if (tries >= (error.problem === "busy" ? CLIENT_TRIES_MAX : triesMax)) throw error;
      if (tries === 1) world.log.warn({ err: error }, "the store refused an operation; repeating it");
      await pause(world.clock, STORE_RETRY_MS, signal);
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
    return untilStored(world, signal, ask, CLIENT_TRIES_MAX);
  }
}
