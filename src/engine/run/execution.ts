// Owns one claimed run while this process executes it: writes its transcript, waits for other runs, and stops
// it. Its writes are fenced (I1), and it holds a slot except while it only waits (I6).
// X3: live text and thinking are published at most once in `liveIntervalMs`, as deltas; the rest follows when
//     the interval is over.

import { optional } from "../../core/optional.ts";
import type { ModelBudget } from "../../core/rules/budget.ts";
import { nameQueue } from "../../core/rules/run-queue.ts";
import { heldChars, isQuietStep, spokenText, TOKEN_TAIL_CHARS } from "../../core/rules/turn-rules.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import { type Entry, isCompaction, type UserMessage } from "../../core/shapes/message.ts";
import type { WorkingRevision } from "../../core/shapes/record/revision.ts";
import type { Passage, Run } from "../../core/shapes/run.ts";
import { withoutHidden } from "../../core/text/hidden-text.ts";
import { joinedDeltas, LongText, type TextDelta } from "../../core/text/text-delta.ts";
import type { Fence } from "../../store/queries/runs/runs.ts";
import { idsOf, type Log, logging, type Timer } from "../../world.ts";
import type { EngineCore } from "../engine.ts";
import type { Scheduler } from "../lanes/scheduler.ts";
import { createRunWait, type RunWait } from "../lanes/waits.ts";
import { LostLane } from "./finish.ts";
import { createHold } from "./hold.ts";
import { createSlotKeeper } from "./slot-keeper.ts";
import { createSpending, tokensLeft } from "./spending.ts";
import { createTranscriptWriter, isFinalText, type Reading, takeSteering } from "./transcript-writer.ts";

const ALONE_MS = 50;
/**
 * Number of streaming runs above which the interval grows with their number, because each read and each
 * published piece costs system calls.
 */
const QUICK_RUNS_MAX = 32;
const CROWDED_MAX_MS = 200;

/** Returns the minimum interval in ms between two pieces of live text of one run while `runs` runs stream. */
export function liveIntervalMs(runs: number): number {
  return Math.max(ALONE_MS, Math.min((ALONE_MS * runs) / QUICK_RUNS_MAX, CROWDED_MAX_MS));
}

/**
 * Minimum interval for a message longer than `LONG_TEXT_CHARS`, because each piece costs every subscriber a
 * frame.
 */
const LONG_TEXT_INTERVAL_MS = 100;
const LONG_TEXT_CHARS = 8 * 1024;
/** A text with this many unpublished characters does not wait for the end of the interval. */
const UNPUBLISHED_CHARS_MAX = 64 * 1024;
/**
 * Maximum size of the thinking that is published live for one message. The rest is only in the stored
 * message.
 */
const LIVE_THINKING_MAX_BYTES = 256 * 1024;

/** Created once, because an error with a stack for each run would be slow. */
const OVER = new Error("the run is over");

/**
 * Why an execution was stopped from outside. `ended`: the run's row says that it has ended. `parked`: the run
 * continues later.
 */
export type StopReason = "ended" | "parked";

export interface LaneHandle {
  readonly run: Run;
  readonly signal: AbortSignal;
  /**
   * Writes an entry to disk before it returns. A final text is the exception: it is written by the
   * transaction that ends or parks the run, or with the next entry. Returns the entry as stored. Throws
   * `LostLane`.
   */
  append(entry: Entry): Promise<Entry>;
  /**
   * Returns a message that arrived during the turn and must be read before the next step. The message is
   * already on disk.
   */
  takeSteered(): Promise<UserMessage | undefined>;
  text(delta: TextDelta): void;
  thinking(delta: TextDelta): void;
  publish(event: LiveEvent): void;
  /**
   * Waits until this process has authority over the run. Call it before any action outside the store. Throws
   * `LostLane`.
   */
  confirm(): Promise<void>;
  /** Runs a tool call. When all calls of the run wait, the run gives back its slot. */
  duringCall<T>(work: () => Promise<T>): Promise<T>;
  /** Runs work that another gateway does, or a pause. The run gives back its slot meanwhile (I6). */
  elsewhere<T>(work: () => Promise<T>): Promise<T>;
  readonly wait: RunWait;
  /** See `createHold`. */
  pass(callId: string, mayHaveBegun: boolean): Promise<Passage>;
  /** Records the inputs of the run. They are stored with its end. */
  record(revision: WorkingRevision): void;
  /** Absent: the run's model calls have no budget. */
  readonly budget?: ModelBudget;
  /** Returns how many tokens the run's chain and agent may still use. Undefined if there is no limit. */
  tokensLeft(): Promise<number | undefined>;
  /** Adds the run's ids to each line. */
  readonly log: Log;
}

