// Checks one run while a process of a story executes it.

import {
  isCompaction,
  type Message,
  type ToolCallBlock,
  toolCallsOf,
} from "../../src/core/shapes/message.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import { argumentsOf, checkReturned } from "./checks/results.ts";
import type { SessionMap } from "./checks/rights.ts";
import type { Story, Work } from "./story.ts";

/**
 * I1: checks that a session has at most one executing run. I3: checks that runs begin in the order of the
 * lane.
 */
export function noteBegin(story: Story, work: Work): void {
  const { run, process } = work;
  const other = [...story.works].find(
    (one) => one.run.sessionKey === run.sessionKey && one.process === process,
  );
  if (other !== undefined) story.wrong("I1", `${run.runId} begins while ${other.run.runId} executes`);
  story.works.add(work);
  const begun = story.begun.get(run.sessionKey) ?? [];
  begun.push({ laneSeq: run.laneSeq, runId: run.runId });
  story.begun.set(run.sessionKey, begun);
}

/**
 * Returns the stored tool calls with which a resumed run continues. An answer that arrived after the process
 * died is not among them.
 */
async function storedCalls(story: Story, runId: string): Promise<readonly ToolCallBlock[]> {
  const rows = await story.look(
    "select entry_json from messages where run_id = ? and role = 'assistant' order by seq",
    runId,
  );
  return rows.flatMap((row) => toolCallsOf(JSON.parse(String(row.entry_json)) as Message));
}

/** Wraps the handle of a run to check each use of it. */
export function watched(story: Story, settings: Settings, work: Work, handle: LaneHandle): LaneHandle {
  let calls: readonly ToolCallBlock[] = [];
  let moments: SessionMap[] = [];
  const { sessionKey, runId } = work.run;
  return {
    ...handle,
    async append(entry) {
      if (!isCompaction(entry) && toolCallsOf(entry).length > 0) {
        calls = toolCallsOf(entry);
        moments = [await story.refresh()];
      }
      if (!isCompaction(entry) && entry.role === "toolResult") {
        moments.push(await story.refresh());
        const args = argumentsOf(
          calls.length > 0 ? calls : await storedCalls(story, runId),
          entry.toolCallId,
        );
        const [first] = entry.content;
        const text = first?.type === "text" ? first.text : "";
        const returned = { sessionKey, settings, moments, name: entry.toolName, args };
        await checkReturned(story, returned, text);
        story.trace.add(`result for ${runId}: ${entry.toolName} ${text.slice(0, 300)}`);
      }
      return handle.append(entry);
    },
    duringCall: (call) =>
      handle.duringCall(async () => {
        work.calling += 1;
        moments.push(await story.refresh());
        try {
          return await call();
        } finally {
          work.calling -= 1;
        }
      }),
  };
}
