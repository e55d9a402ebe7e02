// Operators list the tokens of devices, and revoke those of a device.

import { expect, test } from "vitest";
import { TOKEN as CLI_TOKEN, makeHome, run, runJson, startGateway } from "../../cli/kit.ts";
import { connectDevice as connect, newDevice } from "../clients/devices.ts";
import { openHouse } from "../kit.ts";

test("a revoked device token is refused, even if the device has a newer one", async () => {
  const house = await openHouse();
  const admin = await house.client();
  const [key, other] = [newDevice(), newDevice()];
  const { token, raw: byGatewayToken } = await connect(house, key);
  const kept = await connect(house, other);
  const { raw, token: renewed } = await connect(house, key, { auth: { token } });
  const before = await admin.request("device.token.list", {});
  expect(before.devices.map(({ deviceId }) => deviceId).sort()).toEqual([key.id, other.id].sort());
  expect(await admin.request("device.token.revoke", { deviceId: key.id.toUpperCase() })).toMatchObject({
    ok: true,
    deviceId: key.id,
  });
  expect(await raw.closed()).toMatchObject({ code: 1008, reason: "the device token was revoked" });
  const refused = {
    code: "UNAUTHORIZED",
    message: expect.stringContaining("was revoked. Connect with the gateway's token"),
  };
  for (const auth of [{ token }, { token: renewed }]) {
    expect((await connect(house, key, { auth })).error).toMatchObject(refused);
  }
  const after = await admin.request("device.token.list", {});
  expect(after.devices.map(({ deviceId }) => deviceId)).toEqual([other.id]);
  byGatewayToken.send({ type: "req", id: "h", method: "health" });
  expect(await byGatewayToken.res("h")).toMatchObject({ ok: true });
  const anew = await connect(house, key);
  expect((await connect(house, key, { auth: { token: anew.token } })).error).toBeUndefined();
  expect((await connect(house, key, { auth: { token: renewed } })).error).toMatchObject(refused);
  expect((await connect(house, other, { auth: { token: kept.token } })).error).toBeUndefined();
});

test("the device tokens of one role can be revoked; a device without a token of that role is reported", async () => {
  const house = await openHouse();
  const admin = await house.client();
  const key = newDevice();
  const { token } = await connect(house, key);
  const revoke = (role?: "node") =>
    admin.request("device.token.revoke", { deviceId: key.id, ...(role && { role }) });
  await expect(revoke("node")).rejects.toThrow("has no device token of role node");
  expect((await connect(house, key, { auth: { token } })).error).toBeUndefined();
  await revoke();
  await expect(revoke()).rejects.toThrow("has no device token. device.token.list lists");
});

test("only a token that covers every session lists device tokens, and only an admin revokes them", async () => {
  const [reader, some] = ["a-token-that-may-read-only", "a-token-for-some-sessions"];
  const house = await openHouse({
    gateway: {
      tokens: [
        { token: reader, role: "operator", scopes: ["operator.read"] },
        { token: some, role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
      ],
    },
  });
  for (const token of [reader, some]) {
    const client = await house.client({ token });
    const listed = client.request("device.token.list", {});
    if (token === reader) await expect(listed).resolves.toMatchObject({ devices: [] });
    else await expect(listed).rejects.toMatchObject({ code: "FORBIDDEN" });
    const revoked = client.request("device.token.revoke", { deviceId: "x" });
    await expect(revoked).rejects.toMatchObject({ code: "FORBIDDEN" });
  }
});

test("a gateway token has at most 200 devices; for one more, the device token that was unused longest is revoked", async () => {
  const house = await openHouse();
  const first = newDevice();
  const { token } = await connect(house, first);
  await house.store.transaction(async (tx) => {
    const row = await tx.selectFrom("device_tokens").selectAll().executeTakeFirstOrThrow();
    for (let n = 0; n < 200; n++) {
      const later = { ...row, device_id: `d${n}`, used_at: row.used_at + 60_000 };
      await tx.insertInto("device_tokens").values(later).execute();
    }
  });
  await connect(house, newDevice());
  expect((await connect(house, first, { auth: { token } })).error?.message).toContain("was revoked");
});

test("parley devices lists the devices with a token, and revokes those of one device by the beginning of its id", async () => {
  const { home, port } = await makeHome({});
  await startGateway(home);
  const url = `ws://127.0.0.1:${port}`;
  const key = newDevice();
  const { token } = await connect({ url }, key, { auth: { token: CLI_TOKEN } });
  const [shown] = (await run(home, ["devices"])).out.match(/^[0-9a-f]{12} +test .*in 90 days/m) ?? [];
  expect(shown).toContain(key.id.slice(0, 12));
  expect((await run(home, ["devices", "revoke", "zz"])).err).toContain("npx parley-gateway devices list");
  expect(await runJson(home, ["devices", "revoke", key.id.slice(0, 12)])).toMatchObject({ deviceId: key.id });
  expect((await connect({ url }, key, { auth: { token } })).error?.message).toContain("was revoked");
  expect((await run(home, ["devices", "list"])).out).toContain("No device has a device token.");
});
