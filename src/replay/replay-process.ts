// Replays a chain in a process of its own, so that a long replay neither blocks nor crashes the gateway.

import type { ReplayOutcome } from "../contract/methods/chains.ts";
import { fail, type Result } from "../core/shapes/errors.ts";
import type { Progress } from "../replay.ts";
import { runWorker } from "../world/worker.ts";
import type { ReplayMessage, ReplayOrder } from "./replay-worker.ts";

/** Maximum memory of the process's JavaScript heap. A replay that needs more fails. */
const HEAP_MAX_MB = 1_024;

export interface ReplayWatch {
  /** Kills the process. */
  readonly signal: AbortSignal;
  /** `replay`: number of the replay, from 1. */
  progress(replay: number, ...progress: Parameters<Progress>): void;
}

export async function replayInProcess(
  order: ReplayOrder,
  { signal, progress }: ReplayWatch,
): Promise<Result<readonly ReplayOutcome[]>> {
  let result: Result<readonly ReplayOutcome[]> = fail("run_failed", "the replay ended unexpectedly", {
    hint: `The chain may be too large for the memory of a replay (${HEAP_MAX_MB} MB).`,
  });
  const problem = await runWorker({
    file: new URL("./replay-worker.ts", import.meta.url),
    order,
    signal,
    heapMaxMb: HEAP_MAX_MB,
    heard(said) {
      const message = said as ReplayMessage;
      if ("result" in message) result = message.result;
      else progress(message.replay, message.done, message.total);
    },
  });
  return problem === undefined ? result : fail("run_failed", `the replay did not start: ${problem.message}`);
}
