// Owns the end of a run that never ends: a thread of its own watches whether the fuzzing goes on.
// WD1: a run that blocks the process (an endless loop, a regular expression that backtracks) is named, with its
//      seed, and the process is killed: nothing in it could stop itself.
// WD2: it counts its own ticks and no clock, so a machine that sleeps or is slow for a moment kills nobody.

import { Worker } from "node:worker_threads";

/** Ticks without progress, a second each, after which a run is taken for hung. */
const TICKS_MAX = 90;
const NAME_MAX_BYTES = 1_000;

/** Runs in the thread, as text: it must not need a loader. */
const WATCH = `
  const { workerData } = require("node:worker_threads");
  const { writeSync } = require("node:fs");
  const beat = new Int32Array(workerData.beat);
  const name = new Uint8Array(workerData.name);
  let seen = -1;
  let ticks = 0;
  setInterval(() => {
    const now = Atomics.load(beat, 0);
    const watching = Atomics.load(beat, 1) === 1;
    ticks = watching && now === seen ? ticks + 1 : 0;
    seen = now;
    if (ticks < ${TICKS_MAX}) return;
    const text = Buffer.from(name).toString("utf8").replace(/\\0+$/, "");
    writeSync(2, "\\nfuzz: HUNG: " + text + ", in run " + now + " of the round\\n");
    process.kill(process.pid, "SIGKILL");
  }, 1_000);
`;

export interface Watchdog {
  /** From now on runs are expected; `name` says which, with the seed. */
  watch(name: string): void;
  /** A run begins. */
  beat(): void;
  /** Nothing is expected until the next `watch`. */
  rest(): void;
  end(): Promise<void>;
}

export function startWatchdog(): Watchdog {
  const beat = new SharedArrayBuffer(8);
  const name = new SharedArrayBuffer(NAME_MAX_BYTES);
  const counts = new Int32Array(beat);
  const worker = new Worker(WATCH, { eval: true, workerData: { beat, name } });
  worker.unref();
  return {
    watch(text) {
      const bytes = new Uint8Array(name);
      bytes.fill(0);
      bytes.set(Buffer.from(text).subarray(0, NAME_MAX_BYTES));
      Atomics.store(counts, 0, 0);
      Atomics.store(counts, 1, 1);
    },
    beat: () => void Atomics.add(counts, 0, 1),
    rest: () => void Atomics.store(counts, 1, 0),
    end: async () => void (await worker.terminate()),
  };
}
