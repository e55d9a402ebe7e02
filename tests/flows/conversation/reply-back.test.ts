import { describe, expect, test } from "vitest";
import { ok } from "../../../src/core/shapes/errors.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { SEND_ANNOUNCE } from "../../../src/core/shapes/run.ts";
import { resetSession } from "../../../src/flows/session/lifecycle.ts";
import { getFlow } from "../../../src/store/queries/chains/flows.ts";
import { assistantText, endOf } from "../../kit/engine/engine.ts";
import { openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { until } from "../../kit/until.ts";
import { asks, MAIN, RESEARCH, resultOf, turns } from "./asking.ts";
import { begin, checkChosenEnd, scenario } from "./story.ts";

/**
 * Returns the steps and their authors, from the live events about the flow that the requester's session
 * gets.
 */
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
    "with a limit of %i reply turns, requester and target alternate, requester first, then one announcement",
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

  interface Case {
    readonly main?: Play;
    readonly research?: Play;
    readonly session?: { maxPingPongTurns: number; maxHops: number; maxChainRuns: number };
    /** Changes tools.* during the first reply turn. */
    readonly tools?: object;
    readonly steps?: readonly string[];
    readonly sent?: readonly string[];
  }
  const fails: Play = () => {
    throw new Error("no model");
  };

  test.each<[string, Case]>([
    ["main answers with a skip token", { main: () => "REPLY_SKIP" }],
    ["a reply turn fails", { main: fails }],
    ["I9: messages are no longer enabled", { tools: { agentToAgent: { enabled: false, allow: [] } } }],
    ["I9: their list loses the target", { tools: { agentToAgent: { enabled: true, allow: ["main"] } } }],
    ["I9: main no longer sees other agents", { tools: { visibility: "agent" } }],
    [
      "research chooses not to announce",
      {
        main: () => "REPLY_SKIP",
        research: (actor) => (actor.step === "announce" ? "ANNOUNCE_SKIP" : "yes"),
        sent: [],
      },
    ],
    [
      "I8: the chain reaches its run limit, and the runtime announces",
      {
        session: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 3 },
        steps: ["round1"],
        sent: [`Conversation with ${MAIN} ended at its limit. Latest reply: more`],
      },
    ],
  ])("the reply turns end after one turn if %s", async (_, own) => {
    const { session, steps = ["round1", "announce"], sent = ["research announces"] } = own;
    const app = await openFlowApp({
      plays: {
        [MAIN]: (actor) => {
          if (actor.step === "message") return asks("begin")(actor);
          Object.assign(app.settings.tools, own.tools);
          return own.main?.(actor) ?? "more";
        },
        [RESEARCH]: own.research ?? talk("research"),
      },
      choices: session === undefined ? turns(5) : { session: { agentToAgent: session } },
    });
    await app.route(RESEARCH);
    await resultOf(app);
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.flow?.step)).toEqual([undefined, "reply"]);
    expect((await app.runs(RESEARCH)).flatMap((run) => run.flow?.step ?? [])).toEqual(steps);
    expect(app.sent.map((message) => message.text)).toEqual(sent);
  });

  test("the parties of an open flow cannot send to each other, in the first answer, a reply turn, or the announce step", async () => {
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

  test("I10: a whole conversation leaves both sessions' routes unchanged", async () => {
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

  test("I11: messages between sessions have typed provenance, which no text can forge", async () => {
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

  test("aborting a reply turn ends the flow without an announcement", async () => {
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

  test("if a waiting sender is aborted, the other session continues, and its outcome is appended without a new turn", async () => {
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

  test("aborting a run that has ended cancels its successor, unless the successor has started", async () => {
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
    const round1 = await until(async () => {
      const [found] = await app.runs(RESEARCH);
      return found?.state === "ok" && found;
    });
    // The reply turn is queued in main's lane, behind the requester's run.
    const aborted = await app.engine.abort({ sessionKey: RESEARCH, runId: round1.runId });
    expect(aborted).toMatchObject({ aborted: false, runIds: [expect.any(String)] });
    release.resolve();
    await endOf(app.engine, run.runId);
    await app.quiet();
    expect((await app.runs(MAIN)).map((r) => r.state)).toEqual(["ok", "aborted"]);
  });
});

describe("RB3: the end of a conversation that its sender chose", () => {
  test.each(SEND_ANNOUNCE)("with announce %s", async (way) => {
    const app = await openFlowApp(scenario(0, way));
    const told = await begin(app);
    await app.quiet();
    await checkChosenEnd(app, told, way);
  });

  test("a sender that waits gets the reply, and the result says whether an announcement follows", async () => {
    for (const announce of SEND_ANNOUNCE) {
      const play: Play = async (actor) =>
        actor.step === "message"
          ? JSON.stringify(await actor.send(RESEARCH, "q", 30, "call", { announce }))
          : "REPLY_SKIP";
      const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: () => "four" }, choices: turns(0) });
      await app.route(MAIN, RESEARCH);
      const status = announce === "channel" ? "pending" : "skipped";
      expect(await resultOf(app)).toMatchObject({ reply: "four", delivery: { status, mode: "announce" } });
      await app.quiet();
      expect(app.sent).toHaveLength(announce === "channel" ? 1 : 0);
      expect(await app.runs(MAIN)).toHaveLength(1);
    }
  });

  test("with announce channel, the sender gets the reply if nobody can read it, and learns of a failed announcement", async () => {
    const play: Play = async (actor) =>
      actor.step === "message" && actor.input === "go"
        ? String((await actor.send(RESEARCH, "q", 0, "call", { announce: "channel" })).status)
        : "read it";
    const research: Play = (actor) => {
      if (actor.step === "announce") throw new Error("no model");
      return "four";
    };
    const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: research } });
    const notices = async () =>
      (await app.texts(MAIN)).filter((text) => text.includes("Notice from the gateway"));
    await resultOf(app).catch(() => undefined);
    await app.quiet();
    expect(await notices()).toEqual([expect.stringContaining("it was answered:\n\n| four")]);
    await app.route(RESEARCH);
    await app.tell(MAIN, "go");
    await app.quiet();
    expect(await notices()).toEqual([
      expect.anything(),
      expect.stringContaining("it was answered, but not announced (run_failed):\n\n| four"),
    ]);
  });

  test("with announce channel, a sender that waited for the reply is not told of a failed announcement", async () => {
    const play: Play = async (actor) =>
      actor.step === "message"
        ? JSON.stringify(await actor.send(RESEARCH, "q", 30, "call", { announce: "channel" }))
        : "read it";
    const research: Play = (actor) => {
      if (actor.step === "announce") throw new Error("no model");
      return "four";
    };
    const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: research } });
    await app.route(RESEARCH);
    expect(await resultOf(app)).toMatchObject({ reply: "four" });
    await app.quiet();
    expect(await app.runs(RESEARCH)).toMatchObject([{ state: "ok" }, { state: "error" }]);
    expect(await app.runs(MAIN)).toHaveLength(1);
  });

  test("with announce channel, a reset of the target before the announcement gives the sender the reply", async () => {
    let announces = false;
    const play: Play = async (actor) =>
      String((await actor.send(RESEARCH, "q", 0, "call", { announce: "channel" })).status);
    const research: Play = async ({ step, handle }) => {
      if (step !== "announce") return "four";
      announces = true;
      await new Promise((stop) => handle.signal.addEventListener("abort", stop));
      return "";
    };
    const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: research } });
    await app.route(RESEARCH);
    await app.tell(MAIN, "go");
    await until(async () => announces);
    const facts = {
      engine: app.engine,
      settings: app.settings,
      checkModel: ok,
      dropTranscript: async () => {},
    };
    await resetSession(facts, await app.session(RESEARCH));
    await app.quiet();
    const notices = (await app.texts(MAIN)).filter((text) => text.includes("Notice from the gateway"));
    expect(notices).toEqual([
      expect.stringContaining("it was answered, but not announced (session_reset):\n\n| four"),
    ]);
  });

  test("with announce parent, the notice names the message, and a failed last turn causes none", async () => {
    for (const fails of [false, true]) {
      const play: Play = async (actor) =>
        actor.input === "go"
          ? String((await actor.send(RESEARCH, "q", 0, "call", { announce: "parent" })).status)
          : "main says";
      const research: Play = async ({ step, handle }) => {
        if (step !== "reply") return "first";
        if (!fails) return "last";
        await handle.append(assistantText("half", "half an answer"));
        throw new Error("no model");
      };
      const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: research }, choices: turns(2) });
      // The message has a later place in its lane than the reply turn in the other one.
      for (const text of ["a", "b", "c"]) await app.tell(RESEARCH, text);
      await app.quiet();
      await app.tell(MAIN, "go");
      await app.quiet();
      const message = (await app.runs(RESEARCH)).find(({ flow }) => flow?.step === "round1");
      const notices = (await app.runs(MAIN)).filter(({ input }) => input.provenance?.kind === "notice");
      const named = `(run ${message?.runId}): it was answered:\n\n| last`;
      expect(notices.map(({ kind, input }) => [kind, input.text])).toEqual(
        fails ? [] : [["append", expect.stringContaining(named)]],
      );
    }
  });

  test.each([
    [{ notify: "idle" }, "it learns only that you have finished"],
    [{ announce: "channel" }, "Your reply goes only to your people."],
  ] as const)(
    "the target is told who reads its reply, and may write back if it is not the sender: %o",
    async (more, told) => {
      const play: Play = async (actor) =>
        actor.input === "go" ? String((await actor.send(RESEARCH, "q", 0, "call", more)).status) : "woken";
      const research: Play = async (actor) =>
        actor.step === "round1" ? String((await actor.send(MAIN, "42", 0, "back")).status) : "REPLY_SKIP";
      const app = await openFlowApp({ plays: { [MAIN]: play, [RESEARCH]: research }, choices: turns(0) });
      await app.route(RESEARCH);
      await app.tell(MAIN, "go");
      await app.quiet();
      const [message] = await app.runs(RESEARCH);
      expect(message).toMatchObject({ reply: "accepted", input: { context: expect.stringContaining(told) } });
      expect(message?.input.context).not.toContain("it would be refused");
      expect((await app.runs(MAIN)).map(({ input }) => input.text)).toContain("42");
    },
  );
});
