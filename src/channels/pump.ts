// Moves the frames of an account from its platform into the store.
// PU1: a frame is acknowledged to the platform after its message is stored (I2), in the order of arrival.
//      After a frame that could not be stored, none is acknowledged: the platform sends them again.
// PU2: the frames of one lane are taken in order, and do not wait for the files of other lanes.
// PU3: the size of waiting frames is limited. At the limit the pump accepts no more, and those are taken that
//      wait already.
// PU4: what can't be stored is tried again after growing pauses. After the last attempt listening fails, and
//      accounts.ts starts it again.

import { once } from "node:events";
import { grownPause } from "../core/backoff.ts";
import { pause } from "../world/pause.ts";
import type { Clock } from "../world.ts";
import { ListenProblem } from "./accounts.ts";
import type { ChannelHost, InboundMessage } from "./channel.ts";

/** Number of consecutive failures after which listening fails, and the shortest and the longest pause. */
const FAILURES_MAX = 6;
const PAUSE_MIN_MS = 200;
const PAUSE_MAX_MS = 10_000;
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
/** Size of a frame if the platform does not say it. */
const FRAME_BYTES = 8 * 1024;

/** Pauses after failures in a row, with which each channel repeats what failed. */
export class Patience {
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #failures = 0;

  constructor(clock: Clock, signal?: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Waits after a failure. Throws it after too many. `afterMs`: the pause that the platform asks for. */
  async pauseAfter(failure: unknown, afterMs?: number): Promise<void> {
    this.#failures += 1;
    if (this.#failures >= FAILURES_MAX || this.#signal?.aborted === true) throw failure;
    const grownMs = grownPause(PAUSE_MIN_MS, PAUSE_MAX_MS, this.#failures - 1);
    await pause(this.#clock, afterMs ?? grownMs, this.#signal);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** A message that a platform sent, or an event that only has to be acknowledged. */
export interface Frame {
  /** Stores the message of the frame. Absent if there is nothing to do. */
  readonly take?: () => Promise<unknown>;
  /** Frames of one lane are taken in order. Absent: after all earlier and before all later frames. */
  readonly lane?: string;
  readonly bytes?: number;
  /** Moves the read position behind the frame. */
  readonly acknowledge?: () => Promise<void> | void;
}

export class Pump {
  /** Aborted when the platform must bring no more frames. */
  readonly signal: AbortSignal;
  readonly #host: ChannelHost;
  readonly #account: string;
  readonly #stop: AbortSignal | undefined;
  readonly #failure = new AbortController();
  /** For each lane, the work that runs or waits last. */
  readonly #lanes = new Map<string, Promise<boolean>>();
  /** The newest work for which all later work waits. */
  #barrier: Promise<boolean> = Promise.resolve(true);
  /** Resolves after all frames have been acknowledged, or could not be: then to false. */
  #acknowledged: Promise<boolean> = Promise.resolve(true);
  /** The newest frame, if it has nothing to do and is not acknowledged yet. */
  #idle: Pick<Frame, "acknowledge"> | undefined;
  #frames = 0;
  #bytes = 0;

  /** `account`: its name in the log. `stop`: aborted when the account must be left. */
  constructor(host: ChannelHost, account: string, stop?: AbortSignal) {
    this.#host = host;
    this.#account = account;
    this.#stop = stop;
    this.signal = AbortSignal.any([this.#failure.signal, ...(stop === undefined ? [] : [stop])]);
  }

  push(frame: Frame): void {
    if (this.signal.aborted) return;
    const { take, lane, bytes = FRAME_BYTES } = frame;
    // Most frames of some platforms have nothing to do. Of several in a row only the last one waits.
    if (take === undefined && this.#idle !== undefined) {
      Object.assign(this.#idle, frame);
      return;
    }
    if (this.#bytes + bytes > WAITING_BYTES_MAX) {
      this.fail(new ListenProblem("messages arrive faster than they are stored"));
      return;
    }
    this.#frames += 1;
    this.#bytes += bytes;
    const waiting = { ...frame };
    this.#idle = take === undefined ? waiting : undefined;
    const end = take === undefined ? Promise.resolve(true) : this.#start(take, lane);
    this.#acknowledged = this.#settle(this.#acknowledged, waiting, end).finally(() => {
      this.#frames -= 1;
      this.#bytes -= bytes;
    });
  }

  store(message: InboundMessage): Promise<void> {
    return this.keep(() => this.#host.receive(message));
  }

  /** Does work of the store, again if it fails. Throws a `ListenProblem` after the last attempt. */
  async keep(work: () => Promise<void> | void): Promise<void> {
    const { clock, log } = this.#host.world;
    const patience = new Patience(clock, this.#stop);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        log.warn({ err: error, account: this.#account }, "a message could not be stored");
        await patience.pauseAfter(new ListenProblem("incoming messages can't be stored"));
      }
    }
  }

  /** Accepts no more frames. `drain` throws the problem after the waiting frames are taken. */
  fail(problem: unknown): void {
    this.#failure.abort(problem);
  }

  /** Waits until no frame waits. */
  async idle(): Promise<void> {
    while (this.#frames > 0) await this.#acknowledged;
  }

  /** Waits until no frame waits. Throws the problem of the platform or of the store. */
  async drain(): Promise<void> {
    await this.idle();
    if (this.#stop?.aborted !== true) this.#failure.signal.throwIfAborted();
  }

  /** Waits until no more frames are accepted, and none waits. Throws the problem. */
  async end(): Promise<void> {
    if (!this.signal.aborted) await once(this.signal, "abort");
    await this.drain();
  }

  /**
   * Takes a frame when its turn comes. Resolves to whether its message is stored. After a failure, no later
   * frame of its lane is taken.
   */
  #start(take: () => Promise<unknown>, lane: string | undefined): Promise<boolean> {
    const before = lane === undefined ? this.#acknowledged : (this.#lanes.get(lane) ?? this.#barrier);
    const end = before.then(async (isStored) => {
      if (!isStored || this.#stop?.aborted === true) return false;
      try {
        await take();
        return true;
      } catch (error) {
        this.fail(error);
        return false;
      }
    });
    if (lane === undefined) {
      this.#barrier = end;
      this.#lanes.clear();
      return end;
    }
    this.#lanes.set(lane, end);
    void end.then(() => {
      if (this.#lanes.get(lane) === end) this.#lanes.delete(lane);
    });
    return end;
  }

  async #settle(before: Promise<boolean>, frame: Frame, end: Promise<boolean>): Promise<boolean> {
    const isNext = await before;
    const isStored = await end;
    if (this.#idle === frame) this.#idle = undefined;
    if (!isNext || !isStored) return false;
    try {
      const { acknowledge } = frame;
      if (acknowledge !== undefined) await this.keep(acknowledge);
      return true;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }
}
