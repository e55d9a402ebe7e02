// Limits the requests to each receiver of webhooks: the number of concurrent requests, and the pause after a
// failure.
// HP1: a receiver that works gets concurrent requests. A receiver that fails gets one request at a time,
//      after a pause that doubles with each failure, until it answers again.
// HP2: a slow or failing receiver does not reduce the share of the others.
// All times are on the monotonic clock: the wall clock can be set back, and a pause must not become longer.

import { grownPause } from "../core/backoff.ts";

/** Maximum number of concurrent requests: to all receivers together, and to one. */
export const HOOKS_AT_ONCE = 128;
const ONE_AT_ONCE = 32;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 5 * 60_000;

interface Program {
  readonly underWay: number;
  /** Consecutive failures since the last success. Concurrent requests that fail together count once. */
  readonly failures: number;
  readonly pausedUntil: number;
}

const HEALTHY: Program = { underWay: 0, failures: 0, pausedUntil: 0 };

export class HookPace {
  readonly #programs = new Map<string, Program>();

  /**
   * Returns how many more requests to this receiver may start now. `programs`: number of receivers for which
   * events wait.
   */
  room(name: string, now: number, programs: number): number {
    const { underWay, failures, pausedUntil } = this.#of(name);
    if (now < pausedUntil) return 0;
    const share = Math.max(1, Math.floor(HOOKS_AT_ONCE / programs));
    return Math.max(0, (failures > 0 ? 1 : Math.min(ONE_AT_ONCE, share)) - underWay);
  }

  underWay(name: string): number {
    return this.#of(name).underWay;
  }

  pausedUntil(name: string): number {
    return this.#of(name).pausedUntil;
  }

  noteBegin(name: string): void {
    const program = this.#of(name);
    this.#put(name, { ...program, underWay: program.underWay + 1 });
  }

  noteEnd(name: string): void {
    const program = this.#of(name);
    this.#put(name, { ...program, underWay: program.underWay - 1 });
  }

  noteSuccess(name: string): void {
    this.#put(name, { ...HEALTHY, underWay: this.#of(name).underWay });
  }

  /** Records a failure. `afterMs`: the pause that the receiver requested. */
  noteFailure(name: string, now: number, afterMs = 0): void {
    const program = this.#of(name);
    // Failures during a pause belong to requests that began before it. Such concurrent failures count once.
    const failures = now < program.pausedUntil ? program.failures : program.failures + 1;
    const pauseMs = grownPause(PAUSE_MIN_MS, PAUSE_MAX_MS, failures - 1);
    const pausedUntil = Math.max(program.pausedUntil, now + Math.max(pauseMs, afterMs));
    this.#put(name, { ...program, failures, pausedUntil });
  }

  #of(name: string): Program {
    return this.#programs.get(name) ?? HEALTHY;
  }

  #put(name: string, program: Program): void {
    const { underWay, failures } = program;
    if (underWay === 0 && failures === 0) this.#programs.delete(name);
    else this.#programs.set(name, program);
  }
}
