// The use of access tokens: connections and requests end with their token, and the store records the last use.

import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { AccessTokenUsers, accessTokenRows } from "../../../src/gateway/access-tokens.ts";
import { createAuthority } from "../../../src/gateway/auth.ts";
import { authenticate, type Env } from "../../../src/gateway/http/request.ts";
import { createShares } from "../../../src/gateway/shares.ts";
import type { Store } from "../../../src/store/sql.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { raw } from "../clients/mcp.ts";
import { type House, openHouse, TOKEN } from "../kit.ts";

async function create(house: House) {
  const client = await house.client();
  const made = await client.request("tokens.create", { name: "laptop", scopes: ["operator.admin"] });
  return { id: made.entry.id, token: made.token ?? "" };
}

/** Returns the parts that use the store, as a second gateway would have them. */
function partsOf(house: House, store: Store = house.store) {
  const { engine } = house;
  const configured = [{ token: TOKEN, role: "operator", scopes: ["operator.admin"] }] as const;
  const clock = { ...fakeWorld().clock, now: () => engine.now() };
  const authority = createAuthority(clock, configured, undefined, accessTokenRows(engine));
  return {
    authority,
    users: new AccessTokenUsers({ store, now: () => engine.now(), log: engine.log }, authority),
  };
}

async function callerOf({ authority }: ReturnType<typeof partsOf>, token: string) {
  const admitted = await authority.admit("here", { token });
  if (!admitted.ok) throw new Error(admitted.error);
  return admitted.value;
}

const metrics = (house: House, token: string) =>
  fetch(`${house.http}/metrics`, { headers: { authorization: `Bearer ${token}` } });

const lastUse = async ({ store }: House) =>
  (await store.db.selectFrom("access_tokens").select("used_at").executeTakeFirstOrThrow()).used_at;

test("if a client disconnects while its token is checked, no share stays in use", async () => {
  const shares = createShares();
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<number>();
  const gone = Promise.withResolvers<void>();
  const authority = createAuthority(fakeWorld().clock, [{ token: TOKEN, role: "operator", scopes: [] }]);
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    c.env.outgoing.once("close", () => gone.resolve());
    await next();
    answered.resolve(c.res.status);
  });
  const admit: typeof authority.admit = async (...claim) => {
    asked.resolve();
    await held.promise;
    return authority.admit(...claim);
  };
  app.use(
    authenticate({ authority: { ...authority, admit }, shares, accessUsers: { join: () => () => {} } }),
  );
  app.get("/", (c) => c.text("served"));
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  cleanup(() => new Promise<void>((resolve) => server.close(() => resolve())));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const sent = request({ port, host: "127.0.0.1", headers: { authorization: `Bearer ${TOKEN}` } });
  sent.on("error", () => {}).end();
  await asked.promise;
  sent.destroy();
  await gone.promise;
  held.resolve();
  expect(await answered.promise).toBe(499);
  expect(shares.calls.inUse()).toBe(0);
});

test("if their token is revoked, open streams and waiting HTTP calls end, and those of other tokens continue", async () => {
  const house = await openHouse();
  const { id, token } = await create(house);
  const admin = await house.client();
  const events = { accept: "text/event-stream" };
  const mine = { authorization: `Bearer ${token}` };
  const stream = await raw(house, { method: "GET", headers: { ...events, ...mine } });
  const other = await raw(house, { method: "GET", headers: { ...events, "x-parley-handle": "other" } });
  expect([stream.status, other.status]).toEqual([200, 200]);
  const params = { name: "sessions_inbox", arguments: { waitSeconds: 300 } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const call = await raw(house, { body, headers: mine });
  expect(call.status).toBe(200);
  const ended = Promise.allSettled([stream.text(), call.text()]);
  await admin.request("tokens.revoke", { id });
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const reader = other.body?.getReader();
  const next = reader?.read();
  await house.client();
  await reader?.cancel();
  expect(await next).toMatchObject({ done: true });
});

test("if a token was revoked or narrowed between authentication and `join`, its connection is closed", async () => {
  const house = await openHouse();
  const admin = await house.client();
  const parts = partsOf(house);
  for (const method of ["tokens.revoke", "tokens.narrow"] as const) {
    const { id, token } = await create(house);
    const caller = await callerOf(parts, token);
    await admin.request(method, { id, ...(method === "tokens.narrow" && { sessions: ["cron:*"] }) });
    const reason = await new Promise((resolve) => {
      parts.users.join({ caller, close: (_, why) => resolve(why) });
    });
    expect(reason, method).toContain("revoked or changed");
  }
});

test("if the store cannot write, valid tokens are admitted, and the log says that their use was not stored", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const { token } = await create(house);
  await house.store.transaction(async (tx) => {
    await sql`create trigger full before update on access_tokens begin select raise(abort, 'full'); end`.execute(
      tx,
    );
  });
  expect((await metrics(house, token)).status).toBe(200);
  const line = await until(() => world.logged.find(({ text }) => text.includes("use of an access token")));
  expect(line).toMatchObject({
    level: "warn",
    fields: { err: { message: expect.stringContaining("full") } },
  });
  await house.store.transaction(async (tx) => {
    await sql`drop trigger full`.execute(tx);
  });
  expect((await metrics(house, token)).status).toBe(200);
  expect(await until(async () => (await lastUse(house)) ?? undefined)).toBe(world.clock.now());
});

test("if a token is refused, no use is recorded", async () => {
  const house = await openHouse();
  const { id, token } = await create(house);
  expect((await metrics(house, `pat1.${id}.AAAA`)).status).toBe(401);
  await house.store.transaction((tx) => tx.updateTable("access_tokens").set({ expires_at: 1 }).execute());
  expect((await metrics(house, token)).status).toBe(401);
  expect(await lastUse(house)).toBeNull();
});
