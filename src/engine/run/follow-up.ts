// Keeps a failure of the flows away from the run that has ended. If the successors of an end throw, because
// of a bug or an unreadable row, the end is stored all the same. A stored deadline repeats them until they
// succeed, and people see the failure in the chain of the run.

import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd } from "../../store/locks.ts";
import { noteChainRefused } from "../../store/queries/chains/chains.ts";
import { addRefusal } from "../../store/queries/chains/refusals.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import type { DeadlineHandler } from "../deadlines.ts";
import { failsApart, type Unit } from "../unit.ts";
import type { Acceptor, Successors } from "./finish.ts";

/** The kind of the stored deadline at which what follows from an ended run is tried again. */
export const FOLLOW_UP_DEADLINE = "follow-up";
/** Delay before the next try. `Deadlines` pauses as long after each failure. */
const AGAIN_MS = 60_000;

/** Whether a caller got the answer of the run, nobody waited for it, or it was lost. */
type Answer = "answered" | "ended" | "lost";

/** Stores that what follows from the end of a run is to be tried again, and why it failed. */
async function postpone(unit: Unit, run: Run, answer: Answer, error: unknown) {
  const { runId, chainId, sessionKey, hop } = run;
  const at = unit.now;
  const why = unit.redactor.mask(error instanceof Error ? error.message : String(error));
  const text = `the run ended, but its follow-up failed and is tried again every minute: ${why}`;
  const about = { callId: `${answer} ${runId}`, chainId, runId, fromKey: sessionKey, hop, at };
  await addRefusal(unit.tx, { ...about, tool: "run end", code: "run_failed", error: text });
  await noteChainRefused(unit.tx, chainId, at);
  const key = `${answer} ${runId}`;
  await unit.setDeadline({ kind: FOLLOW_UP_DEADLINE, key, dueAt: at + AGAIN_MS });
}

/** Returns successors whose failure does not undo the end of a run. */
export function guardSuccessors(successors: Successors): Successors {
  return {
    runEnded: (acceptor, unit, run, answered) =>
      failsApart(
        unit,
        `end of ${run.runId}`,
        () => successors.runEnded(acceptor, unit, run, answered),
        (error) => postpone(unit, run, answered ? "answered" : "ended", error),
      ),
    answerLost: (acceptor, unit, run) =>
      failsApart(
        unit,
        `lost answer of ${run.runId}`,
        () => successors.answerLost(acceptor, unit, run),
        (error) => postpone(unit, run, "lost", error),
      ),
    // The jobs that could not be stopped continue, and people see them.
    cancelBelow: (acceptor, unit, aborted) =>
      failsApart(
        unit,
        `jobs below ${aborted.sessionKey}`,
        () => successors.cancelBelow(acceptor, unit, aborted),
        async () => [],
      ),
    budgetUsedUp: (acceptor, unit, refused, error) =>
      failsApart(
        unit,
        `notice about the budget of ${refused.chainId}`,
        () => successors.budgetUsedUp(acceptor, unit, refused, error),
        async () => {},
      ),
  };
}

/** Handles the deadline of a follow-up that failed. A failure postpones it. */
export function createFollowUp(successors: Successors, acceptor: Acceptor): DeadlineHandler {
  return async (unit, key) => {
    const [answer = "", runId = ""] = key.split(/ (.*)/s);
    const run = await getRun(unit.tx, runId);
    if (run === undefined) return "done";
    await holdForEnd(unit.tx, run);
    if (answer === "lost") await successors.answerLost(acceptor, unit, run);
    else await successors.runEnded(acceptor, unit, run, answer === "answered");
    return "done";
  };
}
