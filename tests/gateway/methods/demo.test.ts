// The demo of a gateway: at most one at a time, behind the gateway's own port, and removed completely.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import type { OpenDemo } from "../../../src/gateway/demo.ts";
import { openDemo } from "../../../src/main.ts";
import { test } from "../../kit/deep.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { fakeWorld } from "../../kit/world.ts";
import { type House, openHouse, openRaw, TOKEN } from "../kit.ts";

type Status = PayloadOf<"status">;
type Started = PayloadOf<"demo.start">;

const READER = "a-token-that-may-only-read";
const MAIN = "agent:main:main";
const real: OpenDemo = () => openDemo(quietWorld());

/** Opens a gateway with a demo, and counts opened and closed demos. */
async function houseWithDemo(more: Parameters<typeof openHouse>[0] = {}) {
  const count = { opened: 0, closed: 0 };
  const open: OpenDemo = async () => {
    count.opened++;
    const opened = await real();
    if (!opened.ok) return opened;
    const { close, ...place } = opened.value;
    const closeOnce = async (): Promise<void> => {
      await close();
      count.closed++;
    };
    return ok({ ...place, close: closeOnce });
  };
  const house = await openHouse({ ...more, openDemo: open });
  return { house, count };
}

async function enter(house: Pick<House, "url">, started: Started): Promise<GatewayClient> {
  const client = await connect({ url: house.url + started.path, token: started.token, reconnect: false });
  cleanup(() => client.close());
  return client;
}

const statusOf = (client: GatewayClient): Promise<Status> => client.request("status");

test("a gateway counts as unused until its first message, and only callers who see every session learn that", async () => {
  const tokens = [
    { token: READER, role: "operator", scopes: ["operator.read"], sessions: ["agent:ops:*"] },
  ] as const;
  const house = await openHouse({ gateway: { tokens } });
  const client = await house.client();
  expect((await statusOf(client)).unused).toBe(true);
  expect((await statusOf(client)).demo).toBeUndefined();
  await client.request("chat.send", { sessionKey: "main", message: "hello", idempotencyKey: "one" });
  await client.request("agent.wait", { runId: "one" });
  expect((await statusOf(client)).unused).toBe(false);
  const reader = await house.client({ token: READER });
  expect(await statusOf(reader)).not.toHaveProperty("unused");
});

test("GD1: two simultaneous requests and a later one get the same demo, which has its own token", async () => {
  const { house, count } = await houseWithDemo();
  const client = await house.client();
  expect((await statusOf(client)).demo).toEqual({ running: false });
  const start = () => client.request("demo.start");
  const [one, two] = await Promise.all([start(), start()]);
  expect(one).toEqual({ path: "/demo", token: expect.any(String) });
  expect(two).toEqual(one);
  expect(await start()).toEqual(one);
  expect(one.token).not.toBe(TOKEN);
  expect(count.opened).toBe(1);
  expect((await statusOf(client)).demo).toEqual({ running: true });
  const demo = await enter(house, one);
  const { agents } = await demo.request("agents.list");
  expect(agents.map(({ id, model }) => [id, model])).toEqual([
    ["main", "offline/rehearsal"],
    ["research", "offline/rehearsal"],
    ["ops", "offline/rehearsal"],
  ]);
  await demo.request("chat.send", {
    sessionKey: MAIN,
    message: "ask research: what now?",
    idempotencyKey: "ask",
  });
  expect(await demo.request("agent.wait", { runId: "ask" })).toMatchObject({ status: "ok" });
  const { messages } = await demo.request("chat.history", {
    sessionKey: "agent:research:main",
  });
  expect(JSON.stringify(messages)).toContain("what now?");
  // The demo has a separate store.
  expect((await statusOf(client)).unused).toBe(true);
  const tools = await demo.request("tools.catalog", { sessionKey: MAIN });
  const names = tools.tools.map(({ name }) => name);
  expect(names).toContain("sessions_send");
  expect(
    names.filter((name) => ["exec", "read", "write", "edit", "grep", "glob", "fetch"].includes(name)),
  ).toEqual([]);
});

