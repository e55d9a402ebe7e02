// Resources that gateway processes share: lanes, slots, waits, idempotency keys.

import { expect, test } from "vitest";
import { isEnded, type Run } from "../../src/core/shapes/run.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import type { Store } from "../../src/store/sql.ts";
import { type OpenGround, openCluster } from "../kit/engine/cluster.ts";
import { endOf, makeSessions } from "../kit/engine/engine.ts";
import type { Actor, Play } from "../kit/engine/flow-app.ts";
import { checkFlows, checkRuns, checkTranscripts } from "../kit/engine/flow-checks.ts";
import { sampleRun } from "../store/samples.ts";
import { CHATS, gate, join, MAIN, two } from "./cluster-stage.ts";

/** More lanes than one sweep offers. */
const LANES = 40;

/** Writes a queued run whose hint was lost: no process was told of it. */
async function queueSilently(store: Store, sessionKey: string, kind: Run["kind"]): Promise<string> {
  const session = { sessionKey, sessionId: `id-of-${sessionKey}` };
  const run = sampleRun({ ...session, runId: `silent ${kind}`, kind, acceptedAt: Date.now() });
  await store.transaction((tx) => insertRun(tx, run, run.acceptedAt));
  return run.runId;
}

export function sharingContract(openGround: OpenGround): void {
  test("I1, I3: messages that arrive at two processes run one at a time, in the order of acceptance", async () => {
    const began: number[] = [];
    let inside = 0;
    let most = 0;
    const play: Play = async ({ handle }) => {
      inside += 1;
      most = Math.max(most, inside);
      began.push(handle.run.laneSeq);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      return "";
    };
    const { a, b } = await two(openGround, { [MAIN]: play });
    const accepted: string[] = [];
    await Promise.all(
      [a, b].map(async ({ app }) => {
        for (let at = 0; at < 40; at += 1) accepted.push((await app.tell(MAIN, `message ${at}`)).runId);
      }),
    );
    await a.app.quiet();
    expect(most).toBe(1);
    expect(began).toEqual(began.toSorted((x, y) => x - y));
    expect(began).toHaveLength(80);
    await checkRuns(b.app.store.db, accepted);
  });

  test("I6: all processes share the slots: two processes together execute no more runs than one", async () => {
    let [inside, most, ran] = [0, 0, 0];
    const play: Play = async () => {
      ran += 1;
      inside += 1;
      most = Math.max(most, inside);
      for (let round = 0; round < 20; round += 1) await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      return "";
    };
    const keys = Array.from({ length: 12 }, (_, at) => `agent:main:chat:lane${at}`);
    const plays = Object.fromEntries(keys.map((key) => [key, play]));
    const { a, b } = await two(openGround, plays, { maxConcurrent: 3 });
    await makeSessions(a.app.store, ...keys);
    const tell = (key: string, at: number) => (at % 2 === 0 ? a : b).app.tell(key, "work");
    await Promise.all([...keys, ...keys].map(tell));
    await b.app.quiet();
    expect(ran).toBe(2 * keys.length);
    expect(most).toBeLessThanOrEqual(3);
  });

  test("I6: a session that waits for a slot soon gets one, even if many sessions wait in another process", async () => {
    const begun: string[] = [];
    const play: Play = async ({ handle }) => {
      begun.push(handle.run.sessionKey);
      for (let round = 0; round < 20; round += 1) await new Promise((resolve) => setImmediate(resolve));
      return "";
    };
    const keys = Array.from({ length: 40 }, (_, at) => `agent:main:chat:lane${at}`);
    const late = "agent:research:main";
    const plays = Object.fromEntries([...keys, late].map((key) => [key, play]));
    const { a, b } = await two(openGround, plays, { maxConcurrent: 1 });
    await makeSessions(a.app.store, ...keys);
    await Promise.all(keys.map((key) => a.app.tell(key, "work")));
    await b.app.tell(late, "work");
    const before = begun.length;
    await b.app.quiet();
    expect(begun).toHaveLength(keys.length + 1);
    expect(begun.indexOf(late) - before).toBeLessThan(keys.length / 2);
  });

  test("I6: a session whose hint was lost gets a slot, even if many sub-agents wait for a full pool", async () => {
    const held = gate();
    const keys = Array.from({ length: LANES }, (_, at) => `agent:main:subagent:${at}`);
    const work: Play = async () => {
      await held.pass();
      return "";
    };
    const cluster = await openCluster(openGround);
    const options = { maxConcurrent: 2, choices: { subagents: { maxConcurrent: 1 } } };
    const { app } = await join(cluster, Object.fromEntries(keys.map((key) => [key, work])), options);
    await makeSessions(app.store, ...keys);
    for (const key of keys) await app.tell(key, "work");
    await held.reached;
    const runId = await queueSilently(app.store, CHATS[0] ?? "", "turn");
    expect(await endOf(app.engine, runId)).toMatchObject({ state: "ok" });
    expect((await app.engine.load()).running).toBe(1);
    held.open();
    await app.quiet();
  });

  test("I6: if the deployment has one slot, all messages to many sessions in two processes are answered", async () => {
    const ask = async (actor: Actor): Promise<string> => {
      const answers = await Promise.all(CHATS.map((key) => actor.send(key, "a question", 60)));
      return answers.map((answer) => String(answer.status)).join();
    };
    const { a, b } = await two(openGround, { [MAIN]: ask }, { maxConcurrent: 1 });
    // Messages for the other process. They need the same slot.
    const others = CHATS.map((key) => b.app.tell(key, "more"));
    const run = await a.app.tell(MAIN, "go");
    expect(await endOf(b.app.engine, run.runId, 20_000)).toMatchObject({ reply: "ok,ok,ok" });
    await Promise.all(others);
    await b.app.quiet();
    await checkFlows(b.app.store.db);
  });

  test("I7: if two processes send in opposite directions at the same moment, exactly one send is refused", async () => {
    const [one = "", other = ""] = CHATS;
    const both = [gate(), gate()];
    const results: Record<string, unknown>[] = [];
    const playOf = (at: number, to: string): Play => {
      return async (actor) => {
        if (actor.input !== "start") return "an answer";
        await both[at]?.pass();
        results.push(await actor.send(to, "a question", 60));
        return "";
      };
    };
    const plays = { [one]: playOf(0, other), [other]: playOf(1, one) };
    for (let round = 0; round < 8; round += 1) {
      results.length = 0;
      both.splice(0, 2, gate(), gate());
      const { a, b } = await two(openGround, plays);
      const runs = [await a.app.tell(one, "start"), await b.app.tell(other, "start")];
      await Promise.all(both.map((one) => one.reached));
      for (const one of both) one.open();
      for (const run of runs) await endOf(a.app.engine, run.runId);
      expect(results.map((result) => result.code ?? result.status).sort(), `round ${round}`).toEqual([
        "ok",
        "wait_cycle",
      ]);
      await a.app.quiet();
      await checkTranscripts(b.app.store.db);
      await a.stop();
      await b.stop();
    }
  });

  test("two processes that accept the same idempotency key at the same moment create one run", async () => {
    const { a, b } = await two(openGround, {});
    for (let round = 0; round < 10; round += 1) {
      const runId = `the-same-${round}`;
      const told = await Promise.all([a, b].map(({ app }) => app.tell(MAIN, "once", { runId })));
      expect(new Set(told.map((run) => run.laneSeq)).size).toBe(1);
    }
    await a.app.quiet();
    expect((await a.app.runs(MAIN)).every((run) => isEnded(run.state))).toBe(true);
    expect(await a.app.runs(MAIN)).toHaveLength(10);
  });
}
