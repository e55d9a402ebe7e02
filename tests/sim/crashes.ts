// Checks runs whose process died: a death counts against a run only if it hit no other, and delays its next
// attempt.

import type { Run } from "../../src/core/shapes/run.ts";
import type { Story } from "./story.ts";

/** Pause before the next attempt after each death that counts, in ms. */
const PAUSES_MS = [0, 2_000, 15_000, 60_000];

/** A run that a dead process held, and the count that its row must have after the next start. */
interface LostRun {
  readonly runId: string;
  readonly crashes: number;
  readonly pauseMs: number;
}

const HELD = "select run_id, state, crashes, planned_stop from runs where state in ('running', 'waiting')";

export async function heldRuns(story: Story): Promise<LostRun[]> {
  const rows = await story.look(HELD);
  const hit = rows.filter((row) => row.state === "running" && row.planned_stop === 0);
  return rows.map((row) => {
    const isBlamed = hit.length === 1 && hit[0] === row;
    const crashes = Number(row.crashes) + Number(isBlamed);
    return { runId: String(row.run_id), crashes, pauseMs: isBlamed ? (PAUSES_MS[crashes - 1] ?? 0) : 0 };
  });
}

/** CP1: checks that the deaths are counted, and notes until when the runs must pause. */
export async function checkCounted(
  story: Story,
  lost: readonly LostRun[],
  startedMs: number,
): Promise<Map<string, number>> {
  const pauses = new Map<string, number>();
  for (const { runId, crashes, pauseMs } of lost) {
    pauses.set(runId, startedMs + pauseMs);
    const [row] = await story.look("select crashes from runs where run_id = ?", runId);
    if (row !== undefined && row.crashes !== crashes)
      story.wrong("CP1", `run ${runId} has ${String(row.crashes)} crashes, not ${crashes}`);
  }
  return pauses;
}

/** CP2: checks that a run that crashed does not start before its pause is over. */
export function checkStart(story: Story, pauses: ReadonlyMap<string, number>, { runId }: Run): void {
  if ((pauses.get(runId) ?? 0) > story.time.now())
    story.wrong("CP2", `run ${runId} crashed, and starts before its pause is over`);
}
