// A message that arrives during a run. The queue mode decides whether it becomes the next run, is read by the
// current run, or ends that run (QM2, ST1, ST2).

import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/model/model.ts";
import { optional } from "../../../src/core/optional.ts";
import { isCompaction, type Message, textOf } from "../../../src/core/shapes/message.ts";
import { isEnded, type Run } from "../../../src/core/shapes/run.ts";
import type { Route } from "../../../src/core/shapes/session.ts";
import { type CrashPoint, endOf, temporaryFolder } from "../../kit/engine/engine.ts";
import type { ScriptedAnswer } from "../../kit/scripted-model.ts";
import { openTurnApp, type TurnApp } from "../turn-app.ts";

const MAIN = "agent:main:main";
const HERE: Route = { channel: "telegram", to: "42", accountId: "default", threadId: "7" };
const COMMITS_MAX = 60;

const LOOKS: ScriptedAnswer = { text: "looking", toolCalls: [{ name: "sessions_list" }] };

/**
 * Returns the user messages that the model has received since its last final answer, and the number of tool
 * results.
 */
function heard({ entries }: ModelRequest): { said: string[]; results: number } {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const answered = messages.findLastIndex((one) => one.role === "assistant" && one.stopReason === "stop");
  const since = messages.slice(answered + 1);
  return {
    said: since.filter((one) => one.role === "user").map(textOf),
    results: since.filter((one) => one.role === "toolResult").length,
  };
}

/** Returns a model that first makes a tool call, then repeats the messages. A test may delay its calls. */
function lookingModel() {
  const held = new Set<string>();
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const reached = new Map<string, PromiseWithResolvers<void>>();
  const of = (map: Map<string, PromiseWithResolvers<void>>, name: string) => {
    const found = map.get(name) ?? Promise.withResolvers<void>();
    map.set(name, found);
    return found;
  };
  return {
    /**
     * Delays the next model call with the given name. The name consists of the call's first message and its
     * number of results.
     */
    hold: (name: string): void => void held.add(name),
    reached: (name: string): Promise<void> => of(reached, name).promise,
    release: (name: string): void => of(gates, name).resolve(),
    async script(request: ModelRequest): Promise<ScriptedAnswer> {
      const { said, results } = heard(request);
      const name = `${said[0]} ${results}`;
      of(reached, name).resolve();
      if (held.delete(name)) await of(gates, name).promise;
      return results === 0 ? LOOKS : `heard ${said.join(" and ")}`;
    },
  };
}

/** Starts a run. Returns when the run has begun its first model call. */
async function busy(at: Route = HERE) {
  const model = lookingModel();
  model.hold("first 0");
  const app = await openTurnApp({ script: model.script, sessionKey: MAIN });
  const first = await app.says("first", at, "followup");
  await model.reached("first 0");
  return { app, model, first };
}

const ends = async (app: TurnApp): Promise<string[]> =>
  (await app.runs(MAIN)).map((run) => `${run.input.text}: ${run.state} ${run.reply ?? run.code}`);

const OTHER_PLACES: [string, Route][] = [
  ["another chat", { ...HERE, to: "43" }],
  ["another thread", { ...HERE, threadId: "8" }],
  ["no thread", { channel: HERE.channel, to: HERE.to, accountId: "default" }],
  ["another account", { ...HERE, accountId: "second" }],
  ["another channel", { ...HERE, channel: "discord" }],
];

