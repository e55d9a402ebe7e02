// The plain HTTP routes.

import { join } from "node:path";
import { expect, test } from "vitest";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Store } from "../../../src/store/sql.ts";
import { watchWrites } from "../../../src/store/write-watch.ts";
import { openStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { openHouse, TOKEN } from "../kit.ts";

const AUTH = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };

test("liveness and readiness need no token, and readiness ends when the engine stops", async () => {
  const house = await openHouse();
  expect((await fetch(`${house.http}/healthz`)).status).toBe(200);
  expect((await fetch(`${house.http}/readyz`)).status).toBe(200);
  await house.engine.stop(0);
  expect((await fetch(`${house.http}/readyz`)).status).toBe(503);
  expect((await fetch(`${house.http}/healthz`)).status).toBe(200);
});

test("damage: readiness, health, status and inbox name the reason while writes fail, until the first successful write", async () => {
  const dir = temporaryFolder();
  const problems: StoreProblem[] = [];
  const refusing = (store: Store): Store =>
    watchWrites({
      ...store,
      transaction: (work) => {
        const [problem] = problems;
        return problem === undefined ? store.transaction(work) : Promise.reject(problem);
      },
    });
  const house = await openHouse({ dir, disk: refusing(await openStore(dir)) });
  const client = await house.client();
  const ready = async () => {
    const answer = await fetch(`${house.http}/readyz`);
    return { status: answer.status, body: await answer.json() };
  };
  const needs = async () => (await client.request("attention.list", {})).groups[0];
  problems.push(new StoreProblem("full", join(dir, "parley.sqlite")));
  expect(await ready()).toEqual({ status: 200, body: { ok: true, status: "ready" } });
  expect(await needs()).toMatchObject({ group: "needs_you", count: 0 });
  await house.engine.commit(async () => {}).catch(() => {});
  const reason = "the store cannot grow: the disk or the quota is full";
  expect(await ready()).toEqual({ status: 503, body: { ok: false, status: "not ready", reason } });
  expect((await fetch(`${house.http}/healthz`)).status).toBe(200);
  for (const method of ["health", "status"] as const)
    expect(await client.request(method, {})).toMatchObject({ ok: false, store: { ok: false, reason } });
  const summary = `New messages are refused: ${reason}.`;
  expect(await needs()).toMatchObject({ count: 1, items: [{ kind: "store", summary, actions: [] }] });
  problems.pop();
  expect((await ready()).status).toBe(200);
  expect(await client.request("health", {})).toMatchObject({ ok: true, store: { ok: true } });
  expect(await needs()).toMatchObject({ count: 0 });
});

test("a tool's own refusal is a result; an unknown tool is an error", async () => {
  const house = await openHouse();
  const post = async (body: object) => {
    const answer = await fetch(`${house.http}/tools/invoke`, {
      method: "POST",
      headers: AUTH,
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const refused = await post({ tool: "sessions_history", args: { sessionKey: "nobody" } });
  expect(refused).toMatchObject({
    status: 200,
    body: { ok: false, result: { status: expect.stringMatching(/error|forbidden/) } },
  });
  expect(await post({ tool: "sessions_lost" })).toMatchObject({
    status: 404,
    body: { ok: false, result: { code: "unknown_tool" } },
  });
  expect(await post({})).toMatchObject({
    status: 400,
    body: { ok: false, error: { code: "INVALID_REQUEST" } },
  });
  expect(await post({ tool: "sessions_list", agrs: {} })).toMatchObject({ status: 400 });
});

const REFUSED: [string, RequestInit, number][] = [
  ["no token", { method: "POST", body: "{}" }, 401],
  ["a wrong token", { method: "POST", body: "{}", headers: { authorization: "Bearer guess" } }, 401],
  ["no JSON", { method: "POST", body: "{", headers: AUTH }, 400],
  ["a list", { method: "POST", body: "[]", headers: AUTH }, 400],
  ["a body of 2 MiB", { method: "POST", body: "x".repeat(2 * 1024 * 1024), headers: AUTH }, 413],
];
test.each(REFUSED)("tools/invoke with %s is refused", async (_, init, status) => {
  const house = await openHouse();
  const answer = await fetch(`${house.http}/tools/invoke`, init);
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject({ ok: false, error: { message: expect.any(String) } });
});

const BODIES: [string, object, RegExp][] = [
  ["no tool", { args: {} }, /tool is required/],
  ["a number as tool", { tool: 7 }, /tool must be a string, got a number/],
  ["another name for the tool", { tool: "sessions_list", name: "exec" }, /unknown field "name"/],
  ["another name for the arguments", { tool: "sessions_list", arguments: {} }, /unknown field "arguments"/],
  ["a list as args", { tool: "sessions_list", args: [] }, /args must be an object/],
  ["a session that is none", { tool: "sessions_list", sessionKey: 5 }, /sessionKey must be a string/],
];
test.each(BODIES)("a body with %s is refused with a clear error", async (_, body, words) => {
  const house = await openHouse();
  const init = { method: "POST", headers: AUTH, body: JSON.stringify(body) };
  const answer = await fetch(`${house.http}/tools/invoke`, init);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ ok: false, error: { message: expect.stringMatching(words) } });
});

test("a small body without a content length is read like any other", async () => {
  const house = await openHouse();
  const body = new Blob([JSON.stringify({ tool: "sessions_list" })]).stream();
  const init = { method: "POST", headers: AUTH, body, duplex: "half" } as RequestInit;
  const answer = await fetch(`${house.http}/tools/invoke`, init);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ ok: true, result: { count: expect.any(Number) } });
});

test("a body without a content length is measured while it arrives", async () => {
  const house = await openHouse();
  const piece = new Uint8Array(64 * 1024);
  let left = 32;
  const body = new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
  const init = { method: "POST", headers: AUTH, body, duplex: "half" } as RequestInit;
  expect((await fetch(`${house.http}/tools/invoke`, init)).status).toBe(413);
});

test("every unknown request gets a JSON answer", async () => {
  const house = await openHouse();
  for (const path of ["/nothing", "/v2/models", "/%00", "/../etc/passwd"]) {
    const answer = await fetch(`${house.http}${path}`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
  }
  expect((await fetch(`${house.http}/tools/invoke`)).status).toBe(404);
});
