// A thousand clients and two hundred sessions at work at once, for a minute. `npm run load` does it for as long as
// one likes and prints the figures.
//
// Memory: left to itself the runtime lets its heap grow to four times what is in use before it collects, so that
// for minutes the size of a process says nothing of what it keeps. Here it may keep HEAP_MB; it would end if it
// needed more. Besides, after the warm-up the lowest size of the last third of the samples lies at most
// GROWTH_MAX_MB above the lowest of the first: room for the two page caches of the store (16 MB each), which fill
// up once, and for where in its rounds the collector happens to be.

import { expect, test } from "vitest";
import { EMBEDDED } from "../kit/grounds.ts";
import { runLoad } from "../kit/load-run.ts";

const SECONDS = 60;
const CLIENTS = 1_000;
const SESSIONS = 200;
const PIECE_MS = 1_000;
const HEAP_MB = 192;
const GROWTH_MAX_MB = 80;

test("under load no reader misses an event, a slow one is closed, and memory stays flat", async () => {
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
  // One that does not look within the five seconds of grace is cut off and never hears why.
  const { 1013: closed = 0, 1006: _cutOff, ...others } = figures.slowCloses;
  expect(closed).toBeGreaterThan(0);
  expect(others).toEqual({});
  // Only Linux tells how large a process of somebody's is.
  if (process.platform === "linux") expect(figures.processes).toHaveLength(EMBEDDED.processes);
  for (const { rss } of figures.processes) expect(rss.growthMb).toBeLessThan(GROWTH_MAX_MB);
}, 240_000);