describe("steer", () => {
  test("the current run reads the message between two steps, and the message's own run then ends", async () => {
    const { app, model, first } = await busy();
    const second = await app.says("second", HERE, "steer");
    model.release("first 0");
    await app.quiet();
    expect(await ends(app)).toEqual(["first: ok heard first and second", "second: ok "]);
    expect(await app.texts(MAIN)).toEqual([
      "user: first",
      "assistant: looking",
      "result",
      "user: second",
      "assistant: heard first and second",
    ]);
    expect((await endOf(app.engine, second.runId)).input.takenBy).toBe(first.runId);
    expect(app.model.requests).toHaveLength(2);
  });

  test("ST3: if the run that read a message ends before its model answers, the message's own run does not succeed", async () => {
    const { app, model, first } = await busy();
    const second = await app.says("second", HERE, "steer");
    model.hold("first 1");
    model.release("first 0");
    await model.reached("first 1");
    expect(await app.texts(MAIN)).toContain("user: second");
    await app.engine.abort({ sessionKey: MAIN, runId: first.runId });
    const ended = await endOf(app.engine, second.runId);
    expect(ended).toMatchObject({ state: "aborted", code: "run_aborted", input: { takenBy: first.runId } });
    expect(ended.error).toContain("before its model answered");
    await app.quiet();
  });

  test("ST2: if a message is queued behind another one, the current run does not read it", async () => {
    const { app, model } = await busy();
    await app.says("between", { ...HERE, to: "43" }, "followup");
    await app.says("second", HERE, "steer");
    model.release("first 0");
    await app.quiet();
    expect(await ends(app)).toEqual([
      "first: ok heard first",
      "between: ok heard between",
      "second: ok heard second",
    ]);
  });

  test.each(OTHER_PLACES)(
    "a message from %s is not read by the current run; it becomes the next run",
    async (_, place) => {
      const { app, model } = await busy();
      await app.says("second", place, "steer");
      model.release("first 0");
      await app.quiet();
      expect(await ends(app)).toEqual(["first: ok heard first", "second: ok heard second"]);
    },
  );

  test.each(["hook", "cron", "node"] as const)(
    "a run of a %s does not read a person's message",
    async (kind) => {
      const model = lookingModel();
      model.hold("first 0");
      const app = await openTurnApp({ script: model.script, sessionKey: MAIN });
      const input = { text: "first", provenance: { kind, source: "x" } };
      await app.says("first", HERE, "followup", { input });
      await model.reached("first 0");
      await app.says("second", HERE, "steer");
      model.release("first 0");
      await app.quiet();
      expect((await ends(app))[1]).toBe("second: ok heard second");
    },
  );

  test("the run that reads the message also gets the message's pictures and its sender's name", async () => {
    const { app, model } = await busy();
    const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
    await app.says("second", HERE, "steer", {
      input: { text: "second", senderName: "Ann", images: [image] },
    });
    model.release("first 0");
    await app.quiet();
    const read = app.model.requests[1]?.entries.at(-1);
    expect(read).toMatchObject({
      ...{ role: "user", senderName: "Ann", steered: true },
      content: [{ type: "text", text: "second" }, image],
    });
  });

  test("I2: if the run is aborted before it has read the message, the message gets its own run", async () => {
    const { app, model, first } = await busy();
    await app.says("second", HERE, "steer");
    await app.engine.abort({ sessionKey: MAIN, runId: first.runId });
    model.release("first 0");
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.state)).toEqual(["aborted", "ok"]);
  });

  test("A2: if the same message is sent twice, it belongs to the same run and is read once", async () => {
    const { app, model } = await busy();
    await app.says("second", HERE, "steer", { runId: "m-2" });
    await app.says("second", HERE, "steer", { runId: "m-2" });
    model.release("first 0");
    await app.quiet();
    await app.says("second", HERE, "steer", { runId: "m-2" });
    expect((await app.texts(MAIN)).filter((text) => text === "user: second")).toHaveLength(1);
    expect(await ends(app)).toHaveLength(2);
  });
});

