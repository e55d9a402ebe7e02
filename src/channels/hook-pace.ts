// Owns how fast one program is told: how many requests at once, and the pause after a failure.
// HP1: a program that answers gets requests side by side; one that fails gets one at a time, after a pause
//      that doubles, until it answers again.
// HP2: whatever one program costs, the others keep their share of the requests.

/** Requests under way at once: to all programs, and to one. */
export const HOOKS_AT_ONCE = 128;
const ONE_AT_ONCE = 32;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 5 * 60_000;

interface Program {
  readonly underWay: number;
  /** Rounds of requests that failed since the last one that arrived. */
  readonly failures: number;
  readonly pausedUntil: number;
}

const HEALTHY: Program = { underWay: 0, failures: 0, pausedUntil: 0 };

export class HookPace {
  readonly #programs = new Map<string, Program>();

  /** Requests that may begin now. `programs`: to how many something waits. */
  room(name: string, now: number, programs: number): number {
    const { underWay, failures, pausedUntil } = this.#of(name);
    if (now < pausedUntil) return 0;
    const share = Math.max(1, Math.floor(HOOKS_AT_ONCE / programs));
    return Math.max(0, (failures > 0 ? 1 : Math.min(ONE_AT_ONCE, share)) - underWay);
  }

  pausedUntil(name: string): number {
    return this.#of(name).pausedUntil;
  }

  begun(name: string): void {
    const program = this.#of(name);
    this.#put(name, { ...program, underWay: program.underWay + 1 });
  }

  ended(name: string): void {
    const program = this.#of(name);
    this.#put(name, { ...program, underWay: program.underWay - 1 });
  }

  answered(name: string): void {
    this.#put(name, { ...HEALTHY, underWay: this.#of(name).underWay });
  }

  /** `afterMs`: what the program itself asked for. */
  failed(name: string, now: number, afterMs = 0): void {
    const program = this.#of(name);
    // Requests that were under way together fail together, and count once.
    const failures = now < program.pausedUntil ? program.failures : program.failures + 1;
    const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(failures - 1, 20));
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
