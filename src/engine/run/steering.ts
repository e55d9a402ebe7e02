// Lets a run read the message of the next run in its lane between two of its own steps.
// ST1: one transaction writes the message into the transcript, as part of the reading run, and marks the
//      message's own run as read. After a crash, both writes are stored, or neither (I2, I4).
// ST2: the write is fenced by the reading run (I1), and only the head of the queue is taken (I3).
// ST3: the message's own run ends `ok` with the answer that follows it (`endTaken`). If the reading run ends
//      before that answer, the message's own run does not succeed: an unanswered message is never reported as
//      answered.

import { optional } from "../../core/optional.ts";
import { takesOver } from "../../core/rules/queue-mode.ts";
import type { UserMessage } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd } from "../../store/locks.ts";
import { isHeld, noteTaken, queuedIn } from "../../store/queries/runs/claims.ts";
import type { Fence } from "../../store/queries/runs/runs.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import type { Db } from "../../store/sql.ts";
import type { EngineCore } from "../engine.ts";
import type { Unit } from "../unit.ts";
import { inputMessage } from "./begin.ts";
import { LostLane, publishMessage } from "./finish.ts";
import type { Reading } from "./transcript-writer.ts";

/** Returns the first run of a lane that has not started and that no other run has taken. */
async function nextIn(db: Db, sessionKey: string): Promise<Run | undefined> {
  return (await queuedIn(db, sessionKey)).find((run) => run.input.takenBy === undefined);
}

/**
 * If the current run should read the message of the next queued run, appends the message to the transcript
 * and marks the queued run as taken. Costs one read if nothing is queued, and none if the current run has no
 * reply route. Throws if the store fails. The message may be stored even then, so the caller must continue
 * the turn from the end of the transcript.
 */
export async function takeSteering(
  run: Run,
  fence: Fence,
  parts: EngineCore,
  reading: Reading,
): Promise<UserMessage | undefined> {
  const { store, commit } = parts;
  if (run.route === undefined) return undefined;
  if (!takesOver(run, await nextIn(store.db, run.sessionKey))) return undefined;
  // Set this before the commit: a commit may succeed although its answer is lost.
  reading.mayOwe = true;
  let read = "";
  const taken = await commit(async (unit): Promise<UserMessage | "lost" | undefined> => {
    read = "";
    await holdForEnd(unit.tx, { sessionKey: run.sessionKey });
    if (!(await isHeld(unit.tx, fence))) return "lost";
    const next = await nextIn(unit.tx, run.sessionKey);
    if (!takesOver(run, next)) return undefined;
    const message = await writeMessage(unit, run, next);
    await noteTaken(unit.tx, { ...next, input: { ...next.input, takenBy: run.runId } });
    read = next.runId;
    return message;
  });
  if (taken === "lost") throw new LostLane(`run ${run.runId} no longer holds its lane`);
  if (taken !== undefined)
    parts.world.log.debug({ steeredRunId: read }, "a run read the next message of its lane");
  return taken;
}

async function writeMessage(unit: Unit, run: Run, next: Run): Promise<UserMessage> {
  const { sessionKey, sessionId, runId } = run;
  const message: UserMessage = { ...inputMessage(unit, next), steered: true };
  await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry: message }, unit.redactor);
  publishMessage(unit, { ...run, ...optional({ route: next.route }) }, message);
  return message;
}
