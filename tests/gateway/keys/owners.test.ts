// Idempotency keys of several callers: each token has separate keys, and each device of a token.

import { describe, expect } from "vitest";
import { both, share, test } from "../../kit/deep.ts";
import { type Device, joinedNode, NODE_TOKENS, newDevice, pairedDevice } from "../clients/devices.ts";
import { connectParams, type House, openHouse, openRaw, quiet, type Raw } from "../kit.ts";
import { openerOf } from "../opener.ts";

const RESEARCH = "agent:research:main";
const MAIN = "agent:main:main";
const OTHER = "a-second-token-of-the-gateway";
const RESEARCHER = "a-token-for-research-alone";
const tokens = [
  { token: OTHER, role: "operator", scopes: ["operator.admin"] },
  { token: RESEARCHER, role: "operator", scopes: ["operator.write"], sessions: ["agent:research:*"] },
] as const;

/** Returns a function that opens gateways one after another on one store, as after restarts. */
async function houseOpener(kind: string): Promise<() => Promise<House>> {
  const open = await openerOf(kind);
  return () => open({ gateway: { tokens: [...tokens, ...NODE_TOKENS] } });
}

/** Connects a device, which signs the challenge. */
async function device(house: House, key: Device, token?: string): Promise<Raw & { token: string }> {
  const raw = await openRaw(house.url);
  const { nonce } = (await raw.next((frame) => frame.event === "connect.challenge")).payload;
  const proof = { id: key.id, publicKey: key.publicKey, signature: key.sign(nonce), signedAt: 1, nonce };
  const auth = token === undefined ? {} : { auth: { token } };
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams({ ...auth, device: proof }) });
  return { ...raw, token: (await raw.res("c")).payload.auth.deviceToken };
}

let asked = 0;
async function ask(raw: Raw, method: string, params: object) {
  const id = `ask-${++asked}`;
  raw.send({ type: "req", id, method, params });
  return raw.res(id);
}

const runsOf = async (house: House) =>
  (await house.store.db.selectFrom("runs").select(["run_id", "session_key"]).execute()).length;

