// Signed web hooks: forged, shortened and repeated requests, some of them with a changed body, and templates
// with their values.

import { request } from "node:http";
import { expect } from "vitest";
import { renderTemplate } from "../../../src/features/hooks/template.ts";
import { type House, TOKEN } from "../../gateway/kit.ts";
import { test } from "../../kit/deep.ts";
import { cleanup, crashingStore, openStore, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import {
  bearer,
  ci,
  fromGithub,
  github,
  hook,
  openHooks,
  plain,
  post,
  push,
  runs,
  signature,
} from "./kit.ts";

async function inputs(house: House) {
  const rows = await house.store.db
    .selectFrom("runs")
    .select(["session_key", "input_json"])
    .orderBy("accepted_at")
    .execute();
  return rows.map(({ session_key, input_json }) => ({ key: session_key, ...JSON.parse(input_json) }));
}

test("a signed GitHub event starts a run with the message of its mapping, and a ping starts none", async () => {
  const house = await openHooks();
  expect(await fromGithub(house, { zen: "Keep it." }, {}, "ping")).toMatchObject({
    status: 200,
    body: { pong: true },
  });
  const told = await fromGithub(house, push("Mend the door"));
  expect(told.status).toBe(202);
  expect(await inputs(house)).toMatchObject([
    { text: "push in acme/site: Mend the door", provenance: { kind: "hook", source: "github" } },
  ]);
});

test("the signature in GitHub's own documentation is accepted", async () => {
  const mapping = { ...github, secret: "It's a Secret to Everybody" };
  const house = await openHooks({ mappings: [mapping] });
  const headers = {
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "x-github-event": "push",
    "x-github-delivery": "1",
  };
  // The body is not JSON. The gateway notices that only after it has checked the signature.
  const told = await post(house, "/hooks/github", "Hello, World!", headers);
  expect(told).toMatchObject({ status: 400, body: { error: { message: "the body is not valid JSON" } } });
  expect((await post(house, "/hooks/github", "Hello, World?", headers)).status).toBe(401);
});

const text = JSON.stringify(push("x"));
const FORGED: [string, Record<string, string>][] = [
  ["another secret", { "x-hub-signature-256": signature(text, "another-secret-0123456789") }],
  ["another body", { "x-hub-signature-256": signature(`${text} `) }],
  ["nothing", { "x-hub-signature-256": "" }],
  ["half a signature", { "x-hub-signature-256": signature(text).slice(0, 40) }],
  ["a longer one", { "x-hub-signature-256": `${signature(text)}00` }],
  ["an older kind", { "x-hub-signature-256": "sha1=6fb2ed6b9d5ee4c4a4a3b5bd3c0a8b1d8a7d8d3d" }],
  ["the gateway's token instead", { "x-hub-signature-256": "", authorization: `Bearer ${TOKEN}` }],
  [
    "the hooks' token instead",
    { "x-hub-signature-256": "", authorization: "Bearer token-of-the-hooks-0123456789" },
  ],
];
test.each(FORGED)("HP1: a body signed with %s is refused", async (_, headers) => {
  const house = await openHooks();
  expect((await fromGithub(house, push("x"), headers)).status).toBe(401);
  expect(await runs(house)).toBe(0);
});

test("a body without a content length is limited, and a body that is too large is refused before it is read", async () => {
  const house = await openHooks();
  const large = JSON.stringify({ x: "x".repeat(2 * 1024 * 1024) });
  const headers = {
    "x-hub-signature-256": signature(large),
    "x-github-event": "push",
    "x-github-delivery": "1",
  };
  expect((await post(house, "/hooks/github", large, headers)).status).toBe(413);
});

test.deep(
  "bodies of unknown senders share a memory limit, and slow senders block nobody",
  async () => {
    const house = await openHooks();
    const headers = {
      "content-type": "application/json",
      "content-length": 1024 * 1024,
      "x-hub-signature-256": signature("forged"),
    };
    const upload = (bytes: number) => {
      const sent = request(`${house.http}/hooks/github`, { method: "POST", headers, agent: false });
      sent.on("error", () => {});
      sent.write(Buffer.alloc(bytes));
      cleanup(() => void sent.destroy());
      return sent;
    };
    for (let count = 0; count < 100; count += 1) upload(10);
    expect((await fromGithub(house, push("one"))).status).toBe(202);
    // A refused upload frees its part of the shared memory limit. The accepted uploads leave less of it free
    // than one body of maximum size needs.
    const large = Array.from({ length: 68 }, () => upload(1024 * 1024 - 1));
    const whole = push("x".repeat(1024 * 1024 - 170));
    const send = async () => (await fromGithub(house, whole, { "x-github-delivery": "large" })).status;
    const crowded = async () => {
      large.push(upload(1024 * 1024 - 1));
      return send();
    };
    await expect.poll(crowded).toBe(429);
    for (const one of large) one.destroy();
    await expect.poll(send).toBe(202);
  },
  60_000,
);

test("HO3: a repeated delivery gets its first answer and no second run, also after a restart", async () => {
  const dir = temporaryFolder();
  const first = await openHooks({}, { dir });
  const told = await fromGithub(first, push("one"));
  const both = await Promise.all([fromGithub(first, push("one")), fromGithub(first, push("one"))]);
  await first.stop();
  const second = await openHooks({}, { dir });
  const again = await fromGithub(second, push("one"));
  for (const one of [...both, again]) expect([one.status, one.body]).toEqual([202, told.body]);
  expect(await runs(second)).toBe(1);
});

test("HO3: the same delivery id with another body is refused, and so is the same body with another delivery id", async () => {
  const house = await openHooks();
  expect((await fromGithub(house, push("one"))).status).toBe(202);
  expect(await fromGithub(house, push("two"))).toMatchObject({
    status: 409,
    body: { error: { code: "CONFLICT" } },
  });
  const replayed = await fromGithub(house, push("one"), { "x-github-delivery": "made-up" });
  expect(replayed).toMatchObject({ status: 409, body: { error: { code: "CONFLICT" } } });
  expect(await runs(house)).toBe(1);
});

test("HO3: idempotency keys of operators and other senders do not affect a hook", async () => {
  const house = await openHooks();
  const key = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
  const client = await house.client();
  await client.call("chat.send", { sessionKey: "main", message: "mine", idempotencyKey: key });
  expect((await fromGithub(house, push("one"))).status).toBe(202);
  expect((await hook(house, "/hooks/agent", { message: "x", idempotencyKey: key })).status).toBe(202);
  expect((await hook(house, "/hooks/wake", { text: "x", idempotencyKey: key })).status).toBe(202);
});

test("HO3: with a token, requests with the same id count once, and requests without an id are separate", async () => {
  const house = await openHooks();
  const ask = async (message: string, more: object, headers: Record<string, string> = {}) =>
    hook(house, "/hooks/agent", { message, ...more }, headers);
  const first = await ask("x", { idempotencyKey: "a" });
  expect((await ask("x", {}, { "idempotency-key": "a" })).body).toEqual(first.body);
  expect((await ask("y", { idempotencyKey: "a" })).status).toBe(409);
  const [one, two] = [await ask("x", {}), await ask("x", {})];
  expect(one.body.runId).not.toBe(two.body.runId);
});

test("a missing event or delivery id in a GitHub request gets a clear error", async () => {
  const house = await openHooks();
  expect((await fromGithub(house, push("x"), { "x-github-delivery": "" })).status).toBe(400);
  expect((await fromGithub(house, push("x"), {}, "../push")).status).toBe(400);
});

test("only the events that a mapping lists start a run", async () => {
  const house = await openHooks({ mappings: [{ ...github, match: { events: ["push", "issues.opened"] } }] });
  const send = (event: string, action: string) =>
    fromGithub(house, { action }, { "x-github-delivery": `${event}-${action}` }, event);
  expect((await send("star", "created")).body).toEqual({ ok: true, ignored: "star" });
  expect((await send("issues", "closed")).status).toBe(200);
  expect((await send("issues", "opened")).status).toBe(202);
  expect(await runs(house)).toBe(1);
});

test("a generic sender may sign in hex or base64, and the mapping, not the body, determines agent and session", async () => {
  const house = await openHooks();
  const send = (number: number, form: (hex: string) => string, id = `${number}`) => {
    const body = JSON.stringify({ build: { number, state: "red" }, sessionKey: "main", agentId: "writer" });
    return post(house, "/hooks/builds", body, {
      "x-ci-signature": form(signature(body).slice(7)),
      "x-ci-delivery": id,
    });
  };
  const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64");
  for (const [number, form] of [
    [1, (hex: string) => hex],
    [2, base64],
  ] as const) {
    expect(await send(number, form)).toMatchObject({ status: 202, body: { sessionKey: "hook:builds" } });
  }
  expect((await send(3, () => "0".repeat(64))).status).toBe(401);
  expect((await inputs(house)).map((input) => input.text)).toEqual(["Build 1 red", "Build 2 red"]);
  const client = await house.client();
  const { sessions } = await client.request("sessions.list", {});
  expect(sessions).toContainEqual(
    expect.objectContaining({ key: "hook:builds", agentId: "research", label: "ci" }),
  );
});

test("a signed body without a delivery id is processed once", async () => {
  const house = await openHooks({ mappings: [ci] });
  const body = JSON.stringify({ build: { number: 1 } });
  const send = () => post(house, "/hooks/builds", body, { "x-ci-signature": signature(body) });
  const [one, two] = [await send(), await send()];
  expect(two.body).toEqual(one.body);
  expect(await runs(house)).toBe(1);
});

test("a mapping with the token of hooks accepts only that token; an unknown destination gives a failed delivery", async () => {
  const gone = { ...plain, to: "agent:main:chat:gone" };
  const house = await openHooks({ mappings: [gone] });
  expect((await post(house, "/hooks/plain", { text: "x" }, bearer(TOKEN))).status).toBe(401);
  const told = await hook(house, "/hooks/plain", { text: "x" });
  await house.engine.waitForRun(told.body.runId, house.engine.now() + 10_000);
  const rows = await house.store.db.selectFrom("deliveries").select(["state", "code"]).execute();
  expect(rows).toEqual([{ state: "failed", code: "session_not_found" }]);
  expect((await hook(house, "/hooks/plain", { other: "x" })).status).toBe(400);
});

test("without names of headers, the signature and the delivery id are in the default ones", async () => {
  const { signatureHeader: _, deliveryHeader: __, ...mapping } = ci;
  const house = await openHooks({ mappings: [mapping] });
  const send = (number: number) => {
    const body = JSON.stringify({ build: { number } });
    const headers = { "x-signature-256": signature(body), "x-delivery-id": "delivery-1" };
    return post(house, "/hooks/builds", body, headers);
  };
  expect((await send(1)).status).toBe(202);
  expect(await send(2)).toMatchObject({ status: 409, body: { error: { code: "CONFLICT" } } });
});

test("a long field of a web hook is cut without splitting a surrogate pair", () => {
  for (const text of ["🙂".repeat(30_000), `a${"🙂".repeat(30_000)}`]) {
    const shown = renderTemplate("{{body.x}}", { body: { x: text } });
    expect(shown).toContain("🙂");
    expect(shown.length).toBeLessThan(20_000);
    expect(shown).not.toMatch(/\p{Surrogate}|\\ud8|\ufffd/u);
  }
});

const HOSTILE: [string, unknown, string][] = [
  ["a template", "{{body.secret}} {{event}}", "{{body.secret}} {{event}}"],
  ["a replacement's own signs", "$& $1 $`", "$& $1 $`"],
  ["characters that nobody sees", "a\u202eb\u0007\u200b", "a\\u{202e}b\\x07\\u{200b}"],
  ["half a character", "\ud800", "\ufffd"],
  ["an object", { a: [1] }, '{"a":[1]}'],
];
test.each(HOSTILE)("IH1: a value that is %s is inserted into a template as data", async (_, value, shown) => {
  const house = await openHooks({ mappings: [{ ...plain, message: "<{{body.text}}>" }] });
  const body = { text: value, secret: "no", idempotencyKey: "1" };
  expect((await hook(house, "/hooks/plain", body)).status).toBe(202);
  expect((await inputs(house))[0]?.text).toBe(`<${shown}>`);
});

test("a body with a hundred thousand nested levels is answered like any other", async () => {
  const house = await openHooks({ mappings: [{ ...plain, message: "<{{body.a.b}}{{body}}>" }] });
  const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  expect([202, 400]).toContain((await hook(house, "/hooks/plain", deep)).status);
  expect((await fetch(`${house.http}/healthz`)).status).toBe(200);
});

test.each(["before", "after"] as const)(
  "I2: after a crash %s any commit of a hook request, a retry gives one run",
  async (when) => {
    let crashes = 0;
    for (let commit = 1; commit < 40; commit += 1) {
      const dir = temporaryFolder();
      const disk = await openStore(dir, quietWorld());
      const crashing = crashingStore(disk, { commit, when });
      const first = await openHooks({}, { dir, disk: crashing.store, dies: true }).catch(() => undefined);
      if (first === undefined) {
        await disk.close();
        continue;
      }
      cleanup(() => first.engine.stop(0).catch(() => {}));
      const told = await fromGithub(first, push("one"));
      if (told.status === 202)
        await Promise.race([
          crashing.crashed,
          first.engine.waitForRun(told.body.runId, first.engine.now() + 5_000),
        ]);
      const crashed = crashing.hasCrashed();
      await disk.close();
      if (!crashed) break;
      crashes += 1;
      const second = await openHooks({}, { dir });
      const again = await fromGithub(second, push("one"));
      expect(again.status).toBe(202);
      if (told.status === 202) expect(again.body).toEqual(told.body);
      expect(await runs(second)).toBe(1);
      const run = await second.engine.waitForRun(again.body.runId, second.engine.now() + 10_000);
      expect(run?.state).toBe("ok");
      await second.stop();
    }
    expect(crashes, "the story has commits of its own").toBeGreaterThan(1);
  },
);
