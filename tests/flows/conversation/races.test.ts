// Conversations in which one party is stopped before the end.

import { expect, test } from "vitest";
import { resetSession } from "../../../src/flows/session/lifecycle.ts";
import { getFlow } from "../../../src/store/queries/chains/flows.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type FlowApp, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { until } from "../../kit/until.ts";
import { agentSettings } from "../../tools/app.ts";
import { asks, MAIN, RESEARCH, turns } from "./asking.ts";

/** Returns a turn that asks research once, and ends when the test releases it. */
function asksAndStays(release: Promise<void>, timeoutSeconds: number): Play {
  return async (actor) => {
    if (actor.step !== "message") return "a turn";
    await actor.send(RESEARCH, "the question", timeoutSeconds);
    await Promise.race([
      release,
      new Promise((resolve) => actor.handle.signal.addEventListener("abort", resolve, { once: true })),
    ]);
    return "done";
  };
}

test.each([0, 30])("I1: an aborted run sends nothing (wait of %i s)", async (seconds) => {
  const started = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<unknown>();
  const app = await openFlowApp({
    plays: {
      [MAIN]: async (actor) => {
        started.resolve();
        await go.promise;
        const result = actor.send(RESEARCH, "too late", seconds);
        sent.resolve(await result.catch((error: unknown) => error));
        return "";
      },
    },
  });
  const run = await app.tell(MAIN, "go");
  await started.promise;
  await app.engine.abort({ sessionKey: MAIN, runId: run.runId });
  go.resolve();
  expect(await sent.promise).toMatchObject({ code: "run_aborted" });
  await app.quiet();
  expect(await app.runs(RESEARCH)).toEqual([]);
});

test("if the requester's run is aborted, a reply turn that has not started is cancelled, and the conversation has the reason", async () => {
  const app = await openFlowApp({
    plays: { [MAIN]: asksAndStays(new Promise(() => {}), 30), [RESEARCH]: () => "an answer" },
    choices: turns(5),
  });
  await app.route(MAIN, RESEARCH);
  const run = await app.tell(MAIN, "go");
  await until(async () => (await app.runs(MAIN)).length >= 2);
  const aborted = await app.engine.abort({ sessionKey: MAIN, runId: run.runId });
  expect(aborted).toEqual({ aborted: true, runIds: [run.runId] });
  await app.quiet();
  expect((await app.runs(MAIN)).map((one) => one.state)).toEqual(["aborted", "aborted"]);
  expect(app.sent).toEqual([]);
  const flowId = (await app.runs(RESEARCH))[0]?.flow?.flowId ?? "";
  expect(await getFlow(app.store.db, flowId)).toMatchObject({ open: false, endReason: "run_aborted" });
  const ends = app.events.filter((event) => event.kind === "flow" && event.step === "ended");
  expect(ends).toHaveLength(2);
});

test("aborting a session returns every run that ended, including those that were cancelled because another run ended", async () => {
  const app = await openFlowApp({
    plays: { [MAIN]: asksAndStays(new Promise(() => {}), 30), [RESEARCH]: () => "an answer" },
    choices: turns(5),
  });
  await app.tell(MAIN, "go");
  await until(async () => (await app.runs(MAIN)).length >= 2);
  const runIds = (await app.runs(MAIN)).map((one) => one.runId);
  expect(await app.engine.abort({ sessionKey: MAIN })).toEqual({ aborted: true, runIds });
  await app.quiet();
});

test("when a flow is over, its parties may send to each other again, even in a run that belongs to the flow", async () => {
  const started = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const codes: unknown[] = [];
  const app = await openFlowApp({
    plays: {
      [MAIN]: asksAndStays(new Promise(() => {}), 0),
      [RESEARCH]: async (actor) => {
        if (actor.step !== "round1") return "";
        codes.push((await actor.send(MAIN, "early", 0, "early")).code);
        started.resolve();
        await go.promise;
        codes.push((await actor.send(MAIN, "a word of my own", 0, "late")).status);
        return "";
      },
    },
  });
  const run = await app.tell(MAIN, "go");
  await started.promise;
  await app.engine.abort({ sessionKey: MAIN, runId: run.runId });
  go.resolve();
  await app.quiet();
  expect(codes).toEqual(["open_flow", "accepted"]);
});