export type Execution = ReturnType<typeof createExecution>;

export interface ExecutionParts extends EngineCore {
  readonly scheduler: Pick<Scheduler, "resume" | "isWanted">;
  running(): number;
}

/**
 * Publishes live text or thinking at most once per interval. After `over` fires, unpublished text is dropped.
 */
function createTextStream(run: Run, parts: ExecutionParts, over: AbortSignal, kind: "text" | "thinking") {
  const { clock } = parts.world;
  const { runId, sessionKey } = run;
  let messages = 0;
  let whole = new LongText();
  let pending: TextDelta | undefined;
  /** The end of the text, in which a skip token may be growing. */
  let tail = "";
  let sentAt = Number.NEGATIVE_INFINITY;
  let next: Timer | undefined;
  const cancelNext = (): void => {
    next?.cancel();
    next = undefined;
  };
  over.addEventListener("abort", cancelNext, { once: true });
  /** Returns the length of the text that may be shown. Neither quiet turns nor skip tokens are streamed. */
  const shownLength = (isComplete: boolean): number => {
    if (isQuietStep(run.flow?.step)) return 0;
    const held = kind === "text" ? heldChars(tail, tail.length === whole.length) : 0;
    return held > 0 && isComplete ? spokenText(whole.text).length : whole.length - held;
  };
  const publish = (delta: TextDelta): void => {
    sentAt = clock.monotonic();
    const part = `${run.attempt}.${messages}`;
    parts.bus.publish({ kind, runId, sessionKey, part, ...delta });
  };
  const publishUpTo = (length: number): void => {
    cancelNext();
    if (pending === undefined || length <= pending.offset) return;
    const { offset, text } = pending;
    const shown = text.slice(0, length - offset);
    pending = shown.length < text.length ? { offset: length, text: text.slice(shown.length) } : undefined;
    publish({ offset, text: shown });
  };
  return {
    text(delta: TextDelta): void {
      const isNext = delta.offset === whole.length;
      if (!whole.change(delta))
        throw new Error(`run ${runId}: a delta starts at ${delta.offset}, after the end (${whole.length})`);
      tail = (isNext ? tail + delta.text : whole.text).slice(-TOKEN_TAIL_CHARS);
      pending = pending === undefined ? delta : joinedDeltas(pending, delta);
      const length = shownLength(false);
      if (pending !== undefined && length <= pending.offset) return;
      const leastMs = whole.length > LONG_TEXT_CHARS ? LONG_TEXT_INTERVAL_MS : 0;
      const intervalMs = Math.max(leastMs, liveIntervalMs(parts.running()));
      const waitMs = sentAt + intervalMs - clock.monotonic();
      if (waitMs <= 0 || (pending?.text.length ?? 0) >= UNPUBLISHED_CHARS_MAX) publishUpTo(length);
      else if (!over.aborted) next ??= clock.after(waitMs, () => publishUpTo(shownLength(false)));
    },
    /**
     * Must be called before the message is stored or a tool call begins, or subscribers miss the rest of its
     * text.
     */
    flush: () => publishUpTo(shownLength(true)),
    publishAgain(): void {
      const length = shownLength(false);
      if (length === 0) return;
      pending = length < whole.length ? { offset: length, text: whole.text.slice(length) } : undefined;
      publish({ offset: 0, text: whole.text.slice(0, length) });
    },
    noteWritten(): void {
      cancelNext();
      messages += 1;
      whole = new LongText();
      pending = undefined;
      tail = "";
    },
    last: () => whole.text,
  };
}

