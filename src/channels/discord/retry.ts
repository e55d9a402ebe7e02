// Retries requests that Discord cannot answer at the moment, for callers whose requests are not retried
// elsewhere.

import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { DiscordProblem } from "./problem.ts";

/** Maximum number of attempts, and the pause between them if Discord requests no pause. */
const TRIES_MAX = 4;
const PAUSE_MS = 1_000;
/** If Discord requests a longer pause, no further attempt is made. */
const PAUSE_MAX_MS = 60_000;

/** Repeats a read-only request until Discord answers or refuses it, or the attempts are used up. */
export async function patiently<T>(world: World, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof DiscordProblem) || signal.aborted) throw error;
      const passing = error.kind !== "token" && error.kind !== "refused";
      const pauseMs = error.afterMs ?? PAUSE_MS;
      if (!passing || tries >= TRIES_MAX || pauseMs > PAUSE_MAX_MS) throw error;
      await pause(world.clock, pauseMs, signal);
    }
  }
}
