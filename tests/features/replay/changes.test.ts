// Replays with changes: models are called for what differs, everything else comes from the record.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import { NO_VARIATION, type Variation } from "../../../src/core/shapes/record/variation.ts";
import { diffChains } from "../../../src/features/replay/chain-diff.ts";
import { replayIn } from "../../../src/features/replay/play/play.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { type ModelServer, type Script, startModelServer } from "../../kit/model-server/server.ts";
import { call } from "../../kit/model-server/steps.ts";
import type { ScriptedModel } from "../../kit/scripted-model.ts";
import { doing, inTurn, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { failingJobModel } from "./failing-job.ts";
import { randomModel } from "./random-chains.ts";
import { recordOf } from "./record-of.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const MODEL = "openai/test-model";

/** `budget`: of each chain. */
async function house(model: ScriptedModel = talkingModel(), budget = {}): Promise<House> {
  const tools = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };
  const session = { agentToAgent: { maxPingPongTurns: 1, maxHops: 16, maxChainRuns: 200, ...budget } };
  return openHouse({ model, choices: { tools, session } });
}

async function served(script: Script = () => "another answer"): Promise<ModelServer> {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  return server;
}

async function changed(record: ChainRecord, change: Partial<Variation>, server?: ModelServer) {
  const providers = server === undefined ? [] : [server.provider("openai-completions")];
  const replayed = await replayIn(quietWorld())(record, {
    variation: { ...NO_VARIATION, ...change },
    providers,
  });
  if (!replayed.ok) throw new Error(replayed.error);
  const { varied } = replayed.value;
  if (varied === undefined) throw new Error("the replay did not end");
  return { ...varied, diff: diffChains(record, varied.record) };
}

const answersIn = (record: ChainRecord, sessionKey: string): (string | undefined)[] =>
  record.runs.filter((run) => run.sessionKey === sessionKey).map(({ reply }) => reply);

const refusal = async (record: ChainRecord, change: Partial<Variation>) => {
  const replayed = await replayIn(quietWorld())(record, {
    variation: { ...NO_VARIATION, ...change },
    providers: [],
  });
  return replayed.ok ? "" : replayed.error;
};

test("without a change no model is called, and random chains stay as they were", async () => {
  const own = await house(randomModel("changes"));
  for (let at = 0; at < 10; at += 1) {
    const { answers, diff } = await changed(await recordOf(own, `message ${at}`), {});
    const differing = diff.steps.filter(({ same }) => !same);
    expect({ at, answers, differing }).toEqual({ at, answers: 0, differing: [] });
  }
});

test("without a change the announcement of a failed job still counts answers without text", async () => {
  const record = await recordOf(await house(failingJobModel()), "Go");
  expect(record.runs.map(({ input }) => input.text).join("\n")).toContain("700 total");
  const { answers, diff } = await changed(record, {});
  expect({ answers, differing: diff.steps.filter(({ same }) => !same) }).toEqual({
    answers: 0,
    differing: [],
  });
});

test("a budget holds only calls of real models: without a change two calls at once do not wait for each other", async () => {
  let calls = 0;
  const both = Promise.withResolvers<void>();
  const model = talkingModel((input) => {
    if (!input.startsWith("work")) return undefined;
    calls += 1;
    if (calls === 2) both.resolve();
    return both.promise;
  });
  const gateway = await house(model, { maxChainTokens: 1_000_000 });
  const record = await recordOf(gateway, doing(sending(RESEARCH, "work 1", 1), sending(WRITER, "work 2", 1)));
  expect(answersIn(record, MAIN)[0]).toBe("echo work 1; echo work 2");
  const small = JSON.stringify(record).replaceAll('"maxChainTokens":1000000', '"maxChainTokens":10000');
  expect(small).toContain('"maxChainTokens":10000');
  const { answers, diff } = await changed(JSON.parse(small) as ChainRecord, {});
  expect({ answers, differing: diff.steps.filter(({ same }) => !same) }).toEqual({
    answers: 0,
    differing: [],
  });
});

