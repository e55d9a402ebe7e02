// Writes the transcript entries of a run while it holds its lane. Every write is fenced: a run that lost its
// lane writes nothing (I1). An entry is on disk before `append` returns. Only a final text is written later:
// with the run's end, or with the next entry.
// ST1: one transaction writes a message that arrives between two steps into the transcript, as part of the
//      reading run, and marks the message's own run as read. After a crash, both are stored, or neither
//      (I2, I4).
// ST2: that write is fenced by the reading run (I1), and only the head of the queue is taken (I3).
// ST3: the message's own run ends `ok` with the answer that follows it (`endTaken`). If the reading run ends
//      before that answer, the message's own run does not succeed: an unanswered message is never reported as
//      answered.

import { optional } from "../../core/optional.ts";
import { takesOver } from "../../core/rules/queue-mode.ts";
import { isSessionMessage } from "../../core/rules/receipt.ts";
import {
  type Entry,
  isCompaction,
  textOf,
  toolCallsOf,
  type UserMessage,
} from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd } from "../../store/locks.ts";
import { isHeld, noteTaken, queuedIn } from "../../store/queries/runs/claims.ts";
import { type Fence, noteHeard } from "../../store/queries/runs/runs.ts";
import { appendEntry, appendHeld } from "../../store/queries/transcripts/append.ts";
import type { Db } from "../../store/sql.ts";
import { together } from "../../store/transaction.ts";
import type { EngineCore } from "../engine.ts";
import type { Unit } from "../unit.ts";
import { inputMessage } from "./begin.ts";
import type { LaneHandle } from "./execution.ts";
import { endTaken, LostLane, publishMessage, publishReceipt } from "./finish.ts";
import { untilStored } from "./until-stored.ts";

/** Records which messages a run has read (ST1). */
export interface Reading {
  /** The transcript may hold a message that the model has not answered yet. */
  mayOwe: boolean;
}

/** Returns whether a turn can end with this text: it has no tool call and no failure. */
export function isFinalText(entry: Entry): boolean {
  return (
    !isCompaction(entry) &&
    entry.role === "assistant" &&
    entry.stopReason === "stop" &&
    toolCallsOf(entry).length === 0
  );
}

/** Returns whether an entry is the model's answer to everything before it. */
function isAnswer(entry: Entry): boolean {
  if (isCompaction(entry) || entry.role !== "assistant") return false;
  return !["error", "aborted", "injected"].includes(entry.stopReason);
}

/** `confirm` is called before each write. */
export function createTranscriptWriter(
  run: Run,
  fence: Fence,
  parts: EngineCore,
  { confirm, signal }: Pick<LaneHandle, "confirm" | "signal">,
  reading: Reading,
) {
  let final: Entry | undefined;
  /** Whether this attempt has recorded that the model answered the message. */
  let heard = false;

  /** Throws `LostLane` if the lane is lost. Without `lane`, the caller has checked that the run is held. */
  const write = async (unit: Unit, given: Entry, lane?: Fence): Promise<Entry> => {
    const { sessionKey, sessionId, runId } = run;
    const answers = !heard && isAnswer(given) && isSessionMessage(run);
    const { tx, redactor } = unit;
    const place = { sessionKey, sessionId, runId, entry: given };
    const [entry, isFirst] = await together(
      lane === undefined ? appendEntry(tx, place, redactor) : appendHeld(tx, place, redactor, lane),
      answers ? noteHeard(tx, runId, unit.now) : undefined,
    );
    // The transaction is rolled back.
    if (entry === undefined) throw new LostLane(`run ${runId} no longer holds its lane`);
    publishMessage(unit, run, entry);
    if (isFirst === true) publishReceipt(unit, run, "in_turn");
    if (answers)
      unit.after(() => {
        heard = true;
      });
    if (reading.mayOwe && isAnswer(entry)) {
      await endTaken(unit, run, { state: "ok", reply: "" }, parts);
      unit.after(() => {
        reading.mayOwe = false;
      });
    }
    return entry;
  };
  return {
    finalText: () => (final === undefined || isCompaction(final) ? undefined : textOf(final)),
    /** Writes the final text, if there is one, in a transaction that ends or parks the run. */
    async writeFinal(unit: Unit): Promise<void> {
      if (final !== undefined) await write(unit, final);
    },
    /**
     * Returns the entry as stored. Keeps a final text: the transaction that ends the run writes it. Throws
     * `LostLane`.
     */
    async append(entry: Entry): Promise<Entry> {
      if (final === undefined && isFinalText(entry)) {
        final = entry;
        return entry;
      }
      const stored = await untilStored(parts.world, signal, async () => {
        await confirm();
        return parts.commit(async (unit) => {
          if (reading.mayOwe) await holdForEnd(unit.tx, { sessionKey: run.sessionKey });
          if (final !== undefined) await write(unit, final, fence);
          return write(unit, entry, fence);
        });
      });
      final = undefined;
      return stored;
    },
  };
}

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
    const { sessionKey, sessionId, runId } = run;
    const message: UserMessage = { ...inputMessage(unit, next), steered: true };
    await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry: message }, unit.redactor);
    publishMessage(unit, { ...run, ...optional({ route: next.route }) }, message);
    await noteTaken(unit.tx, { ...next, input: { ...next.input, takenBy: run.runId } });
    read = next.runId;
    return message;
  });
  if (taken === "lost") throw new LostLane(`run ${run.runId} no longer holds its lane`);
  if (taken !== undefined)
    parts.world.log.debug({ steeredRunId: read }, "a run read the next message of its lane");
  return taken;
}
