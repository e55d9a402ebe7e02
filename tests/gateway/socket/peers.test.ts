// Requests as other projects' clients of the protocol send them, unchanged except for ids: clawdbot
// 2026.1.24-3 (protocol version 3, with a device) and openclaw 2026.9.6 (version 4). `npm run peers` runs the
// real clients.

import { expect, test } from "vitest";
import { newDevice } from "../clients/devices.ts";
import { openHouse, openRaw, TOKEN } from "../kit.ts";

/** Creates a device like that of clawdbot, which signs a challenge. */
function makeDevice() {
  const { id, publicKey, sign } = newDevice();
  return (nonce: string, scopes: readonly string[], token: string) => {
    const signedAt = Date.now();
    const text = ["v2", id, "cli", "cli", "operator", scopes.join(","), signedAt, token, nonce].join("|");
    return { id, publicKey, signature: sign(text), signedAt, nonce };
  };
}

test("clawdbot connects with a device, gets a token for it, and later connects with that token only", async () => {
  const house = await openHouse();
  const prove = makeDevice();
  const scopes = ["operator.admin", "operator.approvals", "operator.pairing"];
  const client = { id: "cli", version: "dev", platform: "linux", mode: "cli", instanceId: "i" };
  const common = { minProtocol: 3, maxProtocol: 3, client, caps: [], role: "operator", scopes };
  let token = TOKEN;
  for (const round of ["first", "again"]) {
    const raw = await openRaw(house.url);
    const challenge = await raw.next(({ event }) => event === "connect.challenge");
    const device = prove(challenge.payload.nonce, scopes, token);
    raw.send({ type: "req", id: round, method: "connect", params: { ...common, auth: { token }, device } });
    const { payload, error } = await raw.res(round);
    expect({ protocol: payload?.protocol, error }).toEqual({ protocol: 3, error: undefined });
    expect(payload.auth.deviceToken).not.toBe(TOKEN);
    token = payload.auth.deviceToken;
    raw.send({ type: "req", id: "health", method: "health" });
    expect(await raw.res("health")).toMatchObject({ ok: true });
  }
});

test("openclaw connects with version 4 and the rights that it requests, without a device", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  const client = {
    id: "cli",
    version: "2026.9.6",
    platform: "linux",
    deviceFamily: "Linux",
    mode: "cli",
    instanceId: "i",
  };
  const params = {
    minProtocol: 4,
    maxProtocol: 4,
    client,
    caps: [],
    auth: { token: TOKEN },
    role: "operator",
    scopes: ["operator.read"],
  };
  raw.send({ type: "req", id: "1", method: "connect", params });
  const { ok, payload } = await raw.res("1");
  expect(ok).toBe(true);
  expect(payload).toMatchObject({ protocol: 4, auth: { role: "operator", scopes: ["operator.read"] } });
  expect(payload.auth.deviceToken).toBeUndefined();
  raw.send({ type: "req", id: "2", method: "health" });
  const health = await raw.res("2");
  // The client's `gateway health` prints whether a channel is configured.
  expect(health.payload.channels).toEqual({ webchat: { ok: true, configured: true } });
});

test("a client's own default channel does not affect a run; delivery through an unknown channel is refused", async () => {
  const house = await openHouse();
  const client = await house.client();
  const asked = {
    message: "hello",
    agentId: "main",
    sessionKey: "agent:main:main",
    deliver: false,
    channel: "whatsapp",
    timeout: 600,
    idempotencyKey: "clawdbot-agent",
  };
  expect(await client.agent(asked).done).toMatchObject({
    status: "ok",
    result: { payloads: [{ text: "echo hello" }] },
  });
  const { sessions } = await client.request("sessions.list");
  expect(sessions.map(({ key }) => key)).toContain("agent:main:main");
  expect(sessions.filter(({ deliveryContext }) => deliveryContext !== undefined)).toEqual([]);
  await expect(
    client.agent({ ...asked, deliver: true, idempotencyKey: "two" }).accepted,
  ).rejects.toMatchObject({
    reason: "channel_unknown",
  });
});
