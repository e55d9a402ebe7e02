// Benchmarks the overhead of a run: the time that engine and store add to the model's time.

import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { type Bench, withEngine } from "./engine-alone.ts";
import { chatKey, oneRun, sessionRow } from "./instant.ts";
import { type Row, sample } from "./measure.ts";

const SESSIONS_AT_ONCE = 16;
/**
 * Number of runs after which the next session is used, so that the transcripts stay short: long ones are
 * measured separately.
 */
const RUNS_OF_A_SESSION = 25;
const ROUND_RUNS = 3_000;
const ROUNDS = 5;

/** Executes runs in several sessions at once, and returns the runs per second. */
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

/** Measures engine and store without sockets and without an HTTP request to the model. */
async function engineRuns(): Promise<Row> {
  const samples = await withEngine(async (bench) => {
    const rounds: number[] = [];
    // The first round is a warm-up and is dropped.
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

/**
 * Measures the time from the acceptance of a message until the waiting caller has the answer. This includes
 * two commits with synchronous=FULL.
 */
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
