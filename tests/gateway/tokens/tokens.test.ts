// Access tokens, which operators create: their rights, their end, and the secrecy of their text.

import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import type { TokenScope } from "../../../src/core/shapes/settings/settings.ts";
import { fakeWorld } from "../../kit/world.ts";
import { type Device, newDevice } from "../clients/devices.ts";
import { connectParams, type House, joined, openHouse, openRaw, type Raw, TOKEN } from "../kit.ts";

const PARTIAL = "a-token-for-research-and-jobs";
const READER = "a-token-that-may-read-only";
const RESEARCH = ["agent:research:*", "cron:*"];
const TOKENS = [
  { token: PARTIAL, role: "operator", scopes: ["operator.admin"], sessions: RESEARCH },
  { token: READER, role: "operator", scopes: ["operator.read"] },
] as const;

interface Wanted {
  readonly scopes?: readonly TokenScope[];
  readonly sessions?: readonly string[];
  readonly by?: string;
  readonly days?: number;
}

async function create(house: House, { by = TOKEN, scopes = ["operator.admin"], ...more }: Wanted = {}) {
  const client = await house.client({ token: by });
  const made = await client.request("tokens.create", { name: "laptop", scopes, ...more });
  return { id: made.entry.id, token: made.token ?? "", entry: made.entry };
}

const opened = (house: House, token: string) => joined(house, { auth: { token } });

async function refusal(house: House, token: string) {
  const raw = await openRaw(house.url);
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams({ auth: { token } }) });
  return (await raw.res("c")).error;
}

/** Connects with the device's signature over the challenge. Returns the device token. */
async function proven(raw: Raw, key: Device, more: Record<string, unknown>) {
  const { nonce } = (await raw.next((frame) => frame.event === "connect.challenge")).payload;
  const device = { id: key.id, publicKey: key.publicKey, signature: key.sign(nonce), signedAt: 1, nonce };
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams({ ...more, device }) });
  return { token: (await raw.res("c")).payload?.auth.deviceToken as string };
}

const overHttp = (house: House, token: string) =>
  fetch(`${house.http}/metrics`, { headers: { authorization: `Bearer ${token}` } });

test("TK1, I9: a token never gives rights that its creator's token lacks", async () => {
  const house = await openHouse({ gateway: { tokens: [...TOKENS] } });
  const partial = await house.client({ token: PARTIAL });
  for (const sessions of [["*"], ["agent:*"], ["agent:main:*"], ["agent:research:*", "agent:main:main"]]) {
    const made = partial.request("tokens.create", { name: "more", scopes: ["operator.read"], sessions });
    await expect(made, String(sessions)).rejects.toMatchObject({
      code: "FORBIDDEN",
      message: expect.stringContaining(`operator.write, operator.read for ${RESEARCH.join(", ")}`),
    });
  }
  const inherited = await create(house, { by: PARTIAL });
  expect(inherited.entry.sessions).toEqual(RESEARCH);
  const child = await house.client({ token: inherited.token });
  await expect(child.request("chat.history", { sessionKey: "agent:main:main" })).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
  const reader = await create(house, {
    by: PARTIAL,
    scopes: ["operator.read"],
    sessions: ["agent:research:m*"],
  });
  const narrow = await house.client({ token: reader.token });
  const { sessions } = await narrow.request("sessions.list", {});
  expect(sessions.map(({ key }) => key)).toEqual(["agent:research:main"]);
  for (const [method, params] of [
    ["chat.send", { sessionKey: "agent:research:main", message: "hello" }],
    ["tokens.list", {}],
    ["tokens.create", { name: "x", scopes: ["operator.read"], idempotencyKey: "x" }],
  ] as const)
    await expect(narrow.call(method, params), method).rejects.toMatchObject({ code: "FORBIDDEN" });
  const asAdmin = await joined(house, { auth: { token: reader.token }, scopes: ["operator.admin"] });
  asAdmin.send({ type: "req", id: "l", method: "tokens.list", params: {} });
  expect((await asAdmin.res("l")).error?.code).toBe("FORBIDDEN");
});

test("TK1: a caller sees, narrows and revokes only tokens whose rights are within its own", async () => {
  const house = await openHouse({ gateway: { tokens: [...TOKENS] } });
  const whole = await create(house);
  const ops = await create(house, { sessions: ["agent:main:*"] });
  const own = await create(house, { by: PARTIAL, scopes: ["operator.write"] });
  const partial = await house.client({ token: PARTIAL });
  const seen = await partial.request("tokens.list", {});
  expect(seen.tokens.map(({ id }) => id)).toEqual([own.id]);
  expect(seen.configured).toMatchObject([
    { setting: "gateway.auth.tokens[0]", current: true, sessions: RESEARCH },
  ]);
  for (const { id } of [whole, ops, { id: "unknown" }])
    for (const method of ["tokens.revoke", "tokens.narrow"] as const)
      await expect(partial.request(method, { id })).rejects.toMatchObject({
        code: "INVALID_REQUEST",
        message: expect.stringContaining(`there is no access token "${id}"`),
      });
  const admin = await house.client();
  const all = await admin.request("tokens.list", {});
  expect(new Set(all.tokens.map(({ id }) => id))).toEqual(new Set([whole.id, ops.id, own.id]));
  expect(all.configured.map(({ setting, role, scopes }) => [setting, role, scopes.length])).toEqual([
    ["generated", "operator", 3],
    ["gateway.auth.tokens[0]", "operator", 3],
    ["gateway.auth.tokens[1]", "operator", 1],
  ]);
  const rows = Object.fromEntries(all.tokens.map((row) => [row.id, row]));
  expect(rows[own.id]).toMatchObject({ createdFrom: "gateway.auth.tokens[0]", sessions: RESEARCH });
  expect(await partial.request("tokens.revoke", { id: own.id })).toMatchObject({ ok: true, id: own.id });
});

