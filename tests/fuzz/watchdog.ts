// Stops fuzzing that hangs: a thread watches its progress.
// WD1: if a run blocks the process (an endless loop, a backtracking regular expression), its seed is printed
// and
//      the process is killed, because no code in it can stop the run.
// WD2: the thread counts its own ticks and reads no clock, so that it kills no run on a slow machine.

import { Worker } from "node:worker_threads";

/** Number of ticks (one per second) without progress after which a run counts as hanging. */
const TICKS_MAX = 90;
const NAME_MAX_BYTES = 1_000;

/** The code of the thread. It is a string, so that the thread needs no module loader. */
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
  /** Starts watching. `name` is printed together with the seed. */
  watch(name: string): void;
  /** Reports progress: a run begins. */
  beat(): void;
  /** Stops watching until the next `watch`. */
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