test("GD2: demo and gateway refuse each other's token, and only the path /demo leads to the demo", async () => {
  const { house } = await houseWithDemo();
  await expect(openRaw(`${house.url}/demo`)).rejects.toThrow("404");
  const client = await house.client();
  const started = await client.request("demo.start");
  const wrong = { ...started, token: TOKEN };
  await expect(enter(house, wrong)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  await expect(enter(house, { ...started, path: "" })).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  for (const path of ["/demo/", "/demo/healthz", "/other"]) {
    await expect(openRaw(house.url + path)).rejects.toThrow("404");
  }
  const evil = { headers: { origin: "http://evil.example" } };
  await expect(openRaw(`${house.url}/demo`, evil)).rejects.toThrow("403");
  await expect(openRaw(`${house.url}/demo`, { headers: { host: "evil.example" } })).rejects.toThrow("403");
  const answer = await fetch(`${house.http}/demo`);
  expect(answer.status).toBe(404);
});

test("a demo that stops closes the connections of its pages, and a new demo starts empty", async () => {
  const { house, count } = await houseWithDemo();
  const client = await house.client();
  const first = await client.request("demo.start");
  const raw = await openRaw(house.url + first.path);
  const demo = await enter(house, first);
  await demo.request("chat.send", { sessionKey: MAIN, message: "say one", idempotencyKey: "one" });
  expect(await client.request("demo.stop")).toEqual({ ok: true, stopped: true });
  expect(await raw.closed()).toMatchObject({ code: 1001 });
  expect(count).toEqual({ opened: 1, closed: 1 });
  expect(await client.request("demo.stop")).toEqual({ ok: true, stopped: false });
  const second = await client.request("demo.start");
  expect(second.token).not.toBe(first.token);
  expect((await statusOf(await enter(house, second))).unused).toBe(true);
});

test("GD3: a demo without open pages stops after some minutes; one with an open page continues", async () => {
  const world = fakeWorld({ clock: "held" });
  const { house, count } = await houseWithDemo({ world });
  const client = await house.client();
  const started = await client.request("demo.start");
  const raw = await openRaw(house.url + started.path);
  await raw.next((frame) => frame.event === "connect.challenge");
  await world.advance(6 * 60_000);
  expect(count.closed).toBe(0);
  raw.socket.terminate();
  // The demo sets its timer after two sockets have closed, so the test waits for the timer.
  await world.timerWithin(5 * 60_000);
  await expect
    .poll(async () => {
      await world.advance(60_000);
      return count.closed;
    })
    .toBe(1);
});

test("a gateway that stops also stops its demo, even if pages are connected or the demo is starting", async () => {
  const { house, count } = await houseWithDemo();
  const client = await house.client();
  const raw = await openRaw(house.url + (await client.request("demo.start")).path);
  await house.stop();
  expect(await raw.closed()).toMatchObject({ code: 1001 });
  expect(count.closed).toBe(1);
  const other = await houseWithDemo();
  const starting = (await other.house.client()).request("demo.start").catch(() => "gone");
  await expect.poll(() => other.count.opened).toBe(1);
  await other.house.stop();
  await starting;
  expect(other.count.closed).toBe(1);
});

test("a demo that can't start is reported, and may be tried again", async () => {
  let tries = 0;
  const house = await openHouse({
    openDemo: async () => {
      tries++;
      if (tries === 1) throw new Error("no room in the temporary directory");
      return real();
    },
  });
  const client = await house.client();
  await expect(client.request("demo.start")).rejects.toThrow();
  expect(await client.request("demo.start")).toMatchObject({ path: "/demo" });
});

test.deep("if a process with a demo gets SIGTERM, it ends and leaves no folder behind", async () => {
  const temporary = temporaryFolder();
  const gateway = await startProcess({
    env: { TMPDIR: temporary, OPENAI_API_KEY: "a-key-nobody-may-spend" },
  });
  const client = await gateway.connect();
  const started = await client.request("demo.start");
  const demo = await enter(gateway, started);
  // The gateway uses the key in the environment. The demo must not.
  const models = async (one: GatewayClient) => (await one.request("models.list")).models;
  expect((await models(client)).map(({ provider }) => provider)).toContain("openai");
  expect((await models(demo)).map(({ provider }) => provider)).toEqual(["offline"]);
  const message = "spawn 3 jobs: wait 5 seconds, then say late";
  await demo.request("chat.send", { sessionKey: MAIN, message, idempotencyKey: "jobs" });
  const demos = () => readdirSync(temporary).filter((name) => name.startsWith("parley-demo-"));
  const [dir = ""] = demos();
  expect(existsSync(join(temporary, dir, "page", "state"))).toBe(true);
  expect(await gateway.end("SIGTERM")).toBe(0);
  expect(demos()).toEqual([]);
  expect(gateway.stderr()).toBe("");
});
