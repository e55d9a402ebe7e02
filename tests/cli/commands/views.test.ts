// parley status, parley logs and parley models.

import { expect, test } from "vitest";
import { freePort } from "../../kit/loopback.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { scriptedGateway } from "../../kit/scripted-gateway.ts";
import { call, makeHome, run, runJson, startGateway } from "../kit.ts";

test("parley status shows the gateway, its work and what needs a person, and exits with 3 if no gateway runs", async () => {
  const { home, port } = await makeHome();
  const nobody = await run(home, ["status"]);
  expect(nobody).toMatchObject({
    code: 3,
    out: "",
    err: expect.stringContaining("npx parley-gateway gateway"),
  });
  await startGateway(home);
  const idle = await run(home, ["status"]);
  expect(idle).toMatchObject({ code: 0, err: "" });
  expect(idle.out).toContain(`Gateway    ws://127.0.0.1:${port}, version 0.0.0, up`);
  expect(idle.out).toMatch(/Runs +0 running, 0 waiting, 0 queued\nChannels/);
  expect(idle.out).toMatch(/Needs you +nothing\n/);
  await run(home, ["send", "--session", "main", "wait 60 seconds"]);
  await expect.poll(async () => (await run(home, ["status"])).out).toContain("agent:main:main, running for");
  expect(await runJson(home, ["status"])).toMatchObject({
    ok: true,
    counts: { running: 1 },
    runs: [{ sessionKey: "agent:main:main", summary: "wait 60 seconds" }],
    attention: expect.arrayContaining([expect.objectContaining({ group: "needs_you" })]),
  });
});

test("parley logs -f prints new lines, and continues after the last one when the connection was lost", async () => {
  const gateway = await scriptedGateway();
  const following = call(homeWith({}), ["--url", gateway.url, "--token", "t", "logs", "-f"]);
  const page = (seq: number) => ({
    ...{ cursor: `after-${seq}`, dropped: 0, more: false },
    lines: [{ seq, time: 1, level: "info", msg: `line ${seq}` }],
  });
  (await gateway.request()).answer(page(1));
  await following.shows("line 1");
  expect((await gateway.request()).params).toMatchObject({ cursor: "after-1" });
  gateway.hangUp();
  const again = await gateway.request();
  expect(again.params).toMatchObject({ cursor: "after-1" });
  again.answer(page(2));
  await following.shows("line 2");
  await gateway.request();
  following.interrupt();
  expect(await following.code).toBe(0);
  expect(following.out().match(/line \d/g)).toEqual(["line 1", "line 2"]);
  expect(following.err().split("\n")).toEqual([
    "The connection to the gateway was lost. Reconnecting.",
    "Reconnected.",
    "",
  ]);
});

test("parley logs filters by level at the gateway, by part and run itself, and refuses --json with --follow", async () => {
  const gateway = await scriptedGateway();
  const home = homeWith({});
  const flags = ["--level", "warn", "--part", "engine", "store", "--run", "r1", "--limit", "2"];
  const asked = run(home, ["--url", gateway.url, "--token", "t", "logs", ...flags]);
  const request = await gateway.request();
  expect(request).toMatchObject({ method: "logs.tail", params: { level: "warn", search: "r1" } });
  const line = (seq: number, part: string, runId: string) => ({
    ...{ seq, time: 1, level: "warn", msg: `line ${seq}`, part, runId },
  });
  const lines = [
    ...[line(1, "engine", "r1"), line(2, "store", "r1"), line(3, "engine", "r2")],
    ...[line(4, "channels", "r1"), line(5, "engine", "r1")],
  ];
  request.answer({ cursor: "c", lines, dropped: 0, more: false });
  const { out } = await asked;
  expect(out.match(/WARN .*line \d/g)?.map((text) => text.slice(-1))).toEqual(["2", "5"]);
  expect(await run(home, ["--json", "logs", "-f"])).toMatchObject({ code: 2 });
});

test("parley models names the source of each key and the users of each model, and prints no key", async () => {
  const port = await freePort();
  const local = { api: "openai-completions", baseUrl: `http://127.0.0.1:${port}/v1`, maxRetries: 0 };
  const { home } = await makeHome({
    models: {
      providers: {
        anthropic: {},
        openai: { apiKey: "sk-written-in-the-file" },
        google: {},
        mine: { ...local, apiKey: "${MINE}", models: [{ id: "big" }] },
        local: { ...local, models: [{ id: "small" }] },
      },
    },
    agents: { list: [{ id: "main", model: "local/small" }] },
  });
  const env = { ANTHROPIC_API_KEY: "sk-ant-in-the-environment", MINE: "my-own-secret-key" };
  const { code, out } = await run(home, ["models"], { env });
  expect(code).toBe(0);
  expect(out).toMatch(/anthropic\/claude-sonnet-5 +ANTHROPIC_API_KEY/);
  expect(out).toMatch(/openai\/gpt-6-sol +configuration file/);
  expect(out).toMatch(/google\/gemini-\S+ +missing/);
  expect(out).toMatch(/mine\/big +MINE/);
  expect(out).toMatch(/local\/small +main +none needed/);
  for (const secret of [env.ANTHROPIC_API_KEY, env.MINE, "sk-written-in-the-file"])
    expect(out).not.toContain(secret);
});

test("parley models --test calls the models that agents use, and exits with 1 if one does not answer", async () => {
  const port = await freePort();
  const local = { api: "openai-completions", baseUrl: `http://127.0.0.1:${port}/v1`, maxRetries: 0 };
  const { home } = await makeHome({
    models: { providers: { local: { ...local, models: [{ id: "small" }] } } },
    agents: { list: [{ id: "main", model: "local/small" }] },
  });
  const { code, out } = await run(home, ["models", "--test"]);
  expect(code).toBe(1);
  expect(out).toMatch(/✗ local\/small: /);
  const offline = await run((await makeHome()).home, ["models", "--test"]);
  expect(offline).toMatchObject({ code: 0, out: expect.stringContaining("offline/rehearsal") });
});
