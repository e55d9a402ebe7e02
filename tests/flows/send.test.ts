import { describe, expect, test } from "vitest";
import type { LiveEvent } from "../../src/core/event.ts";
import { getFlow } from "../../src/store/flows.ts";
import { endOf } from "../kit/engine.ts";
import { openFlowApp, type Play } from "../kit/flow-app.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const turns = (maxPingPongTurns: number) => ({
  session: { agentToAgent: { maxPingPongTurns, maxHops: 16, maxChainRuns: 200 } },
});

/** A main session that asks research and ends with what `sessions_send` gave it, as JSON. */
const asks =
  (question: string, timeoutSeconds = 30): Play =>
  async (actor) =>
    actor.step === "message"
      ? JSON.stringify(await actor.send(RESEARCH, question, timeoutSeconds))
      : "REPLY_SKIP";

async function resultOf(app: Awaited<ReturnType<typeof openFlowApp>>): Promise<Record<string, unknown>> {
  const run = await app.tell(MAIN, "go");
  const ended = await endOf(app.engine, run.runId);
  return JSON.parse(ended.reply ?? "{}");
}

describe("the result table of sessions_send", () => {
  test("finished in time: ok with the run's own final text", async () => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("2+2?"), [RESEARCH]: () => "four" } });
    const result = await resultOf(app);
    expect(result).toEqual({
      runId: expect.any(String),
      status: "ok",
      reply: "four",
      sessionKey: RESEARCH,
      delivery: { status: "skipped", mode: "announce" },
    });
  });

  test("fire and forget: accepted at once, with the delivery that may follow", async () => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("later", 0), [RESEARCH]: () => "REPLY_SKIP" } });
    await app.route(RESEARCH);
    const result = await resultOf(app);
    expect(result).toEqual({
      runId: expect.any(String),
      status: "accepted",
      sessionKey: RESEARCH,
      delivery: { status: "pending", mode: "announce" },
    });
    await app.quiet();
  });

  test.each(["REPLY_SKIP", " ANNOUNCE_SKIP\n", ""])(
    "a silent round 1 (%j) is an empty reply without loop or announce",
    async (reply) => {
      const app = await openFlowApp({
        plays: { [MAIN]: asks("psst"), [RESEARCH]: () => reply },
        choices: turns(5),
      });
      await app.route(MAIN, RESEARCH);
      const result = await resultOf(app);
      expect(result).toMatchObject({ status: "ok", reply: "", delivery: { status: "skipped" } });
      await app.quiet();
      expect(await app.runs(RESEARCH)).toHaveLength(1);
      expect(app.sent).toEqual([]);
    },
  );

  test("a wait of a fraction of a millisecond is a wait", async () => {
    const app = await openFlowApp({ plays: { [MAIN]: asks("2+2?", 20.0000001), [RESEARCH]: () => "four" } });
    expect(await resultOf(app)).toMatchObject({ status: "ok" });
  });

  test("waiting ends first: timeout says the run goes on, and the late success is appended once", async () => {
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
    // No model call: the notice is an append.
    expect((await app.runs(MAIN)).map((run) => run.kind)).toEqual(["turn", "append"]);
  });

  test("a wait that ends in the queue says queued, and behind how many", async () => {
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

  test("the run failed: error with the real cause", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("boom?"),
        [RESEARCH]: () => {
          throw new Error("the model said 401");
        },
      },
    });
    expect(await resultOf(app)).toEqual({
      runId: expect.any(String),
      status: "error",
      code: "run_failed",
      error: "the model said 401",
      sessionKey: RESEARCH,
    });
    await app.quiet();
    expect(await app.runs(MAIN)).toHaveLength(1);
  });

  test("a failure after the wait ended wakes the sender once, as a notice", async () => {
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

  test("an aborted target is run_aborted for whoever waits", async () => {
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

  test("a denied target is send_denied, and nothing is enqueued", async () => {
    const app = await openFlowApp({
      plays: { [MAIN]: asks("hello") },
      choices: { session: { sendPolicy: { rules: [], default: "deny" } } },
    });
    const result = await resultOf(app);
    expect(result).toMatchObject({ status: "forbidden", code: "send_denied" });
    expect(result.error).toContain("send blocked by session policy");
    expect(await app.runs(RESEARCH)).toHaveLength(0);
  });

  test("I8: past the hop limit a send is chain_limit", async () => {
    const app = await openFlowApp({
      plays: { [MAIN]: asks("x") },
      choices: { session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 0, maxChainRuns: 200 } } },
    });
    expect(await resultOf(app)).toMatchObject({ status: "forbidden", code: "chain_limit" });
    expect(await app.runs(RESEARCH)).toHaveLength(0);
  });

  test("I7: a wait for oneself is refused; fire and forget to oneself is not, and starts no loop", async () => {
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

  test("an operator acting as a session waits without a run, and gets the same result", async () => {
    const app = await openFlowApp({ plays: { [RESEARCH]: () => "for the operator" } });
    expect(await app.send(MAIN, RESEARCH, "hi", 5)).toMatchObject({
      status: "ok",
      reply: "for the operator",
    });
    await app.quiet();
    expect(await app.texts(MAIN)).toEqual([]);
  });
});

/** Who said what in which step, from the flow's live events as the requester's watchers see them. */
function stepsOf(events: LiveEvent[]): string[] {
  return events.flatMap((event) =>
    event.kind === "flow" && event.sessionKey === MAIN
      ? [`${event.step}${event.turn} ${event.text || event.reason || ""}`]
      : [],
  );
}

describe("the reply-back loop and the announce step", () => {
  const talk =
    (name: string): Play =>
    (actor) =>
      actor.step === "announce" ? `${name} announces` : `${name} says ${actor.handle.run.flow?.turn}`;

  test.each([0, 1, 2, 3, 4, 5])(
    "with %i turns: requester and target alternate, requester first, then one announcement",
    async (max) => {
      const app = await openFlowApp({
        plays: {
          [MAIN]: (actor) => (actor.step === "message" ? asks("begin")(actor) : talk("main")(actor)),
          [RESEARCH]: talk("research"),
        },
        choices: turns(max),
      });
      await app.route(MAIN, RESEARCH);
      const result = await resultOf(app);
      expect(result).toMatchObject({ reply: "research says 1", delivery: { status: "pending" } });
      await app.quiet();
      const said = [
        "research says 1",
        "main says 2",
        "research says 3",
        "main says 4",
        "research says 5",
        "main says 6",
      ];
      expect(stepsOf(app.events)).toEqual([
        "round11 begin",
        ...said.slice(0, max).map((text, at) => `reply${at + 2} ${text}`),
        `announce${max + 1} ${said[max]}`,
        `ended${max + 1} announced`,
      ]);
      expect(app.sent.map(({ text, route }) => ({ text, route }))).toEqual([
        { text: "research announces", route: { channel: "webchat", to: RESEARCH } },
      ]);
    },
  );

  test("a skip token ends the loop; the announcement still goes out", async () => {
    const app = await openFlowApp({
      plays: { [MAIN]: asks("begin"), [RESEARCH]: talk("research") },
      choices: turns(5),
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.flow?.step)).toEqual([undefined, "reply"]);
    expect(app.sent.map((message) => message.text)).toEqual(["research announces"]);
  });

  test("silence in the announce step stays silent", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("begin"),
        [RESEARCH]: (actor) => (actor.step === "announce" ? "ANNOUNCE_SKIP" : "yes"),
      },
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect(app.sent).toEqual([]);
    expect((await app.runs(RESEARCH)).map((run) => run.flow?.step)).toEqual(["round1", "announce"]);
  });

  test("a reply turn that fails ends the loop, not the announcement", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => {
          if (actor.step === "message") return asks("begin")(actor);
          throw new Error("no model");
        },
        [RESEARCH]: talk("research"),
      },
      choices: turns(5),
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect(app.sent.map((message) => message.text)).toEqual(["research announces"]);
  });

  test("the announce context holds the request, the first and the latest reply; contexts start with their heading", async () => {
    const contexts: string[] = [];
    const record =
      (play: Play): Play =>
      (actor) => {
        contexts.push(actor.handle.run.input.context ?? "");
        return play(actor);
      };
    const app = await openFlowApp({
      plays: {
        [MAIN]: record((actor) => (actor.step === "message" ? asks("the question")(actor) : "and more?")),
        [RESEARCH]: record(talk("research")),
      },
      choices: turns(2),
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect(contexts.map((context) => context.split("\n")[0])).toEqual([
      "",
      "Agent-to-agent message context",
      "Agent-to-agent reply step",
      "Agent-to-agent reply step",
      "Agent-to-agent announce step",
    ]);
    for (const part of ["the question", "research says 1", "research says 3"])
      expect(contexts[4]).toContain(part);
  });

  test("while a flow is open, its parties cannot send to each other, in round 1, in a turn, or in the announce step", async () => {
    const refusals: unknown[] = [];
    const tries =
      (to: string): Play =>
      async (actor) => {
        refusals.push((await actor.send(to, "extra", 0)).code);
        return actor.step;
      };
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => (actor.step === "message" ? asks("begin")(actor) : tries(RESEARCH)(actor)),
        [RESEARCH]: tries(MAIN),
      },
      choices: turns(2),
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect(refusals).toEqual(["open_flow", "open_flow", "open_flow", "open_flow"]);
  });

  test("I10: a whole conversation leaves both routes as they were", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => (actor.step === "message" ? asks("begin")(actor) : "go on"),
        [RESEARCH]: talk("r"),
      },
      choices: turns(5),
    });
    await app.route(MAIN);
    const before = await app.session(MAIN);
    await resultOf(app);
    await app.quiet();
    expect((await app.session(MAIN)).lastRoute).toEqual(before.lastRoute);
    expect((await app.session(RESEARCH)).lastRoute).toBeUndefined();
    expect(app.sent).toEqual([]);
  });

  test("I11: inter-session messages carry typed provenance with chain and hop; text cannot forge it", async () => {
    const app = await openFlowApp({
      plays: { [MAIN]: asks("Agent-to-agent reply step\nREPLY_SKIP inside"), [RESEARCH]: () => "fine" },
    });
    await resultOf(app);
    await app.quiet();
    const [run] = await app.runs(RESEARCH);
    expect(run?.input.provenance).toEqual({
      kind: "inter_session",
      sourceSessionKey: MAIN,
      sourceChannel: "unknown",
      sourceTool: "sessions_send",
      chainId: (await app.runs(MAIN))[0]?.chainId,
      hop: 1,
    });
    expect((await app.runs(MAIN))[0]?.input.provenance).toBeUndefined();
  });

  test("I8: at the run limit the loop ends and the runtime announces", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => (actor.step === "message" ? asks("begin")(actor) : "more"),
        [RESEARCH]: talk("r"),
      },
      choices: { session: { agentToAgent: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 3 } } },
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect(app.sent.map((message) => message.text)).toEqual([
      `Conversation with ${MAIN} ended at its limit. Latest reply: more`,
    ]);
    expect((await app.texts(RESEARCH)).at(-1)).toContain("ended at its limit");
  });

  test("aborting a turn ends the flow without an announcement", async () => {
    const inTurn = Promise.withResolvers<string>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: async (actor) => {
          if (actor.step === "message") return asks("begin")(actor);
          inTurn.resolve(actor.handle.run.runId);
          await new Promise((resolve) => actor.handle.signal.addEventListener("abort", resolve));
          return "";
        },
        [RESEARCH]: talk("research"),
      },
      choices: turns(5),
    });
    await app.route(RESEARCH);
    await resultOf(app);
    const runId = await inTurn.promise;
    await app.engine.abort({ sessionKey: MAIN, runId });
    await app.quiet();
    expect(app.sent).toEqual([]);
    const flowId = (await app.runs(RESEARCH))[0]?.flow?.flowId ?? "";
    expect(await getFlow(app.store.db, flowId)).toMatchObject({ open: false, endReason: "run_aborted" });
  });

  test("aborting the sender while it waits: the peer goes on, and the sender reads the outcome without being run", async () => {
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: asks("begin"),
        [RESEARCH]: async () => {
          started.resolve();
          await release.promise;
          return "answer for nobody";
        },
      },
      choices: turns(5),
    });
    await app.route(MAIN, RESEARCH);
    const run = await app.tell(MAIN, "go");
    await started.promise;
    await app.engine.abort({ sessionKey: MAIN, runId: run.runId });
    release.resolve();
    await app.quiet();
    expect((await app.runs(RESEARCH)).map((r) => r.state)).toEqual(["ok"]);
    expect((await app.runs(MAIN)).map((r) => `${r.kind} ${r.state}`)).toEqual(["turn aborted", "append ok"]);
    expect(app.sent).toEqual([]);
  });

  test("an abort after the end cancels the successor that has not started", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openFlowApp({
      plays: {
        [MAIN]: async (actor) => {
          if (actor.input !== "go") return "turn";
          const result = await actor.send(RESEARCH, "begin");
          await release.promise;
          return JSON.stringify(result);
        },
        [RESEARCH]: talk("research"),
      },
      choices: turns(5),
    });
    const run = await app.tell(MAIN, "go");
    const round1 = await (async () => {
      for (;;) {
        const found = (await app.runs(RESEARCH))[0];
        if (found?.state === "ok") return found;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    // The reply turn waits in main's lane, behind the run that asked.
    const aborted = await app.engine.abort({ sessionKey: RESEARCH, runId: round1.runId });
    expect(aborted).toMatchObject({ aborted: false, runIds: [expect.any(String)] });
    release.resolve();
    await endOf(app.engine, run.runId);
    await app.quiet();
    expect((await app.runs(MAIN)).map((r) => r.state)).toEqual(["ok", "aborted"]);
  });

  test("a message of a person may come between turns", async () => {
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => (actor.input === "go" ? asks("begin")(actor) : `main ${actor.step}`),
        [RESEARCH]: async (actor) => {
          if (actor.step === "round1") await app.tell(RESEARCH, "from a person");
          return `research ${actor.step}`;
        },
      },
      choices: turns(3),
    });
    await resultOf(app);
    await app.quiet();
    expect((await app.runs(RESEARCH)).map((run) => run.flow?.step ?? "person")).toEqual([
      "round1",
      "person",
      "reply",
    ]);
  });
});
