// Parts of a gateway that follow a change of the configuration file: hooks, jobs, slots.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { type Receiver, startReceiver } from "../../kit/hook-receiver.ts";
import { until } from "../../kit/until.ts";
import { type Json, openFollowing } from "./kit.ts";

type House = Awaited<ReturnType<typeof openFollowing>>;
const SECRETS = ["the-secret-of-the-first-receiver", "the-secret-of-the-second-one"] as const;

/** Saves other settings. Resolves when the gateway has read them. */
async function change(house: House, settings: Json): Promise<void> {
  const count = house.told.length;
  house.put(settings);
  house.reload();
  await until(() => house.told.length > count);
  expect(house.told.at(-1)).toMatchObject({ ok: true, restart: [] });
}

const hooksTo = (receiver: Receiver, secret: string, name = "news"): Json => ({
  hooks: {
    outgoing: [{ name, url: receiver.url, secret, events: ["session.created"], sessions: ["*:chat:*"] }],
  },
});

test("an outgoing hook that is changed gets the waiting events at its new address, with the new secret", async () => {
  const refuses = (_: unknown, response: ServerResponse): void => void response.writeHead(503).end();
  const first = await startReceiver(refuses, { secret: Buffer.from(SECRETS[0]) });
  const second = await startReceiver(undefined, { secret: Buffer.from(SECRETS[1]) });
  const house = await openFollowing(() => "an answer", hooksTo(first, SECRETS[0]));
  const { key } = await house.client.request("sessions.create", {});
  const early = await first.next(({ body }) => body.data.sessionKey === key);
  await change(house, hooksTo(second, SECRETS[1]));
  const late = await second.next(({ body }) => body.data.sessionKey === key);
  expect([late.id, late.text]).toEqual([early.id, early.text]);
});

test("an event under way to the old address is not sent to the new one, and a removed hook gets nothing", async () => {
  const held: ServerResponse[] = [];
  const hold = (_: unknown, response: ServerResponse): void => void held.push(response);
  const first = await startReceiver(hold, { secret: Buffer.from(SECRETS[0]) });
  const second = await startReceiver(undefined, { secret: Buffer.from(SECRETS[1]) });
  const house = await openFollowing(() => "an answer", hooksTo(first, SECRETS[0]));
  const create = async () => (await house.client.request("sessions.create", {})).key;
  const created = async (receiver: Receiver, key: string) =>
    (await receiver.next(({ body }) => body.data.sessionKey === key)).id;
  const one = await create();
  const id = await created(first, one);
  await change(house, hooksTo(second, SECRETS[1]));
  held[0]?.writeHead(204).end();
  const two = await create();
  await created(second, two);
  await change(house, {});
  const unheard = await create();
  await change(house, hooksTo(second, SECRETS[1]));
  const three = await create();
  await created(second, three);
  const rows = await house.app.store.db.selectFrom("deliveries").select("session_key").execute();
  expect(rows.map((row) => row.session_key)).not.toContain(unheard);
  expect(second.told.map(({ body }) => body.data.sessionKey)).toEqual([two, three]);
  expect(first.told.map((told) => told.id)).toEqual([id]);
});

test("the token of the web hooks is the newest one at the next request, and hooks can be switched off", async () => {
  const [old, fresh] = ["the-old-token-of-the-hooks", "the-new-token-of-the-hooks"];
  const house = await openFollowing(() => "an answer", { hooks: { enabled: true, token: old } });
  const post = async (token: string): Promise<number> => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const body = JSON.stringify({ text: "wake up" });
    return (await fetch(`http://127.0.0.1:${house.app.port}/hooks/wake`, { method: "POST", headers, body }))
      .status;
  };
  expect([await post(old), await post(fresh)]).toEqual([202, 401]);
  await change(house, { hooks: { enabled: true, token: fresh } });
  expect([await post(old), await post(fresh)]).toEqual([401, 202]);
  await change(house, { hooks: { enabled: false, token: fresh } });
  expect(await post(fresh)).toBe(404);
  const told = JSON.stringify([house.told, house.lines]);
  for (const token of [old, fresh]) expect(told).not.toContain(token);
});

test("jobs that fall due while they are disabled start once they are enabled, each once", async () => {
  const house = await openFollowing(() => "an answer");
  /** Adds a job that is soon due. On a busy machine its date may pass before the gateway reads it. */
  const add = async (inMs = 100): Promise<{ id: string; atMs: number }> => {
    const atMs = Date.now() + inMs;
    const wish = { schedule: { kind: "at", atMs } as const, message: "tick" };
    const added = await house.client.request("cron.add", wish).catch(() => undefined);
    return added === undefined ? add(inMs * 2) : { id: added.job.id, atMs };
  };
  const runs = async (id: string) => (await house.client.request("cron.runs", { id })).entries.length;
  const first = await add();
  await until(async () => (await runs(first.id)) === 1);
  await change(house, { cron: { enabled: false } });
  const second = await add();
  const third = await add();
  await until(() => Date.now() > third.atMs);
  expect([await runs(second.id), await runs(third.id)]).toEqual([0, 0]);
  await change(house, { cron: { enabled: true } });
  await until(async () => (await runs(second.id)) === 1 && (await runs(third.id)) === 1);
  expect(await runs(first.id)).toBe(1);
});

test("a raised limit starts the waiting runs, and a lowered one applies to the next", async () => {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const house = await openFollowing(
    async (request) => {
      const gate = Promise.withResolvers<void>();
      gates.set(request.lastUserText, gate);
      await gate.promise;
      return `done: ${request.lastUserText}`;
    },
    { agents: { defaults: { model: "local/one", maxConcurrent: 1 } } },
  );
  const limit = (maxConcurrent: number): Json => ({
    agents: { defaults: { model: "local/one", maxConcurrent } },
  });
  const begin = async (message: string) => {
    const { key: sessionKey } = await house.client.request("sessions.create", {});
    const sent = await house.client.agent({ message, sessionKey, idempotencyKey: crypto.randomUUID() });
    return sent.done;
  };
  const asked = (): string[] => [...gates.keys()];
  const done = [begin("a")];
  await until(() => gates.has("a"));
  done.push(begin("b"), begin("c"));
  await until(async () => (await house.client.request("status", {})).lanes?.queued === 2);
  expect(asked()).toEqual(["a"]);
  await change(house, limit(3));
  await until(() => gates.size === 3);
  await change(house, limit(1));
  done.push(begin("d"));
  for (const name of asked()) {
    expect(gates.has("d")).toBe(false);
    gates.get(name)?.resolve();
  }
  await until(() => gates.has("d"));
  gates.get("d")?.resolve();
  await Promise.all(done);
});