describe("interrupt", () => {
  test("a message ends the run that answers the same chat, and runs next", async () => {
    const { app, first } = await busy();
    const second = await app.says("second", HERE, "interrupt");
    expect(await endOf(app.engine, first.runId)).toMatchObject({ state: "aborted", code: "run_aborted" });
    expect((await endOf(app.engine, second.runId)).reply).toBe("heard first and second");
  });

  test("a message does not end a run that no person requested", async () => {
    const model = lookingModel();
    model.hold("first 0");
    const app = await openTurnApp({ script: model.script, sessionKey: MAIN });
    const input = { text: "first", provenance: { kind: "hook" as const, source: "a-hook" } };
    await app.says("first", HERE, "followup", { input });
    await model.reached("first 0");
    await app.says("second", HERE, "interrupt");
    model.release("first 0");
    await app.quiet();
    expect(await ends(app)).toEqual(["first: ok heard first", "second: ok heard second"]);
  });

  test("QM2: if the same message is sent twice, the second one ends no run", async () => {
    const { app } = await busy();
    await app.says("second", HERE, "interrupt", { runId: "m-2" });
    await app.says("second", HERE, "interrupt", { runId: "m-2" });
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.state)).toEqual(["aborted", "ok"]);
  });

  test("I3: messages that are already queued run first", async () => {
    const { app, model } = await busy();
    await app.says("between", { ...HERE, to: "43" }, "followup");
    await app.says("second", HERE, "interrupt");
    await app.quiet();
    model.release("first 0");
    expect((await app.runs(MAIN)).map((run) => [run.input.text, run.state])).toEqual([
      ["first", "aborted"],
      ["between", "ok"],
      ["second", "ok"],
    ]);
    expect((await app.texts(MAIN)).filter((text) => text.startsWith("user"))).toEqual([
      "user: first",
      "user: between",
      "user: second",
    ]);
  });
});

/** In every attempt, the second message arrives during the first model call of the first run. */
function scenario(mode: "steer" | "interrupt") {
  return async (dir: string, crash?: CrashPoint): Promise<{ app: TurnApp; told: Promise<boolean> }> => {
    const model = lookingModel();
    let app: TurnApp | undefined;
    const second = async (): Promise<void> => {
      await app?.says("second", HERE, mode, { runId: "m-2" });
    };
    app = await openTurnApp({
      sessionKey: MAIN,
      dir,
      ...optional({ crash }),
      async script(request) {
        const { said, results } = heard(request);
        // Platforms repeat messages that were not acknowledged, and so does this test.
        if (said[0] === "first" && results === 0) await second();
        return model.script(request);
      },
    });
    const told = app.says("first", HERE, "followup", { runId: "m-1" }).then(
      () => true,
      () => false,
    );
    return { app, told };
  };
}

async function checkWhole(app: TurnApp, mode: "steer" | "interrupt"): Promise<void> {
  const runs = await app.runs(MAIN);
  for (const run of runs) expect(isEnded(run.state), `I2: ${run.input.text} is ${run.state}`).toBe(true);
  expect(runs.map((run) => run.input.text)).toEqual(["first", "second"]);
  const texts = await app.texts(MAIN);
  // I4, ST1: each message is stored once, in order.
  expect(texts.filter((text) => text.startsWith("user"))).toEqual(["user: first", "user: second"]);
  const [first, second] = runs as [Run, Run];
  if (mode === "interrupt") {
    expect([first.state, second.state]).toEqual(["aborted", "ok"]);
    return;
  }
  // The second message is either read by the first run or answered by its own run.
  const read = first.reply === "heard first and second";
  expect([first.reply, second.reply]).toEqual(read ? [first.reply, ""] : ["heard first", "heard second"]);
  expect(second.input.takenBy).toBe(read ? "m-1" : undefined);
}

describe.each(["before", "after"] as const)("a crash %s any commit", (when) => {
  test.each(["steer", "interrupt"] as const)(
    "I2, I4: in mode %s no message is lost or processed twice",
    async (mode) => {
      let crashes = 0;
      for (let commit = 3; commit < COMMITS_MAX; commit += 1) {
        const dir = temporaryFolder();
        const { app, told } = await scenario(mode)(dir, { commit, when });
        const never = new Promise<never>(() => {});
        const outcome = await Promise.race([
          app.crashed().then(() => "crashed"),
          told
            .then((is) => (is ? app.quiet() : never))
            .then(
              () => "whole",
              () => never,
            ),
        ]);
        if (outcome === "whole") {
          await checkWhole(app, mode);
          break;
        }
        crashes += 1;
        const next = await scenario(mode)(dir);
        expect(await next.told).toBe(true);
        await next.app.quiet();
        await checkWhole(next.app, mode);
        await next.app.stop();
      }
      expect(crashes).toBeGreaterThan(3);
      expect(crashes).toBeLessThan(COMMITS_MAX - 3);
    },
  );
});
