// The process dies before and after every commit of a whole conversation; what is on disk must finish it (I1-I5).

import { describe, expect, test } from "vitest";
import type { DeliveryOutcome } from "../../src/channels/channel.ts";
import { isEnded } from "../../src/core/run.ts";
import { type CrashPoint, crashAtEach, diesAtWork, temporaryFolder } from "../kit/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp, type Play } from "../kit/flow-app.ts";
import { MAIN, RESEARCH, turns } from "./asking.ts";

const COMMITS_MAX = 200;

type Scenario = Pick<FlowAppOptions, "plays" | "choices">;

const speaks =
  (name: string, timeoutSeconds: number): Play =>
  async (actor) => {
    if (actor.step === "message") {
      const result = await actor.send(RESEARCH, "the question", timeoutSeconds);
      return `${name} got ${result.status}`;
    }
    return actor.step === "announce" ? `${name} announces` : `${name} says ${actor.handle.run.flow?.turn}`;
  };

const scenario = (timeoutSeconds: number): Scenario => ({
  plays: { [MAIN]: speaks("main", timeoutSeconds), [RESEARCH]: speaks("research", 0) },
  choices: turns(2),
});

/** Tells main to ask; the person may be told of the crash instead of the acceptance. */
async function begin(app: FlowApp): Promise<"accepted" | "not_told"> {
  try {
    await app.route(MAIN, RESEARCH);
    await app.tell(MAIN, "go", { runId: "from-a-person" });
    return "accepted";
  } catch {
    return "not_told";
  }
}

async function steps(app: FlowApp, key: string): Promise<string[]> {
  const runs = await app.runs(key);
  return runs.map((run) => `${run.kind} ${run.flow?.step ?? "message"} ${run.flow?.turn ?? 0} ${run.state}`);
}

async function checkFinished(app: FlowApp, told: string): Promise<void> {
  const runs = [...(await app.runs(MAIN)), ...(await app.runs(RESEARCH))];
  for (const run of runs) expect(isEnded(run.state), `I2: run ${run.runId} is ${run.state}`).toBe(true);
  // The person was told nothing: the message may be lost; told `accepted`: it may not.
  if (told === "not_told" && runs.length === 0) return;
  expect(await steps(app, MAIN)).toEqual(["turn message 0 ok", "turn reply 2 ok"]);
  expect(await steps(app, RESEARCH)).toEqual(["turn round1 1 ok", "turn reply 3 ok", "turn announce 3 ok"]);
  // I4: every step is in the transcripts once.
  expect((await app.texts(MAIN)).slice(2)).toEqual(["user: research says 1", "assistant: main says 2"]);
  expect(await app.texts(RESEARCH)).toEqual([
    "user: the question",
    "assistant: research says 1",
    "user: main says 2",
    "assistant: research says 3",
    "user: Agent-to-agent announce step.",
    "assistant: research announces",
  ]);
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "text", "attempts"]).execute();
  expect(rows).toEqual([{ state: "sent", text: "research announces", attempts: expect.any(Number) }]);
  const usage = await app.store.db.selectFrom("ledger").select("run_id").execute();
  expect(usage).toHaveLength(runs.length);
}

async function crashAt(point: CrashPoint, timeoutSeconds: number): Promise<boolean> {
  const dir = temporaryFolder();
  const first = await openFlowApp({ ...scenario(timeoutSeconds), dir, crash: point }).catch(() => undefined);
  // Died while it opened: nothing was accepted yet.
  if (first === undefined) return true;
  const told = await begin(first);
  if (!(await diesAtWork(first))) return false;
  const second = await openFlowApp({ ...scenario(timeoutSeconds), dir });
  await second.quiet();
  await checkFinished(second, told);
  expect(
    [...new Set([...first.sent, ...second.sent].map((message) => message.deliveryId))].length,
  ).toBeLessThan(2);
  await second.engine.stop(0);
  await second.store.close();
  return true;
}

describe.each(["before", "after"] as const)("a crash %s any commit of a conversation", (when) => {
  test.each([30, 0])(
    "I1-I5: every step happens once, with the sender waiting %i s",
    async (timeoutSeconds) => {
      const commits = await crashAtEach(when, COMMITS_MAX, (point) => crashAt(point, timeoutSeconds));
      expect(commits).toBeGreaterThan(11);
    },
  );
});

test("I5: an attempt left open by a crash is failed as ambiguous where the channel cannot de-duplicate", async () => {
  const dir = temporaryFolder();
  const left = Promise.withResolvers<void>();
  // The text has left; the process dies before it hears what became of it.
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
