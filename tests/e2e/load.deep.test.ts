// A thousand clients and two hundred busy sessions, for three quarters of a minute. `npm run load` runs longer
// and prints the figures. By default Node lets its heap grow to four times the used size before it collects garbage, so the
// heap is limited to HEAP_MB: otherwise the size of a process would say little. After the warm-up, the
// minimum in the last third of the samples may exceed that in the first third by GROWTH_MAX_MB, which covers
// the two page caches of the store (16 MB each) and the phase of the garbage collector.

import { expect, test } from "vitest";
import { runLoad } from "../kit/load/run.ts";
import { EMBEDDED } from "../kit/process/grounds.ts";

const SECONDS = 45;
const CLIENTS = 1_000;
const SESSIONS = 200;
const PIECE_MS = 1_000;
const HEAP_MB = 192;
const GROWTH_MAX_MB = 80;

test("under load, readers miss no event, a slow reader is disconnected, and memory stays constant", async () => {
  const seed = process.env.PARLEY_SEED ?? String(Date.now());
  const figures = await runLoad({
    ...{ ground: EMBEDDED, seed, seconds: SECONDS, clients: CLIENTS, sessions: SESSIONS },
    ...{ pieceMs: PIECE_MS, heapMb: HEAP_MB },
  });
  console.log(`SEED=${seed}: ${JSON.stringify(figures)}`);
  expect(figures.running.median).toBeGreaterThan(SESSIONS * 0.8);
  expect(figures.staying).toMatchObject({ gaps: 0, twice: 0, missed: 0, closed: 0 });
  expect(figures.staying.readers).toBeGreaterThan(CLIENTS * 0.9);
  expect(figures.roaming).toMatchObject({ gaps: 0, notInHistory: 0 });
  // If a client does not read during the grace time of five seconds, its connection is cut without a close
  // code.
  const { 1013: closed = 0, 1006: _cutOff, ...others } = figures.slowCloses;
  expect(closed).toBeGreaterThan(0);
  expect(others).toEqual({});
  // Only Linux reports the memory of another process.
  if (process.platform === "linux") expect(figures.processes).toHaveLength(EMBEDDED.processes);
  for (const { rss } of figures.processes) expect(rss.growthMb).toBeLessThan(GROWTH_MAX_MB);
});