/** Publishes the first `LIVE_THINKING_MAX_BYTES` of the thinking. Costs nothing in a run without thinking. */
function createThinkingStream(...args: [Run, ExecutionParts, AbortSignal]) {
  let stream: ReturnType<typeof createTextStream> | undefined;
  let bytes = 0;
  return {
    add(delta: TextDelta): void {
      if (delta.offset === 0) bytes = 0;
      bytes += Buffer.byteLength(delta.text);
      if (bytes > LIVE_THINKING_MAX_BYTES) return;
      stream ??= createTextStream(...args, "thinking");
      stream.text(delta);
    },
    publishAgain: () => stream?.publishAgain(),
    noteWritten(): void {
      bytes = 0;
      stream?.noteWritten();
    },
  };
}

/** Returns an answer without a skip token after its text. An answer that is only a token keeps it. */
function withoutToken(entry: Entry): Entry {
  if (isCompaction(entry) || entry.role !== "assistant") return entry;
  const content = withoutHidden(entry.content, (whole) => ({
    visible: spokenText(whole) || whole,
    hidden: "",
  }));
  return content === entry.content ? entry : { ...entry, content };
}

export function createExecution(run: Run, owner: string, given: ExecutionParts) {
  // Every log line about the run carries its ids.
  const parts = { ...given, world: logging(given.world, idsOf(run)) };
  const fence: Fence = { runId: run.runId, owner, attempt: run.attempt };
  const stopper = new AbortController();
  const held = { ...fence, sessionKey: run.sessionKey };
  const keeper = createSlotKeeper(held, nameQueue(run), parts, stopper.signal);
  const stream = createTextStream(run, parts, stopper.signal, "text");
  const thinking = createThinkingStream(run, parts, stopper.signal);
  let reason: StopReason | undefined;
  let revision: WorkingRevision | undefined;
  const confirm = async (): Promise<void> => {
    if ((await parts.lease?.confirm(stopper.signal)) === false)
      throw new LostLane(`run ${run.runId} may be held by another process`);
  };
  // An earlier attempt may have read messages that this attempt does not know about.
  const reading: Reading = { mayOwe: run.attempt > 1 };
  const wait = createRunWait(parts, held, keeper, stopper.signal);
  const writer = createTranscriptWriter(run, fence, parts, { confirm, signal: stopper.signal }, reading);

  const handle: LaneHandle = {
    run,
    signal: stopper.signal,
    async append(given) {
      const entry = withoutToken(given);
      // The text of a final message is published with the run's end.
      if (!isFinalText(entry)) stream.flush();
      const stored = await writer.append(entry);
      if (writer.finalText() === undefined) stream.noteWritten();
      thinking.noteWritten();
      return stored;
    },
    takeSteered: () =>
      confirm()
        .then(keeper.giveWay)
        .then(() => takeSteering(run, fence, parts, reading)),
    text: stream.text,
    thinking: thinking.add,
    publish(event) {
      if (event.kind === "tool" && event.phase === "start") stream.flush();
      parts.bus.publish(event);
    },
    confirm,
    duringCall: (work) => confirm().then(() => keeper.duringCall(work)),
    elsewhere: keeper.duringWait,
    wait,
    pass: createHold(run, held, parts, keeper, stopper.signal, wait.noteContent),
    record(of) {
      revision = of;
    },
    ...optional({ budget: createSpending(run, fence, parts, keeper.duringWait, stopper.signal) }),
    tokensLeft: () => parts.commit((unit) => tokensLeft(unit, run, parts.limits)),
    log: parts.world.log,
  };
  return {
    handle,
    fence,
    writeFinal: writer.writeFinal,
    /** Returns whether a final text is still to be written. */
    hasFinal: () => writer.finalText() !== undefined,
    revision: () => revision,
    /** Returns the text of the message being written, for an abort that keeps it. */
    textSoFar: () => writer.finalText() ?? stream.last(),
    /** Publishes live text and thinking from the beginning, because a subscriber has missed a part. */
    publishText(): void {
      thinking.publishAgain();
      stream.publishAgain();
    },
    waiting: keeper.waiting,
    noteResumed: keeper.noteResumed,
    stop(why: StopReason): void {
      reason ??= why;
      stopper.abort(new Error(`run ${run.runId} was stopped: ${why}`));
    },
    stopReason: () => reason,
    /** Ends the run in this process: aborts calls that still run, which must not take a slot again. */
    leave: () => stopper.abort(OVER),
  };
}
