// Permission requests of agents over the protocol: the callers who see them, the decision, and their expiry.

import { describe, expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { optional } from "../../../src/core/optional.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { askIn } from "../../kit/engine/asking.ts";
import { embeddedGround, postgresGround } from "../../kit/engine/cluster.ts";
import { quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { type House, type HouseOptions, openHouse, quiet } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

/**
 * Opens a gateway whose runs ask for permission for the action in their message, and reply with the decision.
 */
async function openAsking(options: HouseOptions = {}): Promise<House> {
  const world = options.world ?? quietWorld();
  const play = async (handle: LaneHandle) => {
    const { text: title } = handle.run.input;
    const about = title.startsWith("$ ") ? { callId: undefined, folder: "/project", files: [] } : undefined;
    const asked = { title, ...(title === "too late" ? { askMs: 40 } : {}), ...optional({ about }) };
    // A run of an earlier process may resume before `openHouse` returns.
    const { engine } = await house;
    const decision = await askIn({ engine }, handle, asked);
    handle.signal.throwIfAborted();
    return decision;
  };
  const house: Promise<House> = openHouse({ ...options, world, play });
  return house;
}

async function say(house: House, sessionKey: string, text: string): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

const openAt = async (client: GatewayClient) => (await client.request("permissions.list", {})).permissions;
const untilOpen = (client: GatewayClient, count: number) =>
  until(async () => {
    const open = await openAt(client);
    return open.length === count && open;
  });

async function replyOf(house: House, runId: string): Promise<string | undefined> {
  const ended = await until(async () => {
    const run = await getRun(house.store.db, runId);
    return run?.endedAt !== undefined && run;
  });
  return ended.reply;
}

describe.each([
  ["sqlite", embeddedGround],
  ["postgres", () => postgresGround()],
] as const)("on %s", (_, openGround) => {
  test("PD2: if two answers arrive at the same time, one of them decides, and the agent gets that one", async () => {
    const ground = await openGround();
    const world = quietWorld();
    const house = await openAsking({ disk: await ground.open(world), world });
    const client = await house.client();
    const runId = await say(house, MAIN, "delete the old build");
    const [asked] = await untilOpen(client, 1);
    expect(asked).toMatchObject({ sessionKey: MAIN, agentId: "main", runId, title: "delete the old build" });
    const id = asked?.id ?? "";
    const answers = await Promise.allSettled([
      client.request("permissions.answer", { id, decision: "allow" }),
      client.request("permissions.answer", { id: id.slice(0, 8), decision: "deny" }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const decided = answers.flatMap((one) => (one.status === "fulfilled" ? [one.value.decision] : []));
    expect(await replyOf(house, runId)).toBe(decided[0]);
    expect(await openAt(client)).toEqual([]);
    expect(await house.store.db.selectFrom("permissions").selectAll().execute()).toEqual([]);
  });

  test("PD1: a stopped run and an expired request count as denied, and only the expired one leaves a row", async () => {
    const ground = await openGround();
    const world = quietWorld();
    const house = await openAsking({ disk: await ground.open(world), world });
    const rows = () => house.store.db.selectFrom("permissions").selectAll().execute();
    expect(await replyOf(house, await say(house, MAIN, "too late"))).toBe("deny");
    const client = await house.client();
    expect(await openAt(client)).toEqual([]);
    const [expired] = await rows();
    const answer = { id: expired?.id ?? "", decision: "allow" } as const;
    await expect(client.request("permissions.answer", answer)).rejects.toThrow("no open permission request");
    const runId = await say(house, RESEARCH, "never answered");
    await until(async () => (await rows()).length === 2);
    await house.engine.abort({ sessionKey: RESEARCH, runId });
    await quiet(house);
    await until(async () => (await rows()).length === 1);
    expect(await rows()).toEqual([expired]);
    expect((await getRun(house.store.db, runId))?.state).toBe("aborted");
  });
});

test("if a process dies, its permission request stays open until the next attempt asks again", async () => {
  const dir = temporaryFolder();
  const first = await openAsking({ dir });
  const runId = await say(first, MAIN, "deploy");
  const client = await first.client();
  const [asked] = await untilOpen(client, 1);
  await first.stop();
  const second = await openAsking({ dir });
  const other = await second.client();
  const [again] = await until(async () => {
    const open = await openAt(other);
    return open[0] !== undefined && open[0].id !== asked?.id && open;
  });
  expect(again).toMatchObject({ runId, title: "deploy" });
  const late = other.request("permissions.answer", { id: asked?.id ?? "", decision: "allow" });
  await expect(late).rejects.toThrow("there is no open permission request");
  await other.request("permissions.answer", { id: again?.id ?? "", decision: "allow" });
  expect(await replyOf(second, runId)).toBe("allow");
});

test("an answer that one process of a cluster receives reaches the agent in another process", async () => {
  const ground = await postgresGround();
  const world = quietWorld();
  const [one, two] = [
    await openAsking({ disk: await ground.open(world), world }),
    await openHouse({ disk: await ground.open(world), world, play: () => "never" }),
  ];
  const client = await two.client();
  const runId = await say(one, MAIN, "deploy");
  const [asked] = await untilOpen(client, 1);
  await client.request("permissions.answer", { id: asked?.id ?? "", decision: "allow" });
  expect(await replyOf(two, runId)).toBe("allow");
});

test("one session has at most 20 open requests and all together 200; more are denied at once", async () => {
  const world = quietWorld();
  const house: House = await openHouse({
    world,
    play: async (handle) => {
      const ask = (sessionKey: string) =>
        askIn({ engine: house.engine }, handle, { title: "one of many", sessionKey });
      const mine = Array.from({ length: 22 }, () => ask(MAIN));
      const others = Array.from({ length: 200 }, (_, n) => ask(`agent:main:chat:${Math.floor(n / 10)}`));
      return (await Promise.all([...mine, ...others])).join();
    },
  });
  const client = await house.client();
  const runId = await say(house, MAIN, "many");
  const open = await untilOpen(client, 200);
  expect(open.filter(({ sessionKey }) => sessionKey === MAIN)).toHaveLength(20);
  for (const { id } of open) await client.request("permissions.answer", { id, decision: "allow" });
  const reply = (await replyOf(house, runId)) ?? "";
  expect(reply.split(",").filter((one) => one === "allow")).toHaveLength(200);
});

test("I9: a token lists and answers only requests of sessions that it covers", async () => {
  const tokens = [
    { token: "scoped", role: "operator", scopes: ["operator.admin"], sessions: [RESEARCH] },
    { token: "reader", role: "operator", scopes: ["operator.read"] },
  ] as const;
  const house = await openAsking({ gateway: { tokens: [...tokens] } });
  const admin = await house.client();
  await say(house, MAIN, "one");
  await say(house, RESEARCH, "two");
  const open = await untilOpen(admin, 2);
  const idOf = (key: string) => open.find(({ sessionKey }) => sessionKey === key)?.id ?? "";
  const scoped = await house.client({ token: "scoped" });
  expect((await openAt(scoped)).map(({ sessionKey }) => sessionKey)).toEqual([RESEARCH]);
  const other = scoped.request("permissions.answer", { id: idOf(MAIN), decision: "allow" });
  await expect(other).rejects.toThrow("there is no open permission request");
  const reader = await house.client({ token: "reader" });
  expect(await openAt(reader)).toHaveLength(2);
  const reading = reader.request("permissions.answer", { id: idOf(MAIN), decision: "allow" });
  await expect(reading).rejects.toThrow(/scope/);
  await scoped.request("permissions.answer", { id: idOf(RESEARCH), decision: "deny" });
  await untilOpen(admin, 1);
});

test("I14: callers who may answer see a request whole, and others see it redacted", async () => {
  const tokens = [{ token: "reader", role: "operator", scopes: ["operator.write"] }] as const;
  const house = await openAsking({ gateway: { tokens: [...tokens] } });
  const [admin, reader] = [await house.client(), await house.client({ token: "reader" })];
  const title = 'DB_PASSWORD="hunter2hunter2" make';
  await say(house, MAIN, `$ ${title}`);
  const [open] = await untilOpen(admin, 1);
  expect(open).toMatchObject({ title: `$ ${title}`, asked: { command: `$ ${title}` } });
  const summaries = async (client: GatewayClient) =>
    (await client.request("attention.list", {})).groups.flatMap(({ items }) =>
      items.map((one) => one.summary),
    );
  expect(await summaries(admin)).toContain(`$ ${title}`);
  expect(JSON.stringify(await openAt(reader))).not.toContain("hunter2");
  expect((await summaries(reader)).join()).not.toContain("hunter2");
  const id = open?.id ?? "";
  await admin.request("permissions.answer", { id, decision: "allow", scope: "session" });
  const ruleOf = async (client: GatewayClient) =>
    (await client.request("permissions.rules", {})).rules[0]?.command;
  expect(await ruleOf(admin)).toBe(`$ ${title}`);
  expect(await ruleOf(reader)).not.toContain("hunter2");
});

test("I9: a command is allowed for longer by callers who cover its sessions, and they list and delete the rule", async () => {
  const tokens = [
    { token: "scoped", role: "operator", scopes: ["operator.admin"], sessions: [RESEARCH] },
    { token: "other", role: "operator", scopes: ["operator.admin"], sessions: [MAIN] },
  ] as const;
  const house = await openAsking({ gateway: { tokens: [...tokens] } });
  const admin = await house.client();
  const scoped = await house.client({ token: "scoped" });
  const other = await house.client({ token: "other" });
  const answering = async (client: GatewayClient, text: string, scope: "session" | "always") => {
    const runId = await say(house, RESEARCH, text);
    const [asked] = await untilOpen(admin, 1);
    const id = asked?.id ?? "";
    const narrower = asked?.scopes.filter((one) => one !== "always");
    expect((await openAt(scoped)).map(({ scopes }) => scopes)).toEqual([narrower]);
    const answered = client.request("permissions.answer", { id, decision: "allow", scope });
    const outcome = await answered.catch((error: Error) => error.message);
    if (typeof outcome === "string") await admin.request("permissions.answer", { id, decision: "deny" });
    await replyOf(house, runId);
    return outcome;
  };
  expect(await answering(scoped, "plain", "session")).toContain("this answer can't have the scope session");
  expect(await answering(scoped, "$ make", "always")).toContain("a token for some sessions");
  expect(await answering(scoped, "$ make", "session")).toMatchObject({ decision: "allow", scope: "session" });
  expect(await answering(admin, "$ make all", "always")).toMatchObject({ scope: "always" });
  const { rules } = await scoped.request("permissions.rules", {});
  expect(rules.map(({ command, scope, sessionKey }) => [command, scope, sessionKey]).sort()).toEqual([
    ["$ make all", "always", RESEARCH],
    ["$ make", "session", RESEARCH],
  ]);
  // A token for some sessions does not learn who else answers.
  const creators = rules.map(({ command, createdBy }) => [command, createdBy]);
  expect(Object.fromEntries(creators)).toEqual({
    "$ make all": "(not visible)",
    "$ make": expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  const all = (await admin.request("permissions.rules", {})).rules;
  expect(all.map(({ createdBy }) => createdBy)).not.toContain("(not visible)");
  expect(await other.request("permissions.rules", {})).toEqual({ rules: [] });
  const id = rules[0]?.id ?? "";
  await expect(other.request("permissions.forget", { id })).rejects.toThrow("there is no allowed command");
  await scoped.request("permissions.forget", { id: id.slice(0, 8) });
  expect((await admin.request("permissions.rules", {})).rules).toHaveLength(1);
});
