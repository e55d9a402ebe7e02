// Replays that a client of the gateway asks for: progress, changes, limits, rights. Real processes run them.

import { expect, test } from "vitest";
import { EVENTS, type EventPayloads } from "../../../src/contract/events.ts";
import { methodOf } from "../../../src/contract/methods.ts";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import { diffChains } from "../../../src/features/replay/chain-diff.ts";
import { type House, type HouseOptions, openHouse, quiet } from "../../gateway/kit.ts";
import { cleanup, endOf, quietWorld } from "../../kit/engine/engine.ts";
import { misfits } from "../../kit/event-check.ts";
import { type ModelServer, type Script, startModelServer } from "../../kit/model-server/server.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { until } from "../../kit/until.ts";
import { withTimers } from "../../kit/world.ts";
import { recordOf } from "./record-of.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const MODEL = "openai/test-model";

async function served(script: Script = () => "another answer"): Promise<ModelServer> {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  return server;
}

async function houseOf(server?: ModelServer, more: HouseOptions = {}): Promise<House> {
  const session = { agentToAgent: { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200 } };
  const providers = server === undefined ? [] : [server.provider("openai-completions")];
  return openHouse({ model: talkingModel(), choices: { session, providers }, ...more });
}

const recorded = (house: House): Promise<ChainRecord> =>
  recordOf(house, doing(sending(RESEARCH, "what is new?")));

const rowsOf = async ({ store }: House): Promise<number> =>
  (await store.db.selectFrom("runs").select("run_id").execute()).length;

test("an unchanged chain replays without a difference, and only the asking client gets the progress", async () => {
  const house = await houseOf();
  const { chainId, runs, entries } = await recorded(house);
  const [asking, other] = [await house.client(), await house.client()];
  const heard: EventPayloads["replay"][] = [];
  let overheard = 0;
  asking.onEvent((frame) => frame.event === "replay" && heard.push(frame.payload as (typeof heard)[number]));
  other.onEvent(({ event }) => {
    if (event === "replay") overheard += 1;
  });
  const before = await rowsOf(house);
  const answer = await asking.request("chains.replay", { chainId, repeat: 2 });
  const one = { runs: runs.length, entries: entries.length, labels: [] };
  expect(answer).toEqual({ chainId, replays: [one, one] });
  expect(heard.flatMap((payload) => misfits(EVENTS.replay.payload, payload))).toEqual([]);
  expect(heard.at(0)).toMatchObject({ chainId, replay: 1, of: 2 });
  expect(heard.at(-1)).toMatchObject({ chainId, replay: 2, of: 2 });
  expect(heard.every(({ done, total }) => done <= total && total > 0)).toBe(true);
  await other.request("health", {});
  expect(overheard).toBe(0);
  expect(await rowsOf(house)).toBe(before);
});

test("changed instructions and another model are used, and both chains are compared step by step", async () => {
  const server = await served();
  const house = await houseOf(server);
  const { chainId } = await recorded(house);
  const client = await house.client();
  const before = await rowsOf(house);
  const { replays } = await client.request("chains.replay", {
    chainId,
    models: { research: MODEL },
    instructions: { research: "Answer in French." },
  });
  expect(server.requests[0]?.system).toContain("Answer in French.");
  expect(server.requests.every(({ agentId }) => agentId === "research")).toBe(true);
  const [replay] = replays;
  expect(replay).toMatchObject({ difference: { sessionKey: RESEARCH }, varied: { missing: {} } });
  expect(replay?.varied?.answers).toBeGreaterThan(0);
  expect(replay?.varied?.diff.differences).toBeGreaterThan(0);
  expect(replay?.varied?.diff.steps[0]).toMatchObject({
    same: true,
    a: { text: doing(sending(RESEARCH, "what is new?")) },
  });
  const answers = replay?.varied?.diff.steps.filter(
    ({ session, step }) => session === RESEARCH && step === "answer",
  );
  expect(answers?.[0]).toMatchObject({
    a: { text: expect.stringContaining("what is new?") },
    b: { text: "another answer" },
    same: false,
  });
  expect(misfits(methodOf("chains.replay").result, { chainId, replays })).toEqual([]);
  expect(await rowsOf(house)).toBe(before);
  expect(JSON.stringify(replays)).not.toContain("test-key-123456");
});

test("one replay runs at a time, and a client that leaves ends its own", async () => {
  const held = Promise.withResolvers<string>();
  const server = await served(() => held.promise);
  const house = await houseOf(server);
  const { chainId } = await recorded(house);
  const [leaving, staying] = [await house.client(), await house.client()];
  const changed = { chainId, models: { research: MODEL } };
  const left = leaving.request("chains.replay", changed).catch((error: { code: string }) => error.code);
  const asked = await until(() => server.requests[0]);
  await expect(staying.request("chains.replay", { chainId })).rejects.toMatchObject({
    code: "RATE_LIMITED",
  });
  leaving.close();
  expect(await left).toBe("CLOSED");
  await asked.gone;
  const replays = await until(() =>
    staying.request("chains.replay", { chainId }).then(
      (answer) => answer.replays,
      ({ code }) => {
        if (code !== "RATE_LIMITED") throw new Error(code);
        return undefined;
      },
    ),
  );
  expect(replays[0]?.difference).toBeUndefined();
  held.resolve("too late");
});

