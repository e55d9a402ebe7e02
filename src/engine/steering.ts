// Owns how a run takes over the next one of its lane between two of its steps: it reads that one's message.
// ST1: the message in the transcript, as part of the run that reads it, and the note in the run that brought
//      it are one transaction: a crash leaves both or none (I2, I4).
// ST2: it is fenced by the reading run (I1), and only the head of the queue is taken (I3).
// ST3: the run that brought it ends `ok` with the answer that the model gives behind it (`endTaken`). If the
//      reading run ends before that, it ends as that one does: nobody is told that an unread message was
//      read.

import type { UserMessage } from "../core/message.ts";
import { takesOver } from "../core/queue-mode.ts";
import type { Run } from "../core/run.ts";
import { isHeld, noteTaken, queuedIn } from "../store/claims.ts";
import { holdForEnd } from "../store/locks.ts";
import type { Fence } from "../store/runs.ts";
import type { Db, Store } from "../store/sql.ts";
import { appendEntry } from "../store/transcripts.ts";
import type { World } from "../world.ts";
import { inputMessage } from "./begin.ts";
import type { FinishParts } from "./finish.ts";
import { LostLane, type Reading } from "./transcript-writer.ts";
import type { Commit, Unit } from "./unit.ts";

export interface SteeringParts {
  readonly store: Store;
  readonly commit: Commit;
  readonly finish: FinishParts;
  readonly world: World;
}

/** The first run of a lane that has not started and that no run under way has taken. */
async function nextIn(db: Db, sessionKey: string): Promise<Run | undefined> {
  return (await queuedIn(db, sessionKey)).find((run) => run.input.takenBy === undefined);
}

/**
 * The message of the next run, if that is for the run under way to read: written, and its run taken. Mostly
 * there is none, which costs one look, and nothing for a run that answers no place. A store that refuses is
 * thrown: it may have written what it doesn't answer, so the turn begins again where its transcript ends.
 */
export async function takeSteering(
  run: Run,
  fence: Fence,
  parts: SteeringParts,
  reading: Reading,
): Promise<UserMessage | undefined> {
  const { store, commit } = parts;
  if (run.route === undefined) return undefined;
  if (!takesOver(run, await nextIn(store.db, run.sessionKey))) return undefined;
  // Before the commit: it may be stored and not answered.
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
  if (taken !== undefined) parts.world.log.debug({ steeredRunId: read }, "a run reads a message that came");
  return taken;
}

async function writeMessage(unit: Unit, run: Run, next: Run): Promise<UserMessage> {
  const { sessionKey, sessionId, runId } = run;
  const message: UserMessage = { ...inputMessage(unit, next), steered: true };
  await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry: message }, unit.redactor);
  unit.publish({ kind: "message", runId, sessionKey, sessionId, message });
  return message;
}
