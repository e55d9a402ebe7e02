// The HTTP route for web hooks of chat platforms, with WhatsApp as the platform: accepted requests, and the
// answers to unknown senders.

import { request } from "node:http";
import { expect } from "vitest";
import { recordingHost } from "../../contract/channel.ts";
import { test } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { APP_SECRET, signatureOf, VERIFY_TOKEN, webHook } from "../../kit/platforms/whatsapp-server.ts";
import { fakeWorld } from "../../kit/world.ts";
import { type Ground, openGround, said } from "./kit.ts";

const MEGABYTE = 1024 * 1024;

interface Told {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function ask(url: string, init: RequestInit = {}): Promise<Told> {
  const answer = await fetch(url, init);
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

/** Posts a body with a signature. */
function deliver(url: string, body: string, headers: Record<string, string> = {}): Promise<Told> {
  const signed = { "content-type": "application/json", "x-hub-signature-256": signatureOf(body), ...headers };
  return ask(url, { method: "POST", headers: signed, body });
}

const text = (words = "hello"): string => JSON.stringify(webHook({ messages: [said(words)] }));

function question(more: Record<string, string>): string {
  const asked = { "hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "1158201444" };
  return new URLSearchParams({ ...asked, ...more }).toString();
}

test("the set-up challenge is answered with the challenge's own text, as plain text", async () => {
  const { hookUrl } = await openGround();
  const told = await ask(`${hookUrl}?${question({})}`);
  expect(told).toMatchObject({ status: 200, text: "1158201444" });
  expect(told.headers.get("content-type")).toMatch(/^text\/plain/);
  expect(told.headers.get("x-content-type-options")).toBe("nosniff");
});

const QUESTIONS: [string, Record<string, string>, number][] = [
  ["another word", { "hub.verify_token": "guess" }, 403],
  ["no word", { "hub.verify_token": "" }, 403],
  ["a longer word", { "hub.verify_token": `${VERIFY_TOKEN} ` }, 403],
  ["another mode", { "hub.mode": "unsubscribe" }, 403],
  ["a page instead of a challenge", { "hub.challenge": "<script>alert(1)</script>" }, 400],
  ["a long challenge", { "hub.challenge": "1".repeat(1_000) }, 400],
];
test.each(QUESTIONS)("PC1: the set-up challenge with %s is refused", async (_, more, status) => {
  const { hookUrl } = await openGround();
  const told = await ask(`${hookUrl}?${question(more)}`);
  expect(told.status).toBe(status);
  expect(told.text).not.toContain("1158201444");
  expect(told.text).not.toContain("script");
});

const body = text();
const FORGED: [string, Record<string, string>][] = [
  ["another secret", { "x-hub-signature-256": signatureOf(body, "another-secret-0123456789") }],
  ["another body", { "x-hub-signature-256": signatureOf(`${body} `) }],
  ["nothing", { "x-hub-signature-256": "" }],
  ["half of it", { "x-hub-signature-256": signatureOf(body).slice(0, 40) }],
  ["a longer one", { "x-hub-signature-256": `${signatureOf(body)}00` }],
  ["an older kind", { "x-hub-signature-256": "sha1=6fb2ed6b9d5ee4c4a4a3b5bd3c0a8b1d8a7d8d3d" }],
  ["the secret itself", { "x-hub-signature-256": APP_SECRET }],
  ["the agreed word", { "x-hub-signature-256": "", authorization: `Bearer ${VERIFY_TOKEN}` }],
];
test.each(FORGED)(
  "PC1: a body signed with %s has no effect, and its answer reveals nothing",
  async (_, headers) => {
    const { hookUrl, host, server } = await openGround();
    const told = await deliver(hookUrl, body, headers);
    expect(told).toMatchObject({ status: 401, text: "not accepted" });
    expect(host.received).toEqual([]);
    expect(server.paths).toEqual([]);
  },
);

test("a signed body that is not JSON gives status 400; a signature covers the body byte for byte", async () => {
  const { hookUrl, host } = await openGround();
  expect((await deliver(hookUrl, "{")).status).toBe(400);
  expect((await deliver(hookUrl, "")).status).toBe(400);
  const odd = text("gr\u00fc\u00dfe / \u{1F600}").replaceAll("/", "\\/").replace("{", "{ \n");
  expect((await deliver(hookUrl, odd)).status).toBe(200);
  expect(host.received.map((one) => one.text)).toEqual(["gr\u00fc\u00dfe / \u{1F600}"]);
});

test("other paths, other methods and other host names are refused", async () => {
  const { house, hookUrl } = await openGround();
  const places = ["/channels/whatsapp/nobody", "/channels/telegram/default", "/channels/webchat/default"];
  const odd = [
    "/channels/",
    "/channels/whatsapp",
    "/channels/whatsapp/default/x",
    "/channels/whatsapp/__proto__",
  ];
  for (const path of [...places, ...odd]) {
    expect({ path, status: (await deliver(`${house.http}${path}`, body)).status }).toEqual({
      path,
      status: 404,
    });
  }
  for (const method of ["PUT", "DELETE", "HEAD"]) expect((await ask(hookUrl, { method })).status).toBe(405);
  const status = await new Promise((resolve) => {
    const headers = { host: "evil.example", "x-hub-signature-256": signatureOf(body) };
    request(hookUrl, { method: "POST", headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).end(body);
  });
  expect(status).toBe(403);
});

test("a body of up to 3 MiB is accepted, with or without a content length", async () => {
  const { hookUrl, host } = await openGround();
  expect((await deliver(hookUrl, text("x".repeat(3 * MEGABYTE - 1_000)))).status).toBe(200);
  expect(host.received[0]?.text.length).toBe(3 * MEGABYTE - 1_000);
  const large = text("x".repeat(3 * MEGABYTE));
  expect((await deliver(hookUrl, large)).status).toBe(413);
  const status = await new Promise((resolve) => {
    const headers = { "transfer-encoding": "chunked", "x-hub-signature-256": signatureOf(large) };
    const sent = request(hookUrl, { method: "POST", headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on("error", () => {});
    sent.end(large);
  });
  expect(status).toBe(413);
});

/** Starts an upload of an unknown sender, who sends part of a body and then waits. */
function upload({ hookUrl }: Ground, bytes: number) {
  const headers = { "content-length": 3 * MEGABYTE, "x-hub-signature-256": signatureOf("forged") };
  const sent = request(hookUrl, { method: "POST", headers, agent: false });
  sent.on("error", () => {});
  sent.write(Buffer.alloc(bytes));
  cleanup(() => void sent.destroy());
  return sent;
}

test.deep(
  "UP1: the bodies of all unknown senders share a memory limit; a closed connection frees its part",
  async () => {
    const ground = await openGround();
    for (let count = 0; count < 50; count += 1) upload(ground, 10);
    expect((await deliver(ground.hookUrl, text())).status).toBe(200);
    // One address may hold 48 MiB. If no further upload fits, less than 2 MiB are free, so `whole` does not
    // fit either.
    const strange = () => upload(ground, 2.5 * MEGABYTE);
    const large = Array.from({ length: 22 }, strange);
    const whole = text("x".repeat(2 * MEGABYTE));
    const send = async () => (await deliver(ground.hookUrl, whole)).status;
    // If this body is accepted, some of the uploads were refused while all arrived at once, so another one
    // starts.
    const sendAmongStrangers = async () => {
      const status = await send();
      if (status === 200) large.push(strange());
      return status;
    };
    await expect.poll(sendAmongStrangers).toBe(429);
    for (const one of large) one.destroy();
    await expect.poll(send).toBe(200);
  },
  60_000,
);

test("PC3: the platform is asked to retry a request that can't be stored; a gateway that is stopping accepts no requests", async () => {
  const { hookUrl, host, house } = await openGround();
  host.failing = 1;
  const told = await deliver(hookUrl, body);
  expect(told).toMatchObject({ status: 503, text: "the gateway cannot handle the call now; send it again" });
  expect(told.headers.get("retry-after")).toBe("30");
  expect((await deliver(hookUrl, body)).status).toBe(200);
  await house.engine.stop(0);
  expect((await deliver(hookUrl, body)).status).toBe(503);
  expect(host.received.length).toBe(1);
});

test("PC4: forged requests give one log line per minute, without their content", async () => {
  const world = fakeWorld();
  const { hookUrl } = await openGround(Object.assign(recordingHost(), { world }));
  const forged = () => deliver(hookUrl, text("evil words"), { "x-hub-signature-256": signatureOf("x") });
  const lines = () => world.logged.filter((line) => line.text.includes("signature"));
  for (let count = 0; count < 5; count += 1) await forged();
  await ask(`${hookUrl}?${question({ "hub.verify_token": "guess" })}`);
  expect(lines()).toMatchObject([{ level: "warn", fields: { account: "whatsapp:default", count: 1 } }]);
  await world.advance(60_000);
  await forged();
  expect(lines().map(({ fields }) => fields.count)).toEqual([1, 6]);
  expect(JSON.stringify(world.logged)).not.toMatch(/evil words|guess|a word that was agreed/);
});