test("narrowing removes rights at once, never adds any, and closes the token's connections", async () => {
  const house = await openHouse();
  const { id, token } = await create(house, { sessions: RESEARCH });
  const admin = await house.client();
  for (const more of [{ sessions: ["*"] }, { sessions: ["agent:main:*"] }])
    await expect(admin.request("tokens.narrow", { id, ...more })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
    });
  const before = await opened(house, token);
  const narrowed = await admin.request("tokens.narrow", {
    id,
    scopes: ["operator.read"],
    sessions: ["cron:*"],
  });
  expect(narrowed.entry).toMatchObject({ scopes: ["operator.read"], sessions: ["cron:*"] });
  expect(await before.closed()).toMatchObject({
    code: 1008,
    reason: expect.stringContaining("revoked or changed"),
  });
  const after = await house.client({ token });
  expect((await after.request("sessions.list", {})).sessions).toEqual([]);
  await expect(
    after.call("chat.send", { sessionKey: "agent:research:main", message: "x" }),
  ).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
  const widened = admin.request("tokens.narrow", { id, scopes: ["operator.admin"] });
  await expect(widened).rejects.toMatchObject({ message: expect.stringContaining("Create a new token") });
});

test("a revoked or expired token is refused by every interface, and its connections are closed", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const revoked = await create(house);
  expect((await overHttp(house, revoked.token)).status).toBe(200);
  const raw = await opened(house, revoked.token);
  const admin = await house.client();
  await admin.request("tokens.revoke", { id: revoked.id });
  expect(await raw.closed()).toMatchObject({ code: 1008 });
  expect(await refusal(house, revoked.token)).toMatchObject({ code: "UNAUTHORIZED" });
  expect((await overHttp(house, revoked.token)).status).toBe(401);
  const brief = await create(house, { days: 1 });
  expect(brief.entry.expiresAtMs - brief.entry.createdAtMs).toBe(86_400_000);
  const connected = await opened(house, brief.token);
  await house.store.transaction(async (tx) => {
    await tx
      .updateTable("access_tokens")
      .set({ expires_at: world.clock.now() + 1 })
      .execute();
  });
  await world.advance(house.settings.gateway.tickIntervalMs);
  expect(await connected.closed()).toMatchObject({ code: 1008 });
  expect((await refusal(house, brief.token))?.message).toContain("the access token has expired");
  const [id, mark] = brief.token.split(".").slice(1);
  for (const forged of [`pat1.${id}.AAAA`, `pat1.other.${mark}`, `pat1.${id}`, `${brief.token}.x`])
    expect((await refusal(house, forged))?.message, forged).toContain("the token is not valid");
});

test("AT1: if a token is revoked, a connection at another gateway of the store closes at that gateway's next tick", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const { id, token } = await create(house);
  const raw = await opened(house, token);
  const kept = await opened(house, (await create(house)).token);
  await house.store.transaction((tx) => tx.deleteFrom("access_tokens").where("id", "=", id).execute());
  await world.advance(house.settings.gateway.tickIntervalMs);
  expect(await raw.closed()).toMatchObject({ code: 1008 });
  kept.send({ type: "req", id: "h", method: "health", params: {} });
  expect(await kept.res("h")).toMatchObject({ ok: true });
});

test("TK2, I14: only the first answer contains the text of a token, and no row of the store does", async () => {
  const house = await openHouse();
  const admin = await joined(house);
  const ask = async (id: string, params: object) => {
    admin.send({ type: "req", id, method: "tokens.create", params });
    return (await admin.res(id)).payload as PayloadOf<"tokens.create">;
  };
  const params = { name: "laptop", scopes: ["operator.read"], idempotencyKey: "one" };
  const first = await ask("1", params);
  expect(first.token).toMatch(/^pat1\.[^.]+\.[^.]{43}$/);
  const again = await ask("2", params);
  expect(again).toEqual({ ok: true, entry: first.entry });
  const mark = first.token?.split(".").at(-1) ?? "";
  for (const table of ["idempotency", "access_tokens"] as const) {
    const rows = await house.store.db.selectFrom(table).selectAll().execute();
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(mark);
  }
  admin.send({ type: "req", id: "3", method: "tokens.list", params: {} });
  expect(JSON.stringify(await admin.res("3"))).not.toContain(mark);
});

