import { describe, expect, test } from "vitest";
import { endOf } from "../../kit/engine/engine.ts";
import { type FlowAppOptions, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { fakeWorld } from "../../kit/world.ts";
import { asks, MAIN, RESEARCH, resultOf, turns } from "./asking.ts";

describe("the result table of sessions_send", () => {
  test("a run that finishes in time returns ok with its final text", async () => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("2+2?"), [RESEARCH]: () => "four" } });
    const result = await resultOf(app);
    expect(result).toEqual({
      runId: expect.any(String),
      messageId: result.runId,
      receipt: "answered",
      status: "ok",
      reply: "four",
      sessionKey: RESEARCH,
      delivery: { status: "skipped", mode: "announce" },
    });
  });

  test("a send without a wait is accepted at once, and its result says how the reply will be delivered", async () => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("later", 0), [RESEARCH]: () => "REPLY_SKIP" } });
    await app.route(RESEARCH);
    const result = await resultOf(app);
    expect(result).toEqual({
      runId: expect.any(String),
      messageId: result.runId,
      receipt: "queued",
      status: "accepted",
      sessionKey: RESEARCH,
      delivery: { status: "pending", mode: "announce" },
    });
    await app.quiet();
  });

  const LIMITS = { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200 };
  const silent = { status: "ok", reply: "", delivery: { status: "skipped" } };
  interface Expected {
    readonly error?: string | RegExp;
    readonly [field: string]: unknown;
  }
  const fails: Play = () => {
    throw new Error("the model said 401");
  };

  test.each<[string, Play, NonNullable<FlowAppOptions["choices"]>, Expected, runs: number]>([
    ["a reply that is REPLY_SKIP", () => "REPLY_SKIP", turns(5), silent, 1],
    ["a reply that is ANNOUNCE_SKIP", () => " ANNOUNCE_SKIP\n", turns(5), silent, 1],
    ["an empty reply", () => "", turns(5), silent, 1],
    [
      "a failed run",
      fails,
      {},
      { receipt: "failed", status: "error", code: "run_failed", error: "the model said 401" },
      1,
    ],
    [
      "a denied target",
      () => "",
      { session: { sendPolicy: { rules: [], default: "deny" } } },
      { status: "forbidden", code: "send_denied", error: /send blocked by session policy/ },
      0,
    ],
    [
      "I8: a send beyond the hop limit",
      () => "",
      { session: { agentToAgent: { ...LIMITS, maxHops: 0 } } },
      { status: "forbidden", code: "chain_limit" },
      0,
    ],
  ])("%s has its result, and nothing is announced", async (_, play, choices, { error, ...result }, runs) => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("psst"), [RESEARCH]: play }, choices });
    await app.route(MAIN, RESEARCH);
    const told = await resultOf(app);
    expect(told).toMatchObject(result);
    if (error !== undefined) expect(told.error).toMatch(error);
    await app.quiet();
    expect(await app.runs(RESEARCH)).toHaveLength(runs);
    expect(await app.runs(MAIN)).toHaveLength(1);
    expect(app.sent).toEqual([]);
  });

  test("if the wait ends first, the result is `timeout` and the run continues; the run's outcome is appended once", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("slow?", 0.02),
        [RESEARCH]: async () => {
          await release.promise;
          return "slow answer";
        },
      },
    });
    const result = await resultOf(app);
    expect(result).toMatchObject({
      status: "timeout",
      state: "running",
      queuedBehind: 0,
      sessionKey: RESEARCH,
    });
    expect(result.error).toMatch(/Do not send it again.*sessions_history/);
    release.resolve();
    await app.quiet();
    const told = (await app.texts(MAIN)).filter((line) => line.includes("slow answer"));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("Notice from the gateway");
    // The notice is appended without a model call.
    expect((await app.runs(MAIN)).map((run) => run.kind)).toEqual(["turn", "append"]);
  });

  test("runTimeoutSeconds stops the recipient's run, counted from its start and not from its acceptance", async () => {
    const world = fakeWorld();
    const started: string[] = [];
    const app = await openFlowApp({
      world,
      plays: {
        [MAIN]: async (actor) => {
          if (actor.step !== "message") return "REPLY_SKIP";
          const limited = { runTimeoutSeconds: 5 };
          return JSON.stringify(await actor.send(RESEARCH, "count", 600, "call", limited));
        },
        [RESEARCH]: async ({ handle, input }) => {
          started.push(input);
          await new Promise((resolve) => handle.signal.addEventListener("abort", resolve, { once: true }));
          return "";
        },
      },
    });
    // Another run holds the lane for longer than the limit.
    const before = await app.tell(RESEARCH, "first");
    while (started.length < 1) await world.advance(1);
    const asking = await app.tell(MAIN, "go");
    while ((await app.runs(RESEARCH)).length < 2) await world.advance(1);
    await world.advance(60_000);
    await app.engine.abort({ sessionKey: RESEARCH, runId: before.runId });
    while (started.length < 2) await world.advance(1);
    await world.advance(4_000);
    expect((await app.runs(RESEARCH))[1]).toMatchObject({ state: "running", timeoutMs: 5_000 });
    await world.advance(2_000);
    const ended = await endOf(app.engine, asking.runId);
    expect(JSON.parse(ended.reply ?? "")).toMatchObject({
      status: "error",
      code: "run_timeout",
      error: "the run took longer than its limit of 5 s",
    });
  });

  test("if a call is repeated after its wait and the run have ended, the result does not say that the run continues", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: async (actor) => {
          const first = await actor.send(RESEARCH, "slow?", 0.02, "call");
          release.resolve();
          await expect.poll(async () => (await app.runs(RESEARCH))[0]?.state).toBe("ok");
          return JSON.stringify([first, await actor.send(RESEARCH, "slow?", 0.02, "call")]);
        },
        [RESEARCH]: async () => {
          await release.promise;
          return "slow answer";
        },
      },
    });
    const { runId } = await app.tell(MAIN, "go");
    await app.quiet();
    const [asked] = (await app.runs(MAIN)).filter((run) => run.runId === runId);
    const [first, again] = JSON.parse(asked?.reply ?? "[]");
    expect(first.error).toContain("its run continues (running)");
    expect(again).toMatchObject({ runId: first.runId, status: "timeout", receipt: "answered" });
    expect(again.error).toContain("its run has ended since");
  });

  test("if the wait ends while the run is queued, the result is `queued`, with the number of runs ahead", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("quick?", 0.02),
        [RESEARCH]: async (actor) => {
          if (actor.step === "message") await release.promise;
          return "done";
        },
      },
    });
    await app.tell(RESEARCH, "block");
    const result = await resultOf(app);
    expect(result).toMatchObject({ status: "timeout", state: "queued", queuedBehind: 1 });
    release.resolve();
    await app.quiet();
  });

  test("if the run fails after the wait has ended, a notice wakes the sender once", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) =>
          actor.handle.run.input.provenance?.kind === "notice" ? "I see" : asks("boom?", 0.02)(actor),
        [RESEARCH]: async () => {
          await release.promise;
          throw new Error("disk on fire");
        },
      },
    });
    expect(await resultOf(app)).toMatchObject({ status: "timeout" });
    release.resolve();
    await app.quiet();
    const lines = await app.texts(MAIN);
    expect(lines.filter((line) => line.includes("disk on fire"))).toHaveLength(1);
    expect(lines.at(-1)).toBe("assistant: I see");
  });

  test("an aborted target returns run_aborted to the waiting sender", async () => {
    const started = Promise.withResolvers<string>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("work"),
        [RESEARCH]: async (actor) => {
          started.resolve(actor.handle.run.runId);
          await new Promise((resolve) => actor.handle.signal.addEventListener("abort", resolve));
          return "";
        },
      },
    });
    const result = resultOf(app);
    await started.promise;
    await app.engine.abort({ sessionKey: RESEARCH });
    expect(await result).toMatchObject({ status: "error", code: "run_aborted" });
    await app.quiet();
  });

  test("I7: a session cannot wait for itself; a send to itself without a wait starts no reply turns", async () => {
    const results: unknown[] = [];
    const app = await openFlowApp({
      plays: {
        [MAIN]: async (actor) => {
          if (actor.step !== "message") return "note to self";
          results.push(await actor.send(MAIN, "me", 5, "wait"), await actor.send(MAIN, "me", 0, "forget"));
          return "";
        },
      },
      choices: turns(5),
    });
    await app.tell(MAIN, "go");
    await app.quiet();
    expect(results).toMatchObject([{ code: "wait_cycle", cycle: [MAIN, MAIN] }, { status: "accepted" }]);
    expect((await app.runs(MAIN)).map((run) => run.flow?.step)).toEqual([undefined, "round1"]);
  });

  test("an operator who sends for a session can wait without a run, and gets the same result", async () => {
    const app = await openFlowApp({ plays: { [RESEARCH]: () => "for the operator" } });
    expect(await app.send(MAIN, RESEARCH, "hi", 5)).toMatchObject({
      status: "ok",
      reply: "for the operator",
    });
    await app.quiet();
    expect(await app.texts(MAIN)).toEqual([]);
  });
});