test("if the send policy denies a reply turn, the conversation ends, but the announcement is still made", async () => {
  const app = await openFlowApp({
    plays: {
      [MAIN]: asksAndStays(Promise.resolve(), 30),
      [RESEARCH]: (actor) => (actor.step === "announce" ? "announced" : "an answer"),
    },
    choices: turns(5),
  });
  await app.route(RESEARCH);
  await app.store.transaction((tx) => updateSession(tx, MAIN, { sendPolicy: "deny" }));
  await app.tell(MAIN, "go");
  await app.quiet();
  expect((await app.runs(MAIN)).map((run) => run.flow?.step)).toEqual([undefined]);
  expect(app.sent.map((message) => message.text)).toEqual(["announced"]);
});

test("I14: a notice about another session contains no secret", async () => {
  const app = await openFlowApp({
    plays: {
      [MAIN]: asksAndStays(Promise.resolve(), 0),
      [RESEARCH]: () => {
        throw new Error("401: the key sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD is wrong");
      },
    },
  });
  await app.tell(MAIN, "go");
  await app.quiet();
  const notice = (await app.texts(MAIN)).find((line) => line.includes("Notice"));
  expect(notice).toContain("401");
  expect(notice).not.toContain("sk-abcdefghijklmnopqrstuvwxyz");
});

test.each<[carried: string, answer: Play, told: string]>([
  ["a reply", () => "an answer", "an answer"],
  ["a notice", () => Promise.reject(new Error("no")), 'its run ended with status "error"'],
])(
  "RB2: if the daily budget of the sender's agent refuses the turn for %s, its text is in the transcript",
  async (...[, answer, told]) => {
    const budget = { dailyTokens: 1 };
    const app = await openFlowApp({
      plays: { [MAIN]: asks("the question", 0), [RESEARCH]: answer },
      choices: { ...turns(5), agents: [{ ...agentSettings("main"), budget }, agentSettings("research")] },
    });
    await app.tell(MAIN, "go");
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.code)).toEqual([undefined, "budget_used"]);
    expect((await app.texts(MAIN)).filter((line) => line.includes(told))).toHaveLength(1);
  },
);

test.each<[what: string, woken: boolean, stop: (app: FlowApp, runId: string) => Promise<unknown>]>([
  ["the target was reset", true, async (app) => resetSession(app, await app.session(RESEARCH))],
  ["the target's runs were aborted", true, (app) => app.engine.abort({ sessionKey: RESEARCH })],
  ["the sender's run was aborted", false, (app, runId) => app.engine.abort({ sessionKey: MAIN, runId })],
])("RB2: if %s, a failed message wakes its sender: %s", async (_, woken, stop) => {
  const hold = Promise.withResolvers<never>();
  const sent = Promise.withResolvers<void>();
  const app = await openFlowApp({
    plays: {
      [MAIN]: async (actor) => {
        if (actor.step === "message" && actor.input === "go") await actor.send(RESEARCH, "work", 0);
        sent.resolve();
        return hold.promise.catch(() => "told");
      },
      [RESEARCH]: () => hold.promise,
    },
  });
  const run = await app.tell(MAIN, "go");
  await sent.promise;
  await stop(app, run.runId);
  hold.reject(new Error("no"));
  await app.quiet();
  const notices = (await app.runs(MAIN)).filter(({ input }) => input.provenance?.kind === "notice");
  expect(notices.map(({ kind }) => kind)).toEqual([woken ? "turn" : "append"]);
});
