// Waits at the start for a database server that is down. Part of the composition root. It waits only if the
// server is unreachable: a wrong password or schema ends the start at once.

import type { Settings } from "../core/shapes/settings/settings.ts";
import { listenUnready } from "../gateway/http/unready.ts";
import { StoreProblem } from "../store/problems.ts";
import type { Store } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import type { World } from "../world.ts";

const FIRST_PAUSE_MS = 250;
const PAUSE_MAX_MS = 5_000;
/** Interval between two log lines; it doubles with each one. */
const FIRST_LINE_MS = 10_000;
const LINE_MAX_MS = 300_000;

interface Wait {
  readonly settings: Settings;
  readonly world: World;
  /** Stops the wait. If absent, the first failure ends the start. */
  readonly stop: AbortSignal | undefined;
}

function isAway(error: unknown): error is StoreProblem {
  return error instanceof StoreProblem && error.problem === "unreachable";
}

/**
 * Opens the store as soon as its server is reachable. Rejects with the last problem if the wait is stopped.
 */
export async function openWhenThere(open: () => Promise<Store>, wait: Wait): Promise<Store> {
  try {
    return await open();
  } catch (error) {
    if (wait.stop === undefined || wait.stop.aborted || !isAway(error)) throw error;
    return openLater(open, wait, wait.stop, error);
  }
}

async function openLater(
  open: () => Promise<Store>,
  { settings, world: { clock, log } }: Wait,
  stop: AbortSignal,
  first: StoreProblem,
): Promise<Store> {
  log.warn({ err: first }, "the database cannot be reached; waiting for it");
  const close = await listenUnready(settings.gateway, `waiting for the store, which ${first.what}`);
  const began = clock.monotonic();
  let [pauseMs, lineMs, lineAt] = [FIRST_PAUSE_MS, FIRST_LINE_MS, FIRST_LINE_MS];
  let problem = first;
  try {
    while (!stop.aborted) {
      await pause(clock, pauseMs, stop, "alive");
      pauseMs = Math.min(PAUSE_MAX_MS, 2 * pauseMs);
      const waitedMs = Math.round(clock.monotonic() - began);
      try {
        const store = await open();
        log.info({ waitedMs }, "the database is reachable");
        return store;
      } catch (error) {
        if (!isAway(error)) throw error;
        problem = error;
      }
      if (waitedMs < lineAt) continue;
      log.warn({ waitedMs, err: problem }, "still waiting for the database");
      lineMs = Math.min(LINE_MAX_MS, 2 * lineMs);
      lineAt = waitedMs + lineMs;
    }
    throw problem;
  } finally {
    await close();
  }
}