test("a new model is called for one agent, and what follows from its answer is real", async () => {
  const record = await recordOf(await house(), doing(sending(RESEARCH, "what is new?")));
  const server = await served();
  const same = await changed(record, { models: { writer: MODEL } }, server);
  expect({ answers: same.answers, differences: same.diff.differences }).toEqual({
    answers: 0,
    differences: 0,
  });
  const { record: other, answers, diff } = await changed(record, { models: { research: MODEL } }, server);
  expect(answers).toBeGreaterThan(0);
  expect(server.requests.every(({ agentId }) => agentId === "research")).toBe(true);
  expect(answersIn(other, RESEARCH)[0]).toBe("another answer");
  expect(JSON.stringify(other.entries)).toContain(JSON.stringify('"reply":"another answer"').slice(1, -1));
  expect(diff.differences).toBeGreaterThan(0);
  expect(diff.steps[0]).toMatchObject({ step: "message", same: true });
  // The new record is complete: it replays, too.
  const again = await replayIn(quietWorld())(other);
  expect(again).toMatchObject({ ok: true, value: { runs: other.runs.length } });
  if (again.ok) expect(again.value.difference).toBeUndefined();
});

test("changed instructions are in the prompt, and only their agent and what it changes is called", async () => {
  const record = await recordOf(await house(), doing(sending(RESEARCH, "what is new?", 0)));
  const server = await served();
  const change = {
    instructions: { research: "Answer in French." },
    files: { research: { "AGENTS.md": "Be kind." } },
  };
  await changed(record, { ...change, models: { research: MODEL } }, server);
  const [first] = server.requests;
  expect(first?.system).toContain("Answer in French.");
  expect(first?.system).toContain("Instructions from AGENTS.md:\nBe kind.");
  expect(first?.lastUserText).toContain("what is new?");
});

test("another first message and a later start call models, and the steps before come from the record", async () => {
  const record = await recordOf(
    await house(),
    inTurn(doing({ name: "sessions_list" }), doing({ name: "session_status" })),
  );
  const server = await served();
  const models = { "*": MODEL };
  const message = await changed(record, { message: "hello", models }, server);
  expect(message.record.runs[0]?.input.text).toBe("hello");
  expect(message.answers).toBe(1);
  const last = String(record.entries.length);
  const from = await changed(record, { from: last, models }, server);
  expect({ answers: from.answers, differences: from.diff.differences }).toEqual({
    answers: 1,
    differences: 1,
  });
  expect(answersIn(from.record, MAIN)).toEqual(["another answer"]);
});

test("tools answer from the record or say that they did not run, and named ones really run", async () => {
  const own = await house();
  const record = await recordOf(own, doing({ name: "read", arguments: { path: "a.txt" } }));
  const workspace = own.settings.agents[0]?.workspace ?? "";
  mkdirSync(workspace, { recursive: true });
  writeFileSync(join(workspace, "b.txt"), "the contents of b");
  const server = await served((_, index) => {
    const path = ["a.txt", "b.txt"][index % 3];
    return path === undefined ? "done" : [call("read", { path })];
  });
  const models = { "*": MODEL };
  const results = ({ entries }: ChainRecord) =>
    entries.flatMap(({ entry }) => ("role" in entry && entry.role === "toolResult" ? [textOf(entry)] : []));
  const dry = await changed(record, { models }, server);
  expect(dry.missing).toEqual({ read: 1 });
  expect(results(dry.record)).toEqual([...results(record), expect.stringContaining("this is a replay")]);
  const live = await changed(record, { models, live: ["read"] }, server);
  expect(live.missing).toEqual({});
  expect(results(live.record)[1]).toContain("the contents of b");
  expect(answersIn(live.record, MAIN)).toEqual(["done"]);
});

test("changes that do not fit the record are refused in words", async () => {
  const record = await recordOf(await house(), doing(spawning("some work")));
  const cases: [Partial<Variation>, string][] = [
    [{ models: { nobody: MODEL } }, 'no agent "nobody"'],
    [{ models: { main: "none/none" } }, 'unknown model "none/none"'],
    [{ live: ["exec"] }, '"exec" can\'t run in a replay'],
    [{ from: "0" }, 'no step "0"'],
    [{ from: "1", message: "x" }, "the first message cannot be changed"],
    [{ settings: { nothing: 1 } }, 'the recorded settings have no "nothing"'],
    [
      { settings: { session: { agentToAgent: { maxHops: "many" } } } },
      '"session.agentToAgent.maxHops" has another type',
    ],
    [{ settings: { agents: { main: { nothing: 1 } } } }, 'have no "agents.main.nothing"'],
  ];
  for (const [change, why] of cases) expect(await refusal(record, change)).toContain(why);
});

test("changed settings are those of the replay", async () => {
  const record = await recordOf(await house(), doing(sending(RESEARCH, "what is new?")));
  const replies = (one: ChainRecord) => one.runs.filter(({ flow }) => flow?.step === "reply").length;
  expect(replies(record)).toBeGreaterThan(0);
  const settings = { session: { agentToAgent: { maxPingPongTurns: 0 } } };
  expect(replies((await changed(record, { settings })).record)).toBe(0);
});