describe.each(share(["embedded"], ["PostgreSQL"]))("a key belongs to its caller: %s", (kind) => {
  const test = both;
  test("if two tokens use one key at the same moment, each gets its own answer, and nothing is executed twice", async () => {
    const open = await houseOpener(kind);
    const house = await open();
    const [one, two] = [await house.client(), await house.client({ token: OTHER })];
    for (let round = 0; round < 5; round++) {
      const key = `moment-${round}`;
      const sends = [
        one.request("chat.send", { sessionKey: MAIN, message: "a", idempotencyKey: key }),
        two.request("chat.send", { sessionKey: RESEARCH, message: "b", idempotencyKey: key }),
      ];
      const ids = (await Promise.all(sends)).map(({ runId }) => runId);
      expect(new Set(ids).size).toBe(2);
      expect(ids).toContain(key);
    }
    expect(await runsOf(house)).toBe(10);
  });

  test("for every other method, two tokens can use the same key independently, also after a restart", async () => {
    const open = await houseOpener(kind);
    const first = await open();
    const calls: [string, object][] = [
      ["sessions.create", { agentId: "research" }],
      ["send", { to: RESEARCH, message: "a note" }],
      ["sessions.patch", { key: RESEARCH, label: "desk" }],
      ["tools.invoke", { name: "sessions_list" }],
      ["chat.send", { sessionKey: RESEARCH, message: "/think high" }],
    ];
    const all = async (house: House, token?: string) => {
      const client = await house.client(token === undefined ? {} : { token });
      const answers: unknown[] = [];
      for (const [at, [method, params]] of calls.entries())
        answers.push(await client.call(method, { ...params, idempotencyKey: `k${at}` }));
      return answers;
    };
    const before = [await all(first), await all(first, OTHER)];
    for (const at of [0, 1, 4]) expect(before[1]?.[at]).not.toEqual(before[0]?.[at]);
    await quiet(first);
    const count = await runsOf(first);
    await first.stop();
    const second = await open();
    expect([await all(second), await all(second, OTHER)]).toEqual(before);
    expect(await runsOf(second)).toBe(count);
  });

  test("two devices with the same token and key have separate runs, also after a reconnect and a restart", async () => {
    const open = await houseOpener(kind);
    const first = await open();
    const [phone, desk] = [newDevice(), newDevice()];
    const params = { sessionKey: RESEARCH, message: "hello", idempotencyKey: "shared" };
    const [byPhone, byDesk] = [await device(first, phone), await device(first, desk)];
    const answers = [await ask(byPhone, "chat.send", params), await ask(byDesk, "chat.send", params)];
    const [onPhone, onDesk] = answers.map(({ payload }) => payload);
    expect(onPhone).toEqual({ runId: "shared", status: "started" });
    expect(onDesk.runId).not.toBe("shared");
    // The same token without a device counts as a third caller.
    const plain = await (await first.client()).request("chat.send", params);
    expect(new Set(["shared", onDesk.runId, plain.runId]).size).toBe(3);
    const again = async (house: House, key: Device, token?: string) =>
      (await ask(await device(house, key, token), "chat.send", params)).payload;
    // Signs in with the gateway's token, and later with the device's own token.
    expect(await again(first, phone)).toEqual(onPhone);
    expect(await again(first, phone, byPhone.token)).toEqual(onPhone);
    await quiet(first);
    await first.stop();
    const second = await open();
    expect(await again(second, phone, byPhone.token)).toEqual(onPhone);
    expect(await again(second, desk, byDesk.token)).toEqual(onDesk);
    expect(await (await second.client()).request("chat.send", params)).toEqual(plain);
    expect(await runsOf(second)).toBe(3);
  });

  test("two nodes of one token can use the same key for events, and a node of an older version gets its old answer", async () => {
    const open = await houseOpener(kind);
    const house = await open();
    const [one, two] = [await pairedDevice(house), await pairedDevice(house)];
    const [byOne, byTwo] = [await joinedNode(house, one), await joinedNode(house, two)];
    const params = { event: "agent.request", payload: { message: "seen" }, idempotencyKey: "e" };
    const { payload: first } = await ask(byOne, "node.event", params);
    const { payload: second } = await ask(byTwo, "node.event", params);
    expect(second.runId).not.toBe(first.runId);
    expect((await ask(byOne, "node.event", params)).payload).toEqual(first);
    // Stores the row as an older version did.
    const row = await house.store.db
      .selectFrom("idempotency")
      .selectAll()
      .where("method", "=", "node.event")
      .where("caller", "like", `%:${one.id}`)
      .executeTakeFirstOrThrow();
    const old = { key: `node:${one.id}:e`, caller: row.caller.replace(/:.*/, "") };
    await house.store.transaction((tx) =>
      tx.updateTable("idempotency").set(old).where("key", "=", row.key).execute(),
    );
    expect((await ask(byOne, "node.event", params)).payload).toEqual(first);
    expect((await ask(byTwo, "node.event", params)).payload).toEqual(second);
  });

  test("an answer stored by an older version is returned to the devices of its token, and to no other token", async () => {
    const open = await houseOpener(kind);
    const house = await open();
    const client = await house.client();
    const params = { sessionKey: RESEARCH, message: "hello", idempotencyKey: "old" };
    const answer = await client.request("chat.send", params);
    await house.store.transaction(async (tx) => {
      await tx.updateTable("idempotency").set({ key: "old" }).execute();
      await tx.updateTable("runs").set({ asked_by: null }).execute();
    });
    expect(await client.request("chat.send", params)).toEqual(answer);
    expect((await ask(await device(house, newDevice()), "chat.send", params)).payload).toEqual(answer);
    const other = await house.client({ token: OTHER });
    expect(await other.request("chat.send", params)).not.toEqual(answer);
  });

  test("after the answer of a key was deleted (after a week), the key still starts no second run", async () => {
    const open = await houseOpener(kind);
    const house = await open();
    const [one, two] = [await house.client(), await house.client({ token: OTHER })];
    const params = { sessionKey: RESEARCH, message: "hello", idempotencyKey: "week" };
    await one.request("chat.send", params);
    await two.request("chat.send", params);
    await house.store.transaction((tx) => tx.deleteFrom("idempotency").execute());
    for (const client of [one, two]) {
      await expect(client.request("chat.send", params)).rejects.toMatchObject({ code: "CONFLICT" });
    }
    expect(await runsOf(house)).toBe(2);
  });
});

test("a key that equals another caller's run id reveals nothing about that run, and does not stop it", async () => {
  const gate = Promise.withResolvers<string>();
  const house = await openHouse({
    gateway: { tokens },
    play: ({ run }) => (run.sessionKey === MAIN ? gate.promise : `echo ${run.input.text}`),
  });
  const admin = await house.client();
  const researcher = await house.client({ token: RESEARCHER });
  await admin.request("chat.send", { sessionKey: MAIN, message: "a secret plan", idempotencyKey: "hidden" });
  const params = { sessionKey: RESEARCH, message: "mine", idempotencyKey: "hidden" };
  const events: { runId: string }[] = [];
  researcher.on("chat", (event) => events.push(event));
  const mine = researcher.agent(params);
  const { runId } = await mine.accepted;
  expect(runId).not.toBe("hidden");
  expect(await mine.done).toMatchObject({ runId, status: "ok", result: { text: "echo mine" } });
  // With this id the caller can't wait for main's run, stop it, or receive its events.
  const wait = researcher.request("agent.wait", { runId: "hidden" });
  await expect(wait).rejects.toMatchObject({ code: "NOT_FOUND" });
  const stopMain = researcher.request("chat.abort", { sessionKey: MAIN, runId: "hidden" });
  await expect(stopMain).rejects.toMatchObject({ code: "FORBIDDEN" });
  const stopped = await researcher.request("chat.abort", { sessionKey: RESEARCH, runId: "hidden" });
  expect(stopped).toEqual({ ok: true, aborted: false, runIds: [] });
  gate.resolve("done");
  expect(await admin.request("agent.wait", { runId: "hidden" })).toMatchObject({ status: "ok" });
  expect([...new Set(events.map((event) => event.runId))]).toEqual([runId]);
});
