// The sequence numbers of a run's events, in whatever order the events are reported.

import { expect, test } from "vitest";
import { RunTracks } from "../../../src/gateway/socket/run-tracks.ts";

test("RT1: if a run ends in the queue, the numbers of its flow events before and after the end increase", () => {
  const tracks = new RunTracks(() => 0, false);
  const before = tracks.next("run");
  const ended = tracks.next("run");
  tracks.end("run");
  expect([before, ended, tracks.next("run")]).toEqual([1, 2, 3]);
});

test("RT1: numbers continue after the end of a run that had begun", () => {
  const tracks = new RunTracks(() => 0, false);
  tracks.begin({ runId: "run", startedAt: 0 });
  const begun = [tracks.next("run"), tracks.next("run")];
  tracks.end("run");
  expect([...begun, tracks.next("run")]).toEqual([1, 2, 3]);
});

test("RT1: numbers keep increasing when another gateway on the same store continues the run", () => {
  let now = 1_000;
  const [one, other] = [new RunTracks(() => now, true), new RunTracks(() => now, true)];
  one.begin({ runId: "run", startedAt: now });
  const told = [one.next("run"), one.next("run"), one.next("run")];
  now += 5;
  // This process began to publish events in the middle of the run.
  told.push(other.next("run"), other.next("run"));
  expect(told).toEqual(told.toSorted((a, b) => a - b));
  expect(new Set(told).size).toBe(told.length);
});
