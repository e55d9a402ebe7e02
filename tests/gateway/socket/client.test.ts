// The client: errors, reconnects, and waits that continue.

import { expect, test } from "vitest";
import { type ClientState, connect, GatewayError } from "../../../src/contract/client/node.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { fakeWorld, settableWorld, withTimers } from "../../kit/world.ts";
import { openHouse, TOKEN } from "../kit.ts";

test("another program on the port is not mistaken for a gateway", async () => {
  const { port, close } = await serveHttp((_, response) => void response.end("hello"));
  cleanup(close);
  await expect(connect({ url: `ws://127.0.0.1:${port}`, token: TOKEN })).rejects.toMatchObject({
    code: "UNREACHABLE",
  });
});

test("an error has a general code, a specific code and a hint", async () => {
  const house = await openHouse();
  const client = await house.client();
  await expect(client.request("chat.abort", { sessionKey: "agent:main:chat:none" })).rejects.toMatchObject({
    code: "NOT_FOUND",
    details: { code: "session_not_found" },
  });
});

test("events reach listeners and iterators, and a listener that throws does not affect the others", async () => {
  const house = await openHouse();
  const world = fakeWorld({ clock: "real" });
  const client = await house.client({ world });
  client.on("chat", () => {
    throw new Error("mine");
  });
  const heard: string[] = [];
  const off = client.on("chat", ({ state, runId }) => heard.push(`${runId} ${state}`));
  const over = new AbortController();
  const events = client.events({ signal: over.signal });
  const read = (async () => {
    const names: string[] = [];
    for await (const frame of events) {
      names.push(frame.event);
      if (frame.event === "chat") break;
    }
    return names;
  })();
  await client.agent({ message: "x", idempotencyKey: "e" }).done;
  expect(await read).toContain("chat");
  expect(heard).toEqual(["e final"]);
  expect(world.logged).toMatchObject([{ level: "error", fields: { err: new Error("mine") } }]);
  off();
  const none = client.events({ signal: over.signal })[Symbol.asyncIterator]();
  over.abort();
  expect(await none.next()).toMatchObject({ done: true });
});

test("waits and requests with a key continue after a restart; writes without a key end with an unknown outcome", async () => {
  const dir = temporaryFolder();
  let isSecond = false;
  const play = async ({ signal }: { signal: AbortSignal }): Promise<string> => {
    if (!isSecond) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return "after the restart";
  };
  const first = await openHouse({ dir, play });
  const client = await first.client({ reconnect: true });
  const states: ClientState[] = [];
  client.onState((state) => states.push(state));
  const call = client.agent({ message: "x", idempotencyKey: "long" });
  await call.accepted;
  const waited = client.call("agent.wait", { runId: "long", timeoutMs: 60_000 });
  const unsure = client.call("tools.invoke", {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 },
  });
  unsure.catch(() => {});
  await client.call("health");
  isSecond = true;
  await first.stop();
  const second = await openHouse({ dir, play, gateway: { port: first.port } });
  expect(await call.done).toMatchObject({ status: "ok", result: { text: "after the restart" } });
  expect(await waited).toMatchObject({ status: "ok" });
  await expect(unsure).rejects.toBeInstanceOf(GatewayError);
  expect(states).toEqual(["reconnecting", "connected"]);
  expect(client.hello.server.connId).toEqual(expect.any(String));
  expect(second.port).toBe(first.port);
});

test("a connection that has heard from its gateway stays open when the clock is set forward", async () => {
  const { world, set } = settableWorld();
  const house = await openHouse();
  const client = await house.client({ world });
  const silentMs = 3 * client.hello.policy.tickIntervalMs;
  await world.advance(silentMs / 2);
  await client.request("health");
  set(86_400_000);
  await world.advance(silentMs / 2);
  expect(await client.request("health")).toMatchObject({ ok: true });
  await world.advance(silentMs);
  await expect(client.request("health")).rejects.toMatchObject({ code: "CLOSED" });
});

test("a program that waits for an answer does not exit while its client reconnects", async () => {
  const house = await openHouse();
  const kept: unknown[] = [];
  const world = withTimers(quietWorld(), (fire, _ms, keep) => {
    kept.push(keep);
    return fire;
  });
  const client = await house.client({ reconnect: true, world });
  const broken = Promise.withResolvers<void>();
  client.onState(() => broken.resolve());
  await house.stop();
  await broken.promise;
  expect(kept.at(-1)).toBe("alive");
});

test("if a state listener makes a request when the connection is back, the request is sent once", async () => {
  const dir = temporaryFolder();
  const first = await openHouse({ dir });
  const client = await first.client({ reconnect: true });
  const back = Promise.withResolvers<unknown>();
  client.onState((state) => {
    if (state !== "connected") return;
    client.call("chat.inject", { sessionKey: "main", message: "again" }).then(back.resolve, back.reject);
  });
  await first.stop();
  const second = await openHouse({ dir, gateway: { port: first.port } });
  await back.promise;
  // Writing requests are handled in order, so earlier ones are done when this one is answered.
  await client.call("chat.inject", { sessionKey: "main", message: "last" });
  await client.agent({ message: "x", idempotencyKey: "e" }).done;
  const history = await (await second.client()).request("chat.history", {
    sessionKey: "main",
  });
  expect(JSON.stringify(history.messages).match(/"again"/g)).toHaveLength(1);
});

test("a client that is closed, or may not reconnect, leaves no request pending", async () => {
  const house = await openHouse({ play: () => new Promise(() => {}) });
  const [closing, broken] = [await house.client({ reconnect: true }), await house.client()];
  const calls = [closing, broken].map((client, index) =>
    client.agent({ message: "x", idempotencyKey: `${index}` }),
  );
  for (const call of calls) await call.accepted;
  closing.close();
  await expect(calls[0]?.done).rejects.toMatchObject({ code: "CLOSED" });
  await expect(closing.call("health")).rejects.toMatchObject({ code: "CLOSED" });
  await house.gateway.close();
  await expect(calls[1]?.done).rejects.toMatchObject({ code: "CLOSED" });
  expect(broken.state).toBe("closed");
});