test("AU6: an access token cannot create tokens, jobs, nodes or device tokens, because these would outlive it", async () => {
  const house = await openHouse();
  const { token } = await create(house);
  const client = await house.client({ token });
  expect(await client.request("tokens.list", {})).toMatchObject({
    mayCreate: false,
    tokens: [{ current: true }],
  });
  const job = { message: "m", schedule: { kind: "every", everyMs: 60_000 } };
  for (const [method, params] of [
    ["tokens.create", { name: "x", scopes: ["operator.read"], idempotencyKey: "x" }],
    ["cron.add", job],
    ["cron.update", { id: "x", patch: { message: "m" } }],
    ["node.pair.approve", { code: "ABCD-EFGH" }],
    ["channels.pair.approve", { channel: "telegram", code: "ABCDEFGH" }],
    ["config.set", { text: "{}", revision: "none" }],
  ] as const)
    await expect(client.call(method, params), method).rejects.toMatchObject({
      code: "FORBIDDEN",
      message: expect.stringMatching(/an access token (cannot|nor)/),
    });
});

test("AU6: a device token cannot create access tokens, because these would be valid without the device's key", async () => {
  const house = await openHouse();
  const key = newDevice();
  const first = await openRaw(house.url);
  const { token } = await proven(first, key, {});
  const raw = await openRaw(house.url);
  await proven(raw, key, { auth: { token } });
  raw.send({ type: "req", id: "l", method: "tokens.list", params: {} });
  expect((await raw.res("l")).payload.mayCreate).toBe(false);
  const params = { name: "x", scopes: ["operator.read"], idempotencyKey: "x" };
  raw.send({ type: "req", id: "t", method: "tokens.create", params });
  expect((await raw.res("t")).error).toMatchObject({
    code: "FORBIDDEN",
    message: expect.stringContaining("nor a device token"),
  });
});

test("if a token of the configuration is narrowed or removed, the tokens that were created with it lose these rights, too", async () => {
  const house = await openHouse({ gateway: { tokens: [...TOKENS] } });
  const both = await create(house, { by: PARTIAL });
  await house.stop();
  const [partial] = TOKENS;
  const narrowed = { ...partial, scopes: ["operator.read"] as const, sessions: ["cron:*"] };
  const other = { ...partial, token: "a-token-for-ops-only-and-long", sessions: ["agent:ops:*"] };
  const moved = { ...partial, sessions: ["agent:moved:*"] };
  const away = await openHouse({ dir: house.dir, gateway: { tokens: [moved, other] } });
  const [lost] = (await (await away.client()).request("tokens.list", {})).tokens;
  expect(lost).toMatchObject({ id: both.id, sessions: [] });
  const stranger = await away.client({ token: other.token });
  expect((await stranger.request("tokens.list", {})).tokens).toEqual([]);
  await away.stop();
  const second = await openHouse({ dir: house.dir, gateway: { tokens: [narrowed] } });
  const admin = await second.client();
  const [row] = (await admin.request("tokens.list", {})).tokens;
  expect(row).toMatchObject({ id: both.id, scopes: ["operator.read"], sessions: ["cron:*"] });
  const client = await second.client({ token: both.token });
  expect((await client.request("sessions.list", {})).sessions).toEqual([]);
  await second.stop();
  const third = await openHouse({ dir: house.dir });
  expect((await refusal(third, both.token))?.message).toContain("the token is not valid");
  const [left] = (await (await third.client()).request("tokens.list", {})).tokens;
  expect(left?.createdFrom).toBeUndefined();
  await (await third.client()).request("tokens.revoke", { id: both.id });
  expect((await (await third.client()).request("tokens.list", {})).tokens).toEqual([]);
});

test("I9: the holder of a weaker token of the configuration cannot forge a token with the id of a stronger one", async () => {
  const house = await openHouse({ gateway: { tokens: [...TOKENS] } });
  const { id } = await create(house);
  const seal = createHmac("sha256", READER).update(`access:${id}`).digest("base64url");
  expect((await refusal(house, `pat1.${id}.${seal}`))?.message).toContain("the access token was revoked");
});

test("a store has at most 500 access tokens, and their names are one plain line", async () => {
  const house = await openHouse();
  const admin = await house.client();
  const { id } = await create(house);
  await house.store.transaction(async (tx) => {
    const row = await tx.selectFrom("access_tokens").selectAll().executeTakeFirstOrThrow();
    for (let n = 0; n < 499; n++)
      await tx
        .insertInto("access_tokens")
        .values({ ...row, id: `t${n}` })
        .execute();
  });
  const params = { name: "one more", scopes: ["operator.read"] } as const;
  await expect(admin.request("tokens.create", params)).rejects.toThrow("there are already 500 access tokens");
  await admin.request("tokens.revoke", { id });
  expect(await admin.request("tokens.create", params)).toMatchObject({ ok: true });
  for (const name of ["  ", "two\nlines", "x".repeat(65)])
    await expect(admin.request("tokens.create", { ...params, name })).rejects.toThrow(
      "name must be one line",
    );
});
