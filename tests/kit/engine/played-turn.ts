// Turns that a function plays in place of a model.

import { textOf } from "../../../src/core/shapes/message.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { type EndFacts, LostLane } from "../../../src/engine/run/finish.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { readRun } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../../src/store/sql.ts";
import { assistantText } from "./engine.ts";

/**
 * Plays one turn and stores its answer as if a model had written it, so that a later attempt does not repeat
 * it.
 */
export async function playTurn(
  handle: LaneHandle,
  db: Store["db"],
  play: () => Promise<string> | string,
): Promise<EndFacts> {
  const { run } = handle;
  const before = await readRun(db, run.runId);
  const written = before.findLast((m) => m.role === "assistant" && m.stopReason === "stop");
  if (written !== undefined) return { state: "ok", reply: textOf(written) };
  try {
    const reply = await play();
    if (reply !== "") await handle.append(assistantText(`reply-${run.runId}-${run.attempt}`, reply));
    return { state: "ok", reply };
  } catch (error) {
    // A failure of the store ends the attempt. The next attempt continues at the end of the transcript.
    if (error instanceof StoreProblem) throw error;
    if (error instanceof LostLane || handle.signal.aborted) throw error;
    return { state: "error", code: "run_failed", error: (error as Error).message };
  }
}
