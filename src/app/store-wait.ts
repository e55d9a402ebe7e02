// Waits for a database server that is down, or fails during the start. Part of the composition root. It waits
// only if the server is unreachable: a wrong password or schema ends the start at once.

import type { Settings } from "../core/shapes/settings/settings.ts";
import { listenUnready } from "../gateway/http/unready.ts";
import { StoreConflict, StoreProblem } from "../store/problems.ts";
import type { Store } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import type { World } from "../world.ts";
import { publishAddress } from "./gateway-address.ts";

const FIRST_PAUSE_MS = 250;
const PAUSE_MAX_MS = 5_000;
/** Interval between two log lines; it doubles with each one. */
const FIRST_LINE_MS = 10_000;
const LINE_MAX_MS = 300_000;

interface Wait {
  readonly settings: Settings;
  readonly world: World;
  readonly configPath?: string | undefined;
  /** Stops the wait. If absent, the first failure ends the start. */
  readonly stop?: AbortSignal | undefined;
}

/** Returns whether the start may succeed a moment later: nothing of it is in the store. */
function isAway(error: unknown): error is StoreProblem | StoreConflict {
  if (error instanceof StoreConflict) return error.constraint === undefined;
  return error instanceof StoreProblem && error.problem === "unreachable";
}

/** Answers on the gateway's address while the database is away, and logs the wait. */
class Waiting {
  readonly #wait: Wait;
  readonly #world: World;
  #beganMs: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #lineMs = FIRST_LINE_MS;
  #lineAt = FIRST_LINE_MS;
  #close: (() => Promise<void>) | undefined;

  constructor(wait: Wait) {
    this.#wait = wait;
    this.#world = wait.world;
  }

  /** Waits before the next attempt. */
  async pause(problem: StoreProblem | StoreConflict, stop: AbortSignal): Promise<void> {
    const { clock, log } = this.#world;
    this.#beganMs ??= clock.monotonic();
    const waitedMs = Math.round(clock.monotonic() - this.#beganMs);
    if (this.#close === undefined) {
      log.warn({ err: problem }, "the database cannot be reached; waiting for it");
      const what = problem instanceof StoreProblem ? problem.what : "is busy";
      const reason = `waiting for the store, which ${what}`;
      const { port, close } = await listenUnready(this.#wait.settings.gateway, reason);
      const unpublish = publishAddress(this.#wait, port);
      this.#close = () => {
        unpublish();
        return close();
      };
    } else if (waitedMs >= this.#lineAt) {
      log.warn({ waitedMs, err: problem }, "still waiting for the database");
      this.#lineMs = Math.min(LINE_MAX_MS, 2 * this.#lineMs);
      this.#lineAt = waitedMs + this.#lineMs;
    }
    await pause(clock, this.#pauseMs, stop, "alive");
    this.#pauseMs = Math.min(PAUSE_MAX_MS, 2 * this.#pauseMs);
  }

  /** Frees the gateway's address. */
  async end(isReachable: boolean): Promise<void> {
    const close = this.#close;
    if (close === undefined) return;
    this.#close = undefined;
    await close();
    if (!isReachable || this.#beganMs === undefined) return;
    const waitedMs = Math.round(this.#world.clock.monotonic() - this.#beganMs);
    this.#world.log.info({ waitedMs }, "the database is reachable");
  }
}

/**
 * Opens the store as soon as its server is reachable, and starts a gateway on it. If the server becomes
 * unreachable during the start, both are repeated, so `start` must close the store and everything else that
 * it opened before it rejects. Rejects with the last problem if the wait is stopped.
 */
export async function startWhenThere<T>(
  open: () => Promise<Store>,
  start: (store: Store) => Promise<T>,
  wait: Wait,
): Promise<T> {
  const { stop } = wait;
  const waiting = new Waiting(wait);
  for (;;) {
    try {
      const store = await open();
      await waiting.end(true);
      return await start(store);
    } catch (error) {
      if (stop !== undefined && !stop.aborted && isAway(error)) await waiting.pause(error, stop);
      if (stop?.aborted === false && isAway(error)) continue;
      await waiting.end(false);
      throw error;
    }
  }
}