test("a client stops its own replay, and no other one", async () => {
  const server = await served(() => new Promise(() => {}));
  const house = await houseOf(server);
  const { chainId } = await recorded(house);
  const [asking, other] = [await house.client(), await house.client()];
  const ended = expect(
    asking.request("chains.replay", { chainId, models: { research: MODEL } }),
  ).rejects.toMatchObject({ details: { code: "run_aborted" } });
  const asked = await until(() => server.requests[0]);
  await expect(asking.request("chains.replay", { chainId })).rejects.toMatchObject({ code: "RATE_LIMITED" });
  expect(await other.request("chains.replay.stop", {})).toEqual({ ok: true, stopped: false });
  expect(await asking.request("chains.replay.stop", {})).toEqual({ ok: true, stopped: true });
  await ended;
  await asked.gone;
});

test("two chains are compared step by step, for tokens that cover every session", async () => {
  const tokens = [
    { token: "some-sessions", role: "operator", scopes: ["operator.admin"], sessions: [MAIN] },
  ] as const;
  const house = await houseOf(undefined, { gateway: { tokens } });
  const [a, b] = [await recorded(house), await recordOf(house, doing(sending(RESEARCH, "and later?")))];
  const client = await house.client();
  const diff = await client.request("chains.diff", { a: a.chainId, b: b.chainId });
  expect(diff).toEqual(diffChains(a, b));
  expect(diff.differences).toBeGreaterThan(0);
  const none = client.request("chains.diff", { a: a.chainId, b: "none" });
  await expect(none).rejects.toMatchObject({ details: { code: "chain_not_found" } });
  const narrow = await house.client({ token: "some-sessions" });
  const refused = narrow.request("chains.diff", { a: a.chainId, b: b.chainId });
  await expect(refused).rejects.toMatchObject({ details: { code: "missing_scope" } });
});

test("a replay ends at its time limit", async () => {
  let expire: (() => void) | undefined;
  const world = withTimers(quietWorld(), (fire, ms) => {
    if (ms === 600_000) expire = fire;
    return fire;
  });
  const server = await served(() => new Promise(() => {}));
  const house = await houseOf(server, { world });
  const { chainId } = await recorded(house);
  const client = await house.client();
  const ended = expect(
    client.request("chains.replay", { chainId, models: { research: MODEL } }),
  ).rejects.toMatchObject({ details: { code: "run_timeout" } });
  const asked = await until(() => server.requests[0]);
  expire?.();
  await ended;
  await asked.gone;
});

test("tokens without the right, unfinished and unknown chains, and unfit changes are refused in words", async () => {
  const release = Promise.withResolvers<void>();
  const model = talkingModel((input) => (input === "wait" ? release.promise : undefined));
  const tokens = [
    { token: "some-sessions", role: "operator", scopes: ["operator.admin"], sessions: [MAIN] },
    { token: "only-writes", role: "operator", scopes: ["operator.write"] },
  ] as const;
  const house = await houseOf(undefined, { model, gateway: { tokens } });
  const { chainId } = await recorded(house);
  const refused = async (params: Record<string, unknown>, token?: string): Promise<unknown> => {
    const client = await house.client(token === undefined ? {} : { token });
    return client.call("chains.replay", params).then(
      () => "accepted",
      ({ details, message }) => [details.code, message],
    );
  };
  expect(await refused({ chainId }, "some-sessions")).toEqual(["missing_scope", expect.any(String)]);
  expect(await refused({ chainId }, "only-writes")).toEqual(["missing_scope", expect.any(String)]);
  expect(await refused({ chainId: "none" })).toEqual(["chain_not_found", expect.any(String)]);
  expect(await refused({ chainId, models: { nobody: MODEL } })).toEqual([
    "invalid_argument",
    expect.stringContaining('no agent "nobody"'),
  ]);
  expect(await refused({ chainId, repeat: 11 })).toEqual(["invalid_argument", expect.any(String)]);
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "wait" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { run } = accepted.value;
  expect(await refused({ chainId: run.chainId })).toEqual(["session_busy", expect.any(String)]);
  release.resolve();
  await endOf(house.engine, run.runId);
  await quiet(house);
  await house.store.transaction((tx) => tx.deleteFrom("revisions").execute());
  expect(await refused({ chainId })).toEqual([
    "invalid_argument",
    expect.stringContaining("(store.recordDays)"),
  ]);
});
