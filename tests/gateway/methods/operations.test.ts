// Operators' methods about the gateway: the end of its log, and a check of its configuration file.

import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LogTail } from "../../../src/world/log-tail.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openHouse } from "../kit.ts";
import { refusingModel } from "../secrets/refusing-model.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";

/** Opens a gateway whose log the test writes. */
async function houseWithLog() {
  const logTail = new LogTail();
  const house = await openHouse({ world: { ...fakeWorld({ clock: "real" }), logTail } });
  const client = await house.client();
  const say = (level: number, msg: string, more: object = {}) =>
    logTail.write(`${JSON.stringify({ level, time: 1000 + level, ...more, msg })}\n`);
  return { house, client, logTail, say };
}

test("the log can be read by level and text, and followed with a cursor", async () => {
  const { client, say } = await houseWithLog();
  say(30, "one", { sessionKey: "agent:main:main", runId: "r" });
  say(40, "two", { err: { type: "Error", message: "no", stack: "at x" } });
  const first = await client.request("logs.tail", {});
  expect(first.lines).toEqual([
    { seq: 1, time: 1030, level: "info", msg: "one", sessionKey: "agent:main:main", runId: "r" },
    { seq: 2, time: 1040, level: "warn", msg: "two", err: { type: "Error", message: "no", stack: "at x" } },
  ]);
  expect(first).toMatchObject({ dropped: 0, more: false });
  expect((await client.request("logs.tail", { level: "warn" })).lines.map(({ msg }) => msg)).toEqual(["two"]);
  expect((await client.request("logs.tail", { search: "AGENT:main" })).lines).toHaveLength(1);
  const { cursor } = first;
  expect((await client.request("logs.tail", { cursor })).lines).toEqual([]);
  for (const at of [3, 4, 5]) say(50, `line ${at}`);
  const next = await client.request("logs.tail", { cursor, limit: 2 });
  expect(next.lines.map(({ msg, level }) => [msg, level])).toEqual([
    ["line 3", "error"],
    ["line 4", "error"],
  ]);
  expect(next.more).toBe(true);
  const last = await client.request("logs.tail", { cursor: next.cursor });
  expect(last.lines.map(({ seq }) => seq)).toEqual([5]);
  const elsewhere = await client.request("logs.tail", { cursor: "deadbeef-4" });
  expect(elsewhere.lines).toHaveLength(5);
});

test("LT1: the stored log is limited in lines and in size, and a reader gets the number of missing lines", async () => {
  const { client, logTail, say } = await houseWithLog();
  say(30, "first");
  const { cursor } = await client.request("logs.tail", {});
  for (let at = 0; at < 5_000; at += 1) say(30, `line ${at}`);
  expect(logTail.lines()).toHaveLength(2_000);
  const page = await client.request("logs.tail", { cursor, limit: 10_000 });
  expect(page).toMatchObject({ dropped: 3_000, more: true });
  expect(page.lines).toHaveLength(500);
  for (let at = 0; at < 1_000; at += 1) say(30, "x".repeat(50_000));
  const kept = logTail.lines().reduce((sum, { text }) => sum + text.length, 0);
  expect(kept).toBeLessThanOrEqual(4_000_000);
  const [long] = (await client.request("logs.tail", { limit: 1 })).lines;
  expect(long).toMatchObject({ cut: true, level: "info", time: 1030 });
});

test("lines that are not a JSON object are returned as text, and no content can change a line's position", async () => {
  const { client, logTail, say } = await houseWithLog();
  logTail.write("not json\n");
  logTail.write("[1]\n");
  say(30, "forged", { seq: 99, cut: "x" });
  const { lines } = await client.request("logs.tail", {});
  expect(lines.map(({ seq, msg }) => [seq, msg])).toEqual([
    [1, "not json"],
    [2, "[1]"],
    [3, "forged"],
  ]);
});

function withModel(baseUrl: string, id: string): Record<string, unknown> {
  const models = [{ id, contextWindow: 10_000 }];
  return {
    models: { providers: { local: { api: "openai-completions", baseUrl, apiKey: KEY, models } } },
    agents: { defaults: { model: `local/${id}` } },
  };
}

test("I14: the log of a real process equals its stderr, with secrets redacted", async () => {
  const gateway = await startProcess({ config: withModel(await refusingModel("no"), KEY) });
  const client = await gateway.connect();
  const run = client.agent({ message: "x", idempotencyKey: "run" });
  await run.done;
  const { lines } = await client.request("logs.tail", {});
  const retries = lines.filter(({ msg }) => msg === "model retry");
  expect(retries.length).toBeGreaterThan(0);
  expect(JSON.stringify(retries)).toContain("[redacted]");
  expect(JSON.stringify(lines)).not.toContain(KEY);
  for (const { msg } of lines) expect(gateway.stderr()).toContain(msg);
});

test("config.check names problems and the effects of a restart, but never a secret", async () => {
  const config = withModel("http://127.0.0.1:9/v1", "m");
  const gateway = await startProcess({ config });
  const client = await gateway.connect();
  const path = join(gateway.home, ".parley", "parley.json5");
  const text = readFileSync(path, "utf8");
  const check = () => client.request("config.check", {});
  const same = await check();
  expect(same).toMatchObject({ path, exists: true, ok: true, errors: [], differs: false, changed: [] });
  expect(same.settings).toMatchObject({ gateway: { token: "(set)" }, maxConcurrent: 8 });
  writeFileSync(
    path,
    JSON.stringify({
      ...JSON.parse(text),
      ...{ nodes: { enabled: false }, telemetry: { traces: { enabled: true } } },
    }),
  );
  chmodSync(path, 0o644);
  const changed = await check();
  expect(changed).toMatchObject({
    ok: true,
    differs: true,
    changed: ["nodes", "telemetry.traces"],
    restart: ["telemetry.traces", "nodes.enabled"],
  });
  expect(changed.warnings.join("\n")).toContain("other users can read it");
  writeFileSync(path, JSON.stringify({ ...JSON.parse(text), gatevay: {}, session: { queueMax: KEY } }));
  const wrong = await check();
  expect(wrong).toMatchObject({ ok: false, differs: false });
  expect(wrong.errors.join("\n")).toContain("gatevay");
  expect(wrong.errors.join("\n")).toContain("session.queueMax");
  for (const said of [same, changed, wrong]) {
    expect(JSON.stringify(said)).not.toContain(KEY);
    expect(JSON.stringify(said)).not.toContain(gateway.token);
  }
});
