// Crashes before and after every commit of a whole conversation. Another process must finish it from the rows
// on disk (I1-I5).

import { describe, expect, test } from "vitest";
import type { DeliveryOutcome } from "../../../src/channels/channel.ts";
import { SEND_ANNOUNCE, type SendAnnounce } from "../../../src/core/shapes/run.ts";
import { type CrashPoint, crashAtEach, diesAtWork, temporaryFolder } from "../../kit/engine/engine.ts";
import { openFlowApp } from "../../kit/engine/flow-app.ts";
import { begin, checkChosenEnd, checkFinished, scenario } from "./story.ts";

const COMMITS_MAX = 200;

async function crashAt(point: CrashPoint, timeoutSeconds: number, announce?: SendAnnounce): Promise<boolean> {
  const dir = temporaryFolder();
  const story = scenario(timeoutSeconds, announce);
  const first = await openFlowApp({ ...story, dir, crash: point }).catch(() => undefined);
  // The process crashed during the start, before it could accept a request.
  if (first === undefined) return true;
  const told = await begin(first);
  if (!(await diesAtWork(first))) return false;
  const second = await openFlowApp({ ...story, dir });
  await second.quiet();
  await (announce === undefined ? checkFinished(second, told) : checkChosenEnd(second, told, announce));
  expect(
    [...new Set([...first.sent, ...second.sent].map((message) => message.deliveryId))].length,
  ).toBeLessThan(2);
  await second.engine.stop(0);
  await second.store.close();
  return true;
}

describe.each(["before", "after"] as const)("a crash %s any commit of a conversation", (when) => {
  test.each([30, 0])("I1-I5: every step happens once if the sender waits %i s", async (timeoutSeconds) => {
    const commits = await crashAtEach(when, COMMITS_MAX, (point) => crashAt(point, timeoutSeconds));
    expect(commits).toBeGreaterThan(11);
  });

  test.each(SEND_ANNOUNCE)(
    "RB3: the end that the sender chose happens once with announce %s",
    async (way) => {
      expect(await crashAtEach(when, COMMITS_MAX, (point) => crashAt(point, 0, way))).toBeGreaterThan(8);
    },
  );
});

test("I5: if a crash interrupts a delivery on a channel that cannot detect repetitions, the delivery fails as ambiguous", async () => {
  const dir = temporaryFolder();
  const left = Promise.withResolvers<void>();
  // The channel has shown the text, but the process crashes before it gets the result.
  const hangs = (): Promise<DeliveryOutcome> => {
    left.resolve();
    return new Promise(() => {});
  };
  const first = await openFlowApp({ ...scenario(30), dir, deduplicates: false, channel: hangs, dies: true });
  await begin(first);
  await left.promise;
  await first.store.close();
  const second = await openFlowApp({ ...scenario(30), dir, deduplicates: false });
  await second.quiet();
  const rows = await second.store.db.selectFrom("deliveries").select(["state", "code"]).execute();
  expect(rows).toEqual([{ state: "failed", code: "ambiguous" }]);
  expect(second.sent).toEqual([]);
});
