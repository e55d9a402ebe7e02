// Holds a run before its next tool calls, and releases it. A held run keeps its lane and has no slot.
// H1: the hold is stored, so a run still stops after a crash. If it had stopped before a call, the resumed
//     run knows that the call has not begun.
// H2: if the person who releases it wants so, the run does not make the calls before which it stopped.
// H3: the time limit of a run does not count the time in which it stands still.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Passage, Run } from "../../core/shapes/run.ts";
import { quoted } from "../../core/text/cut.ts";
import { type HeldLane, isHeld } from "../../store/queries/runs/claims.ts";
import {
  changeHold,
  clearHold,
  type HoldChange,
  noteStopped,
  type RunContent,
  readBeforeCalls,
} from "../../store/queries/runs/holds.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import type { EngineCore } from "../engine.ts";
import { holdId } from "../lanes/end-watch.ts";
import type { Unit } from "../unit.ts";
import type { createSlotKeeper } from "./slot-keeper.ts";
import { untilStored } from "./until-stored.ts";

/** Holds or releases a run that `covers` allows. Does nothing if it is already held, or released. */
export async function setHold(
  unit: Unit,
  runId: string,
  change: HoldChange,
  covers: (run: Run) => boolean,
): Promise<Result<Run>> {
  const run = await getRun(unit.tx, runId);
  if (run === undefined || run.endedAt !== undefined || run.kind !== "turn" || !covers(run))
    return fail("run_not_found", `no unfinished run ${quoted(runId, 80)}`, {
      hint: "It may have ended. List the unfinished ones: npx parley-gateway runs",
    });
  if (await changeHold(unit.tx, runId, change, unit.now))
    unit.publish({ kind: "session", sessionKey: run.sessionKey, change: "state" });
  return ok(run);
}

/**
 * Returns a function that is called before each group of tool calls, with the id of the first one. It waits
 * while a person holds the run. `mayHaveBegun`: an earlier attempt may have begun the calls. `noteContent` is
 * called with what the run has read before.
 */
export function createHold(
  run: Run,
  fence: HeldLane,
  { store, commit, watch, world }: EngineCore,
  { duringWait }: Pick<ReturnType<typeof createSlotKeeper>, "duringWait">,
  signal: AbortSignal,
  noteContent: (content: RunContent) => void,
) {
  const { runId, sessionKey } = run;
  const awaitStored = <T>(work: () => Promise<T>): Promise<T> => untilStored(world, signal, work);
  const readHold = async () => {
    const { hold, content } = await readBeforeCalls(store.db, runId);
    noteContent(content);
    return hold;
  };
  return async function pass(callId: string, mayHaveBegun: boolean): Promise<Passage> {
    const hold = await awaitStored(readHold);
    if (hold === undefined) return "free";
    const hasBegun = mayHaveBegun && hold.callId !== callId;
    const write = (change: (unit: Unit) => Promise<void>): Promise<void> =>
      awaitStored(() => commit(async (unit) => ((await isHeld(unit.tx, fence)) ? change(unit) : undefined)));
    let { skips } = hold;
    if (!skips) {
      await write((unit) => noteStopped(unit.tx, runId, hasBegun ? "" : callId, unit.now));
      const isReleased = async (): Promise<boolean> => {
        const now = await readHold();
        skips = now?.skips === true;
        return now === undefined || skips;
      };
      const untilReleased = () =>
        watch.until([holdId(sessionKey)], isReleased, Number.POSITIVE_INFINITY, signal);
      await duringWait(() => awaitStored(untilReleased));
    }
    if (hasBegun) return "free";
    if (!skips) return "released";
    await write((unit) => clearHold(unit.tx, runId));
    return "skipped";
  };
}
