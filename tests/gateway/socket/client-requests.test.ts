// The client's requests: signals, keys, limits, and reconnects, over both kinds of WebSocket if they differ.

import { expect, test } from "vitest";
import { connect as connectNode, GatewayError } from "../../../src/contract/client/node.ts";
import { connect as connectWeb } from "../../../src/contract/client/web.ts";
import { PENDING_REQUESTS_MAX } from "../../../src/contract/protocol.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { scriptedGateway } from "../../kit/scripted-gateway.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openHouse, TOKEN } from "../kit.ts";

const KINDS = [
  ["ws", connectNode],
  ["the platform's socket", connectWeb],
] as const;

test.each(KINDS)(
  "over %s: a client connects, sends requests, follows runs and events, survives a restart and closes",
  async (_, connect) => {
    const dir = temporaryFolder();
    const first = await openHouse({ dir });
    const client = await connect({ url: `${first.http}/#token=x`, token: TOKEN });
    cleanup(() => client.close());
    expect(client.hello.protocol).toBe(3);
    expect((await client.request("health")).ok).toBe(true);
    const events = client.events({ sessionKey: "main", names: ["chat"] });
    const { runId, accepted, done } = client.agent({ message: "hi" });
    expect(await accepted).toMatchObject({ runId, sessionKey: "agent:main:main" });
    expect(await done).toMatchObject({ runId, status: "ok", result: { text: "echo hi" } });
    expect((await events.next()).value).toMatchObject({ payload: { runId, state: "final" } });
    await first.stop();
    const second = await openHouse({ dir, gateway: { port: first.port } });
    expect(await client.agent({ message: "again" }).done).toMatchObject({ status: "ok" });
    const wait = client.request("agent.wait", { runId: "none" });
    await expect(wait).rejects.toMatchObject({ code: "NOT_FOUND", reason: "run_not_found" });
    client.close();
    await expect(client.request("health")).rejects.toMatchObject({ code: "CLOSED" });
    await second.stop();
  },
);

