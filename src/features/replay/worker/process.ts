// Replays a chain, or compares two, in a process of its own, so that a long one neither blocks nor crashes
// the gateway.

import { fail, type Result } from "../../../core/shapes/errors.ts";
import { runWorker } from "../../../world/worker.ts";
import type { ChainComparison, ReplayOutcome } from "../contract.ts";
import type { Progress } from "../play/play.ts";
import type { DiffOrder, ReplayMessage, ReplayOrder } from "./replay-worker.ts";

/** Maximum memory of the process's JavaScript heap. A replay that needs more fails. */
const HEAP_MAX_MB = 1_024;

interface ReplayWatch {
  /** Kills the process. */
  readonly signal: AbortSignal;
  /** `replay`: number of the replay, from 1. */
  progress?(replay: number, ...progress: Parameters<Progress>): void;
}

interface Outcomes {
  replay: readonly ReplayOutcome[];
  diff: ChainComparison;
}

async function inProcess<K extends keyof Outcomes>(
  order: ReplayOrder | DiffOrder,
  { signal, progress }: ReplayWatch,
): Promise<Result<Outcomes[K]>> {
  let result: Result<unknown> = fail("run_failed", "the process of the replay ended unexpectedly", {
    hint: `The chain may be too large for its memory (${HEAP_MAX_MB} MB).`,
  });
  const problem = await runWorker({
    file: new URL("./replay-worker.ts", import.meta.url),
    order,
    signal,
    heapMaxMb: HEAP_MAX_MB,
    heard(said) {
      const message = said as ReplayMessage;
      if ("result" in message) result = message.result;
      else progress?.(message.replay, message.done, message.total);
    },
  });
  if (problem !== undefined) return fail("run_failed", `the replay did not start: ${problem.message}`);
  return result as Result<Outcomes[K]>;
}

export const replayInProcess = (order: ReplayOrder, watch: ReplayWatch) => inProcess<"replay">(order, watch);
export const diffInProcess = (order: DiffOrder, watch: ReplayWatch) => inProcess<"diff">(order, watch);
