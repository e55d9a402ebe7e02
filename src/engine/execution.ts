// Owns one claimed run while this process executes it: what it may write, how it waits, how it is stopped.
// X1: what it writes goes through its transcript writer, and is fenced (I1).
// X2: it holds a slot exactly while something other than waiting goes on in it (I6).
// X3: live text is passed on at most once in `TEXT_INTERVAL_MS`, each time what is new; what was left out
//     follows when that is over.

import type { ModelBudget } from "../core/budget.ts";
import type { LiveEvent } from "../core/event.ts";
import type { Entry, UserMessage } from "../core/message.ts";
import { optional } from "../core/optional.ts";
import type { Pool } from "../core/pools.ts";
import type { Run } from "../core/run.ts";
import { joinedDeltas, type TextDelta, withDelta } from "../core/text-delta.ts";
import { couldBecomeSkip, isQuietStep } from "../core/turn-rules.ts";
import { isHeld } from "../store/claims.ts";
import type { Fence } from "../store/runs.ts";
import { idsOf, type Log, logging, type Timer, type World } from "../world.ts";
import type { AcceptLimits } from "./accept.ts";
import type { Bus } from "./bus.ts";
import { openJobsWait, settleJobsWait } from "./job-waits.ts";
import type { Authority } from "./lease.ts";
import { createSlotKeeper, type SharedSlots } from "./slot-keeper.ts";
import type { Slots } from "./slots.ts";
import { createSpending } from "./spending.ts";
import { type SteeringParts, takeSteering } from "./steering.ts";
import { createTranscriptWriter, isFinalText, LostLane, type Reading } from "./transcript-writer.ts";
import type { Unit } from "./unit.ts";
import { untilStored } from "./until-stored.ts";
import { type EndWatch, openWait, type RunWait, settleWait } from "./waits.ts";

/** Between two pieces of live text of one run; its end always carries the whole. */
const TEXT_INTERVAL_MS = 50;
/** The same for a message that is longer than `LONG_TEXT_CHARS`: each piece costs every watcher a frame. */
const LONG_TEXT_INTERVAL_MS = 100;
const LONG_TEXT_CHARS = 8 * 1024;

/**
 * Why an execution was stopped from outside. `ended`: its row has ended already; `parked`: it goes on
 * later.
 */
export type StopReason = "ended" | "parked";

/** What the executor of a run may do. */
export interface LaneHandle {
  readonly run: Run;
  /** Fires when the run has to stop, whatever it is doing. */
  readonly signal: AbortSignal;
  /**
   * On disk before it returns, but for a final text, which nothing but the run's end follows: that is
   * written by the transaction that ends the run, or by the next append. Returns the entry as it is stored.
   * Throws `LostLane`.
   */
  append(entry: Entry): Promise<Entry>;
  /** A message that came meanwhile and is to be read now, before the next step; it is on disk already. */
  steered(): Promise<UserMessage | undefined>;
  /** New text of the message being written. */
  text(delta: TextDelta): void;
  publish(event: LiveEvent): void;
  /**
   * Resolves while this process has authority over the run; to be asked before anything outside the store is
   * done for it. Throws `LostLane`.
   */
  confirm(): Promise<void>;
  /** Runs a tool call; a run whose calls all wait gives its slot back. */
  duringCall<T>(work: () => Promise<T>): Promise<T>;
  readonly wait: RunWait;
  /** Absent: no budget counts its model calls. */
  readonly budget?: ModelBudget;
  /** Each line says which run it is about. */
  readonly log: Log;
}

export interface Execution {
  readonly handle: LaneHandle;
  readonly fence: Fence;
  /** Writes the final text that is still to be written, in the unit that ends or parks the held run. */
  writeFinal(unit: Unit): Promise<void>;
  /** Whether there is one. */
  hasFinal(): boolean;
  /** Text of the message being written, for an abort that keeps what was said. */
  textSoFar(): string;
  /** Tells the live text from its beginning: somebody has missed a part of it. */
  publishText(): void;
  waiting(): boolean;
  stop(reason: StopReason): void;
  stopReason(): StopReason | undefined;
  /** The run is over in this process: gives back the slot, and stops what its calls may still be doing. */
  leave(): void;
}

export interface ExecutionParts extends SteeringParts {
  readonly bus: Bus;
  readonly watch: EndWatch;
  readonly slots: Slots;
  readonly world: World;
  readonly limits: AcceptLimits;
  /** Absent: this process is the whole deployment. */
  readonly shared?: SharedSlots;
  /** Absent: nobody else could have the run. */
  readonly lease?: Authority;
}

