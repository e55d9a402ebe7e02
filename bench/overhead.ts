// Benchmarks a run's overhead: the time that the engine and the store add to the model's.

import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { type Bench, withEngine } from "./engine-alone.ts";
import { chatKey, oneRun, sessionRow } from "./instant.ts";
import { type Row, sample } from "./measure.ts";

const SESSIONS_AT_ONCE = 16;
/** Number of runs of a session before the next one begins: a long transcript is a separate figure. */
const RUNS_OF_A_SESSION = 25;
const ROUND_RUNS = 3_000;
const ROUNDS = 5;

/** Executes runs in several sessions at once, and returns how many ended in a second. */
async function runsPerSecond({ engine, store }: Bench, round: number): Promise<number> {
  let begun = 0;
  const work = async (place: number): Promise<void> => {
    for (let at = 0; begun < ROUND_RUNS; at += 1) {
      begun += 1;
      const session = (round * ROUND_RUNS + Math.floor(at / RUNS_OF_A_SESSION)) * SESSIONS_AT_ONCE + place;
      const sessionKey = chatKey(session);
      if (at % RUNS_OF_A_SESSION === 0)
        await store.transaction((tx) => insertSession(tx, sessionRow(sessionKey, session)));
      await oneRun(engine, sessionKey, 10_000);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, (_, place) => work(place)));
  return (ROUND_RUNS * 1_000) / (performance.now() - from);
}

/** Measures the engine and the store together, without sockets and without the model's HTTP call. */
async function engineRuns(): Promise<Row> {
  const samples = await withEngine(async (bench) => {
    const rounds: number[] = [];
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round += 1) rounds.push(await runsPerSecond(bench, round));
    return rounds.slice(1);
  }, SESSIONS_AT_ONCE);
  return {
    name: "engine runs",
    size: "16 sessions at once, in process",
    unit: "/s",
    samples,
    target: "> 1500",
  };
}

/** Time from the call to accept until the waiting caller is answered: two commits with synchronous=FULL. */
export async function runOverhead(): Promise<Row[]> {
  const samples = await withEngine(({ engine, store }) =>
    sample(1_000, 200, async (at) => {
      const sessionKey = chatKey(at % 50);
      if (at < 50) await store.transaction((tx) => insertSession(tx, sessionRow(sessionKey, at)));
      await oneRun(engine, sessionKey, 10_000);
    }),
  );
  return [
    {
      name: "run overhead, in process",
      size: "50 sessions in turn",
      unit: "ms",
      samples,
      target: "< 3",
    },
    await engineRuns(),
  ];
}
