// Stops many runs, and describes the result in one sentence.
// ST1: stopping a run also stops its jobs. If a selected run was stopped as the job of another selected run,
//      it counts as stopped.

import { GatewayError } from "../../../../src/contract/client/error.ts";
import type { ActiveRun } from "../../../../src/contract/methods/attention.ts";
import { ask, wordsOf } from "../../gateway.ts";
import { counted } from "../../parts/format.ts";
import { joinWords } from "../../parts/words.ts";

/** Maximum number of requests at the same time, so that many runs do not block the connection. */
const AT_ONCE = 8;

type Chosen = Pick<ActiveRun, "runId" | "sessionKey">;

/** Stops these runs. Calls `onProgress` each time a request is answered. */
export async function stopRuns(runs: readonly Chosen[], onProgress: () => void) {
  const stopped = new Set<string>();
  const refused = new Map<string, unknown>();
  const left = [...runs];
  const work = async (): Promise<void> => {
    for (let run = left.shift(); run !== undefined; run = left.shift()) {
      const { runId, sessionKey } = run;
      try {
        const { runIds } = await ask("chat.abort", { sessionKey, runId });
        for (const id of runIds) stopped.add(id);
      } catch (problem) {
        // If the session was deleted, there is no run to stop.
        if (!(problem instanceof GatewayError && problem.reason === "session_not_found"))
          refused.set(runId, problem);
      }
      onProgress();
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, runs.length) }, work));
  const chosen = runs.filter(({ runId }) => stopped.has(runId)).length;
  const others = stopped.size - chosen;
  const failed = runs.filter(({ runId }) => refused.has(runId) && !stopped.has(runId));
  const ended = runs.length - chosen - failed.length;
  const [first] = failed;
  const parts = [
    chosen > 0 ? `${counted(chosen, "run")} stopped` : "",
    others > 0 ? `${counted(others, "other run")} of their jobs stopped too` : "",
    ended > 0 ? `${ended} had already ended` : "",
    first === undefined ? "" : `${failed.length} could not be stopped: ${wordsOf(refused.get(first.runId))}`,
  ];
  return { words: joinWords(parts, ", "), hasFailed: first !== undefined };
}
