// Owns how a run takes over the next one of its lane between two of its steps: it reads that one's message.
// ST1: the message in the transcript, as part of the run that reads it, and the end of the run that brought
//      it are one transaction: a crash leaves both or none (I2, I4).
// ST2: it is fenced by the reading run (I1), and only the head of the queue is taken (I3).

import type { UserMessage } from "../core/message.ts";
import { takesOver } from "../core/queue-mode.ts";
import type { Run } from "../core/run.ts";
import { holdRun, isHeld, nextQueued, noteTaken } from "../store/claims.ts";
import { holdForEnd } from "../store/locks.ts";
import type { Fence } from "../store/runs.ts";
import type { Store } from "../store/sql.ts";
import { appendEntry } from "../store/transcripts.ts";
import type { World } from "../world.ts";
import { inputMessage } from "./begin.ts";
import { endInUnit, type FinishParts } from "./finish.ts";
import { LostLane } from "./transcript-writer.ts";
import type { Commit, Unit } from "./unit.ts";

export interface SteeringParts {
  readonly store: Store;
  readonly commit: Commit;
  readonly finish: FinishParts;
  readonly world: World;
}

/**
 * The message of the next run, if that is for the run under way to read: written, and its run over. Mostly
 * there is none, which costs one look, and nothing for a run that answers no place. A store that refuses is
 * thrown: it may have written what it doesn't answer, so the turn begins again where its transcript ends.
 */
export async function takeSteering(
  run: Run,
  fence: Fence,
  parts: SteeringParts,
): Promise<UserMessage | undefined> {
  const { store, commit, finish } = parts;
  if (run.route === undefined) return undefined;
  if (!takesOver(run, await nextQueued(store.db, run.sessionKey))) return undefined;
  let read = "";
  const taken = await commit(async (unit): Promise<UserMessage | "lost" | undefined> => {
    read = "";
    await holdForEnd(unit.tx, { sessionKey: run.sessionKey });
    if (!(await isHeld(unit.tx, fence))) return "lost";
    const next = await nextQueued(unit.tx, run.sessionKey);
    if (!takesOver(run, next)) return undefined;
    await holdRun(unit.tx, next.runId);
    const message = await writeMessage(unit, run, next);
    const over: Run = { ...next, input: { ...next.input, takenBy: run.runId } };
    await noteTaken(unit.tx, over);
    read = next.runId;
    await endInUnit(unit, over, { state: "ok", reply: "" }, finish);
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
