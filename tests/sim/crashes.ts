// Checks runs whose process died: lost attempts are counted correctly, and the runs are started again in
// time.

import { cautionFor } from "../../src/core/rules/crash-policy.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { isSubagentKey } from "../../src/core/shapes/session-key.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Story } from "./story.ts";

/** A run that a dead process executed, and the counts that its row must have after the next start. */
interface LostRun {
  readonly runId: string;
  readonly crashes: number;
  readonly inRow: number;
}

const HELD = `select run_id, state, crashes, crashes_in_row, calls_answered,
  (select count(*) from messages where messages.run_id = runs.run_id and role = 'toolResult'
    and instr(entry_json, 'outcome_unknown') = 0) as answered
  from runs where state in ('running', 'waiting')`;

export async function heldRuns(story: Story): Promise<LostRun[]> {
  return (await story.look(HELD)).map((row) => {
    const lost = row.state === "running" ? 1 : 0;
    const isOn = Number(row.answered) > Number(row.calls_answered);
    return {
      runId: String(row.run_id),
      crashes: Number(row.crashes) + lost,
      inRow: isOn ? 0 : Number(row.crashes_in_row) + lost,
    };
  });
}

/** CP1: checks that each lost attempt is counted, and that progress resets the count. */
export async function checkCounted(story: Story, lost: readonly LostRun[]): Promise<void> {
  for (const { runId, crashes, inRow } of lost) {
    const query = "select crashes, crashes_in_row from runs where run_id = ?";
    const [row] = await story.look(query, runId);
    if (row === undefined || (row.crashes === crashes && row.crashes_in_row === inRow)) continue;
    const counts = `${String(row.crashes)} crashes, ${String(row.crashes_in_row)} in a row`;
    story.wrong("CP1", `run ${runId} has ${counts}, not ${crashes}, ${inRow} in a row`);
  }
}

/**
 * CP2: checks that a run that crashed before does not start as long as a run without crashes waits for a slot
 *      and was already waiting when this process started. Not counted: runs in a lane that a full disk made
 *      unreadable, and runs behind a run that has ended in this process.
 */
export async function checkStarts(
  story: Story,
  process: {
    readonly startedMs: number;
    readonly engine: Engine;
    /** Sessions whose lane this process failed to read. */
    readonly unreadLanes: ReadonlySet<string>;
  },
  run: Run,
): Promise<void> {
  if (cautionFor(run) === "none") return;
  const { slots } = await process.engine.load();
  if (slots.taken < slots.max) return;
  const waiting = await story.look(
    `select run_id, session_key from runs as head where state = 'queued' and kind = 'turn' and crashes = 0
      and accepted_at < ? and not exists (select 1 from runs as other where other.session_key = head.session_key
        and other.lane_seq < head.lane_seq and (other.state in ('queued', 'running', 'waiting') or other.ended_at >= ?))`,
    process.startedMs,
    process.startedMs,
  );
  const first = waiting.find(({ session_key: key }) => {
    return !isSubagentKey(String(key)) && !process.unreadLanes.has(String(key));
  });
  if (first !== undefined)
    story.wrong("CP2", `run ${run.runId} crashed, and starts before ${String(first.run_id)}`);
}
