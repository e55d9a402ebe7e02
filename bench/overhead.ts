// Benchmarks a run's overhead: the time that the engine and the store add to the model's.

import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { withEngine } from "./engine-alone.ts";
import { chatKey, oneRun, sessionRow } from "./instant.ts";
import { type Row, sample } from "./measure.ts";

/** Time from the call to accept until the waiting caller is answered: two synced commits. */
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
  ];
}
