// Owns the execution slots: how many runs execute at once in this process.
// SL1: a waiting run holds none (I6).
// SL2: a run that stops waiting goes before a run that has not started, so that a fan-out drains.

export interface Slots {
  readonly max: number;
  taken(): number;
  /** Takes a free slot at once, or says that there is none. */
  tryTake(): boolean;
  /** Waits for a slot, ahead of new work. Resolves false when `signal` fires first. */
  takeAgain(signal: AbortSignal): Promise<boolean>;
  release(): void;
}

export function createSlots(max: number, onFree: () => void): Slots {
  let taken = 0;
  const resuming: ((got: boolean) => void)[] = [];
  return {
    max,
    taken: () => taken,
    tryTake() {
      if (taken >= max || resuming.length > 0) return false;
      taken += 1;
      return true;
    },
    takeAgain(signal) {
      if (signal.aborted) return Promise.resolve(false);
      if (taken < max) {
        taken += 1;
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        const settle = (got: boolean): void => {
          signal.removeEventListener("abort", giveUp);
          resolve(got);
        };
        const giveUp = (): void => {
          resuming.splice(resuming.indexOf(settle), 1);
          settle(false);
        };
        resuming.push(settle);
        signal.addEventListener("abort", giveUp, { once: true });
      });
    },
    release() {
      const next = resuming.shift();
      if (next !== undefined) {
        next(true);
        return;
      }
      taken -= 1;
      onFree();
    },
  };
}
