// Nodes with several gateways on one store: a command reaches its node from any gateway, and an uncertain
// outcome is reported as unknown.

import { expect, test } from "vitest";
import { NODE_REPLACED } from "../../../src/contract/protocol.ts";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { answer, asked, joinedNode, NODE_TOKENS, pairedDevice, said } from "../../gateway/clients/devices.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { embeddedGround, type Ground } from "../../kit/engine/cluster.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { mortalProcess } from "../../kit/engine/mortal-store.ts";
import { fakeWorld } from "../../kit/world.ts";

async function member(ground: Ground, world = quietWorld()): Promise<House> {
  const disk = await ground.open(world);
  const mortal = mortalProcess({ ...disk, close: async () => {} }, sharedWorld(disk, world));
  return openHouse({ disk: mortal.store, world: mortal.world, gateway: { tokens: NODE_TOKENS } });
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: { code: string; reason?: string }) => `${error.code} ${error.reason ?? ""}`.trim(),
  );
}

test("NH3: a command reaches a node that is connected to another process, and an answer of any size is returned", async () => {
  const ground = await embeddedGround();
  const [first, second] = [await member(ground), await member(ground)];
  const key = await pairedDevice(second);
  const raw = await joinedNode(first, key);
  const admin = await second.client();
  expect((await admin.request("node.list", {})).nodes).toMatchObject([{ nodeId: key.id, connected: true }]);
  const invoke = (more: object = {}) =>
    admin.request("node.invoke", { nodeId: key.id, command: "exec", ...more });
  const done = invoke({ params: { text: "p".repeat(50_000) } });
  const request = await asked(raw);
  expect(JSON.parse(request.paramsJSON).text).toHaveLength(50_000);
  const long = "ß".repeat(200_000);
  answer(raw, request, { ok: true, payload: long });
  expect((await done).payload).toBe(long);
  const refused = refusal(invoke());
  answer(raw, await asked(raw, 1), { ok: false, error: { message: "no" } });
  expect(await refused).toBe("UNAVAILABLE node_failed");
  const lost = refusal(invoke());
  await asked(raw, 2);
  raw.socket.terminate();
  expect(await lost).toBe("CONFLICT outcome_unknown");
  await expect.poll(async () => (await admin.request("node.list", {})).nodes[0]?.connected).toBe(false);
  expect(await refusal(invoke())).toBe("UNAVAILABLE node_unavailable");
});

test("NH1: a device that one process unpairs loses its connection to another process; a node may reconnect to another", async () => {
  const ground = await embeddedGround();
  const [first, second] = [await member(ground), await member(ground)];
  const key = await pairedDevice(first);
  const raw = await joinedNode(first, key);
  const moved = await joinedNode(second, key);
  const admin = await first.client();
  const done = admin.request("node.invoke", { nodeId: key.id, command: "exec" });
  expect(await raw.closed()).toEqual({ code: 1008, reason: NODE_REPLACED });
  answer(moved, await asked(moved), { ok: true, payload: "here" });
  expect((await done).payload).toBe("here");
  expect((await said(moved, "agent.request", { message: "hello" })).payload).toMatchObject({ handled: true });
  await admin.request("node.pair.remove", { nodeId: key.id });
  expect((await moved.closed()).reason).toContain("no longer paired");
});

test("NH3: if a notification between processes is lost, the command times out with an unknown outcome", async () => {
  const ground = await embeddedGround();
  const world = fakeWorld({ startMs: Date.now() });
  const [first, second] = [await member(ground), await member(ground, world)];
  const key = await pairedDevice(first);
  const raw = await joinedNode(first, key);
  const admin = await second.client();
  ground.cutWire(true);
  const lost = refusal(admin.request("node.invoke", { nodeId: key.id, command: "exec", timeoutMs: 1_000 }));
  await world.timerWithin(6_000);
  await expect.poll(() => world.pendingDelays().includes(6_000)).toBe(true);
  await world.advance(6_000);
  expect(await lost).toBe("CONFLICT outcome_unknown");
  expect(raw.frames.filter(({ event }) => event === "node.invoke.request")).toEqual([]);
  ground.cutWire(false);
});