test.each(KINDS)(
  "over %s: an unreachable gateway, a wrong token and an invalid address are reported",
  async (_, connect) => {
    const house = await openHouse();
    const refused = connect({ url: house.url, token: "guess" });
    await expect(refused).rejects.toMatchObject({ code: "UNAUTHORIZED", name: "GatewayError" });
    await expect(connect({ url: "127.0.0.1:7275" })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    await expect(connect({ url: "file:///x" })).rejects.toBeInstanceOf(GatewayError);
    await house.stop();
    await expect(connect({ url: house.url, token: TOKEN })).rejects.toMatchObject({
      code: "UNREACHABLE",
      hint: expect.stringContaining("Check that it runs"),
    });
  },
);

test("a signal ends the wait for a request or a run, but not the run", async () => {
  const go = Promise.withResolvers<string>();
  const house = await openHouse({ play: () => go.promise });
  const client = await house.client();
  const stop = new AbortController();
  const call = client.agent({ message: "x" }, { signal: stop.signal });
  await call.accepted;
  const wait = client.request("agent.wait", { runId: call.runId }, { signal: stop.signal });
  const reason = new Error("enough");
  stop.abort(reason);
  for (const one of [call.done, wait])
    await expect(one).rejects.toMatchObject({ code: "ABORTED", cause: reason });
  await expect(client.request("health", {}, { signal: stop.signal })).rejects.toMatchObject({
    code: "ABORTED",
  });
  go.resolve("it went on");
  expect(await client.request("agent.wait", { runId: call.runId })).toMatchObject({ status: "ok" });
});

test("an aborted signal ends connecting, and closes a client that is connected", async () => {
  const house = await openHouse();
  const aborted = AbortSignal.abort();
  await expect(connectNode({ url: house.url, token: TOKEN, signal: aborted })).rejects.toMatchObject({
    code: "ABORTED",
  });
  const early = new AbortController();
  const opening = connectNode({ url: house.url, token: TOKEN, signal: early.signal });
  early.abort();
  await expect(opening).rejects.toMatchObject({ code: "ABORTED" });
  const late = new AbortController();
  const client = await house.client({ signal: late.signal });
  late.abort();
  expect(client.state).toBe("closed");
});

test("if no key is given, a required one is generated; a given key is kept", async () => {
  const gateway = await scriptedGateway();
  const client = await connectNode({ url: gateway.url, reconnect: false });
  cleanup(() => client.close());
  for (const idempotencyKey of ["mine", undefined]) {
    void client.request("chat.send", { sessionKey: "main", message: "x", idempotencyKey }).catch(() => {});
    const { params } = await gateway.request();
    expect(params.idempotencyKey).toEqual(idempotencyKey ?? expect.stringMatching(/^[0-9a-f-]{36}$/));
  }
  void client.request("sessions.list").catch(() => {});
  expect((await gateway.request()).params).toEqual({});
  void client.call("chat.send", { sessionKey: "main" }).catch(() => {});
  expect((await gateway.request()).params).toEqual({ sessionKey: "main" });
});

test("CL2: a wait that continues over a new connection keeps its original deadline", async () => {
  const gateway = await scriptedGateway();
  const world = fakeWorld();
  const client = await connectNode({ url: gateway.url, world });
  cleanup(() => client.close());
  const waits = [
    client.request("agent.wait", { runId: "a", timeoutMs: 60_000 }),
    client.request("agent.wait", { runId: "b" }),
  ];
  expect((await gateway.request()).params).toEqual({ runId: "a", timeoutMs: 60_000 });
  expect((await gateway.request()).params).toEqual({ runId: "b" });
  await world.advance(20_000);
  gateway.hangUp();
  await world.timerWithin(1_000);
  await world.advance(1_000);
  const again = [await gateway.request(), await gateway.request()];
  expect(again.map(({ params }) => params)).toEqual([
    { runId: "a", timeoutMs: 39_000 },
    { runId: "b", timeoutMs: 9_000 },
  ]);
  for (const request of again) request.answer({ status: "ok" });
  expect(await Promise.all(waits)).toEqual([{ status: "ok" }, { status: "ok" }]);
});

test("CL2: a request that a stopping gateway refused is repeated at the next one, if repeating is harmless", async () => {
  const gateway = await scriptedGateway();
  const world = fakeWorld();
  const client = await connectNode({ url: gateway.url, world });
  cleanup(() => client.close());
  const stopping = { code: "UNAVAILABLE", message: "stopping", details: { code: "shutting_down" } };
  const keyed = client.agent({ message: "x", idempotencyKey: "k" });
  (await gateway.request()).refuse(stopping);
  const bare = client.call("chat.inject", { sessionKey: "main", message: "x" });
  (await gateway.request()).refuse(stopping);
  await expect(bare).rejects.toMatchObject({ code: "UNAVAILABLE", reason: "shutting_down" });
  gateway.hangUp();
  await world.timerWithin(1_000);
  await world.advance(1_000);
  const again = await gateway.request();
  expect(again.params).toMatchObject({ message: "x", idempotencyKey: "k" });
  again.answer({ runId: "k", status: "accepted", acceptedAt: 1, sessionKey: "s" });
  again.answer({ runId: "k", status: "ok", summary: "completed" });
  expect(await keyed.done).toMatchObject({ status: "ok" });
});

test("CL4: requests beyond the limit are refused, with advice", async () => {
  const gateway = await scriptedGateway();
  const client = await connectNode({ url: gateway.url, reconnect: false });
  cleanup(() => client.close());
  const calls = Array.from({ length: PENDING_REQUESTS_MAX }, () => client.request("health"));
  for (const call of calls) call.catch(() => {});
  const refused = client.request("health");
  await expect(refused).rejects.toMatchObject({ code: "RATE_LIMITED", retryable: true, hint: /Wait/ });
  const first = await gateway.request();
  first.answer({ ok: true });
  await calls[0];
  void client.request("health").catch(() => {});
  expect(client.state).toBe("connected");
});

test("if a state listener closes the client when the connection breaks, the client stays closed and retries nothing", async () => {
  const gateway = await scriptedGateway();
  const world = fakeWorld();
  const client = await connectNode({ url: gateway.url, world });
  const closed = Promise.withResolvers<void>();
  client.onState((state) => {
    if (state === "reconnecting") client.close();
    else closed.resolve();
  });
  gateway.hangUp();
  await closed.promise;
  expect([client.state, world.pendingDelays()]).toEqual(["closed", []]);
});
