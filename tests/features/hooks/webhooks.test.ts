// Outgoing web hooks of a whole gateway arrive at a receiver, also across a restart.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSettings } from "../../../src/config.ts";
import { nameOf } from "../../../src/features/hooks/settings.ts";
import { makeHome, run, runJson, startGateway } from "../../cli/kit.ts";
import { SECRET, startReceiver } from "../../kit/hook-receiver.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { words } from "../../store/transfer/moves.ts";
import { settingsWith } from "../../tools/app.ts";

const EVENTS = ["run.ended", "session.created", "session.reset"];

test("a run, a reset and a new sub-agent are each sent to the web hook once, with the session", async () => {
  const receiver = await startReceiver();
  const outgoing = [{ name: "ci", url: receiver.url, secret: SECRET, events: EVENTS }];
  const { home } = await makeHome({ hooks: { outgoing } });
  await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "20", "say hello there"]);
  const ended = await receiver.next(({ type }) => type === "run.ended");
  expect(ended.body.data).toMatchObject({ sessionKey: "agent:main:main", agentId: "main", status: "ok" });
  expect(ended.body.data.text).toContain("hello there");
  await run(home, ["sessions", "reset", "main"]);
  const reset = await receiver.next(({ type }) => type === "session.reset");
  expect(reset.body.data).toEqual({ sessionKey: "agent:main:main", agentId: "main" });
  const spawn = JSON.stringify({ task: "say done" });
  const spawned = await run(home, ["tool", "sessions_spawn", spawn, "--as", "agent:main:main"]);
  expect(spawned.code).toBe(0);
  const child = await receiver.next(
    ({ type, body }) => type === "session.created" && body.data.sessionKey.includes(":subagent:"),
  );
  expect(child.body.data.agentId).toBe("main");
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(receiver.told.length);
});

test("an event that could not be sent is shown as pending, and arrives once after a restart", async () => {
  const gone = await startReceiver();
  const port = Number(new URL(gone.url).port);
  await gone.close();
  const outgoing = [{ url: gone.url, secret: SECRET, events: ["run.ended"] }];
  const { home } = await makeHome({ hooks: { outgoing } });
  const gateway = await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "20", "say one"]);
  const waiting = (await runJson(home, ["deliveries"])) as {
    deliveries: { id: string; kind: string; state: string }[];
  };
  expect(waiting.deliveries).toMatchObject([
    { kind: "hook", state: "pending", route: { channel: "webhook" } },
  ]);
  const shown = (await run(home, ["deliveries"])).out;
  expect(shown).toContain("webhook 127.0.0.1");
  for (const hidden of [SECRET, "/told"]) expect(shown).not.toContain(hidden);
  await gateway.stop();
  const receiver = await startReceiver(undefined, { port });
  await startGateway(home);
  const told = await receiver.next(() => true);
  expect(told.id).toBe(waiting.deliveries[0]?.id);
  expect(receiver.told).toHaveLength(1);
});

test("an invalid hook prevents the start with a clear error that shows neither its secret nor its address", async () => {
  const load = (outgoing: unknown) => loadSettings({ env: {}, home: homeWith({ hooks: { outgoing } }) });
  const url = "https://example.com/in?key=hush-hush";
  const good = { url, events: ["run.ended"], secret: SECRET };
  const settings = load([good, { ...good, enabled: false, name: "off" }]);
  expect(settings).toMatchObject({
    ok: true,
    value: {
      warnings: [],
      settings: { hooks: { outgoing: [{ url }, { enabled: false }] } },
    },
  });
  const { hooks } = settings.ok ? settings.value.settings : settingsWith();
  expect(hooks.outgoing.map(nameOf)).toEqual([expect.stringMatching(/^example\.com-[0-9a-f]{8}$/), "off"]);
  expect(words(load([{ ...good, events: ["run.exploded"] }]))).toContain(
    "must be one of run.ended, session.created",
  );
  expect(words(load([{ ...good, events: [] }]))).toContain("must name at least one event");
  expect(words(load([{ ...good, secret: "hush-short" }]))).toContain("must have at least 16 characters");
  expect(words(load([{ ...good, secret: "hush-short" }]))).not.toContain("hush-short");
  expect(words(load([{ ...good, url: "ftp://example.com" }]))).toContain("must be an http or https address");
  expect(words(load([{ ...good, url: "https://me:pw@example.com" }]))).toContain(
    "must not contain user and password",
  );
  expect(words(load([good, good]))).toContain("is listed twice");
  const home = homeWith({ hooks: { outgoing: [good] } });
  const check = await run(home, ["--json", "config", "check"]);
  expect(check.code).toBe(0);
  expect(check.out).not.toContain("hush");
  expect(check.out).not.toContain(SECRET);
  expect(readFileSync(join(home, ".parley", "parley.json5"), "utf8")).toContain("hush");
});