/** Passes live text on, thinned out. `over`: from then on nobody waits for what was left out. */
function createTextStream(run: Run, parts: ExecutionParts, over: AbortSignal) {
  const { clock } = parts.world;
  const { runId, sessionKey } = run;
  let messages = 0;
  let whole = "";
  /** The delta that was not told yet. */
  let pending: TextDelta | undefined;
  /** The text may not become a skip token any more: it can be shown. */
  let cleared = false;
  let sentAt = Number.NEGATIVE_INFINITY;
  let next: Timer | undefined;
  const cancelNext = (): void => {
    next?.cancel();
    next = undefined;
  };
  over.addEventListener("abort", cancelNext, { once: true });
  /** Text that nobody must see is never streamed: flow turns, and what may still become a skip token. */
  const mayStream = (): boolean => {
    if (isQuietStep(run.flow?.step)) return false;
    cleared ||= run.flow === undefined || !couldBecomeSkip(whole);
    return cleared;
  };
  const publish = (delta: TextDelta): void => {
    pending = undefined;
    sentAt = clock.monotonic();
    const part = `${run.attempt}.${messages}`;
    parts.bus.publish({ kind: "text", runId, sessionKey, part, ...delta });
  };
  const flush = (): void => {
    cancelNext();
    if (pending !== undefined && whole !== "" && mayStream()) publish(pending);
  };
  return {
    text(delta: TextDelta): void {
      const after = withDelta(whole, delta);
      if (after === undefined) throw new Error(`run ${runId}: text at ${delta.offset} of ${whole.length}`);
      if (delta.offset < whole.length) cleared = false;
      whole = after;
      pending = pending === undefined ? delta : joinedDeltas(pending, delta);
      if (whole === "" || !mayStream()) return;
      const interval = whole.length > LONG_TEXT_CHARS ? LONG_TEXT_INTERVAL_MS : TEXT_INTERVAL_MS;
      const waitMs = sentAt + interval - clock.monotonic();
      if (waitMs <= 0) flush();
      else if (!over.aborted) next ??= clock.at(clock.now() + waitMs, flush);
    },
    /** Before its message is written: its end was left out, maybe, and nothing else carries that. */
    flush,
    publishAgain(): void {
      if (whole !== "" && mayStream()) publish({ offset: 0, text: whole });
    },
    written(): void {
      cancelNext();
      messages += 1;
      whole = "";
      pending = undefined;
      cleared = false;
    },
    last: () => whole,
  };
}

/** Makes the function that asks for the authority of this process over a run. */
function confirmerOf({ runId }: Run, lease: Authority | undefined, signal: AbortSignal) {
  return async (): Promise<void> => {
    if ((await lease?.confirm(signal)) !== false) return;
    throw new LostLane(`run ${runId} may be another process's`);
  };
}

export function createExecution(run: Run, owner: string, given: ExecutionParts, pool: Pool): Execution {
  // Whatever is done for the run from here on can't forget to say so.
  const parts = { ...given, world: logging(given.world, idsOf(run)) };
  const fence: Fence = { runId: run.runId, owner, attempt: run.attempt };
  const stopper = new AbortController();
  const slotOwner = { agentId: run.agentId, pool };
  const keeper = createSlotKeeper({ fence, sessionKey: run.sessionKey }, parts, stopper.signal, slotOwner);
  const stream = createTextStream(run, parts, stopper.signal);
  let reason: StopReason | undefined;
  const confirm = confirmerOf(run, parts.lease, stopper.signal);
  // Of an earlier attempt nobody knows here what it has read.
  const reading: Reading = { mayOwe: run.attempt > 1 };
  const writer = createTranscriptWriter(run, fence, { ...parts, confirm }, stopper.signal, reading);
  const append = async (entry: Entry): Promise<Entry> => {
    // The text of a final message goes out with the run's end.
    if (!isFinalText(entry)) stream.flush();
    const stored = await writer.append(entry);
    if (writer.finalText() === undefined) stream.written();
    return stored;
  };
  const waiter = { runId: run.runId, sessionKey: run.sessionKey };
  const wait: RunWait = {
    ...waiter,
    open: (unit, request) => openWait(unit, waiter, request),
    openJobs: (unit, request) => openJobsWait(unit, waiter, request),
    holds: (unit) => isHeld(unit.tx, fence),
    settle: (callId, gaveUp) =>
      keeper.duringWait(() =>
        untilStored(parts.world, stopper.signal, () => settleWait(parts, callId, stopper.signal, gaveUp)),
      ),
    settleJobs: (callId, until) =>
      keeper.duringWait(() =>
        untilStored(parts.world, stopper.signal, () => settleJobsWait(parts, callId, until, stopper.signal)),
      ),
  };
  return {
    handle: {
      run,
      signal: stopper.signal,
      append,
      steered: () => confirm().then(() => takeSteering(run, fence, parts, reading)),
      text: stream.text,
      publish: (event) => parts.bus.publish(event),
      confirm,
      duringCall: (work) => confirm().then(() => keeper.duringCall(work)),
      wait,
      ...optional({ budget: createSpending(run, fence, parts, stopper.signal) }),
      log: parts.world.log,
    },
    fence,
    writeFinal: writer.writeFinal,
    hasFinal: () => writer.finalText() !== undefined,
    textSoFar: () => writer.finalText() ?? stream.last(),
    publishText: stream.publishAgain,
    waiting: keeper.waiting,
    stop(why) {
      reason ??= why;
      stopper.abort(new Error(`run ${run.runId} was stopped: ${why}`));
    },
    stopReason: () => reason,
    leave() {
      keeper.leave();
      // A call that its run no longer waits for must not go on and take a slot.
      stopper.abort(new Error(`run ${run.runId} is over`));
    },
  };
}
