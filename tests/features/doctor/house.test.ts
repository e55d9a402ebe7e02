// Tests the doctor's findings about models and about the locations of files. The doctor sends one request to
// each model.

import { chmodSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { useProxies } from "../../../src/world/proxy.ts";
import { configFile, makeHome, run } from "../../cli/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type Script, startModelServer } from "../../kit/model-server/server.ts";
import { httpError, text, usage } from "../../kit/model-server/steps.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { silentLog } from "../../store/samples.ts";

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
  readonly mend?: string;
}

const KEY = "key-planted-4f9a77c2d1e0";

async function served(script: Script) {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  const provider = (api: Parameters<typeof server.provider>[0]) => {
    const { baseUrl, models } = server.provider(api);
    const [{ id, contextWindow, cost } = { id: "" }] = models;
    return { api, baseUrl, apiKey: KEY, models: [{ id, contextWindow, cost }] };
  };
  return { server, provider };
}

async function findings(home: string, name: string, ...words: string[]) {
  const { code, out } = await run(home, ["--json", "doctor", ...words]);
  const all = (JSON.parse(out) as { findings: Finding[] }).findings;
  return { code, out, found: all.filter((one) => one.name === name) };
}

test("a store whose folder cannot be made is a problem before the first start", async () => {
  const { home } = await makeHome({});
  writeFileSync(join(home, "file"), "");
  const { home: other } = await makeHome({ store: { dir: join(home, "file", "store") } });
  const { code, found } = await findings(other, "store", "--offline");
  expect(code).toBe(1);
  expect(found[0]).toMatchObject({ level: "problem", text: expect.stringContaining("is no folder") });
});

test("MC1: each model in use gets one request with a one-word answer, and the cost is reported", async () => {
  const { server, provider } = await served(() => [usage({ input: 40, output: 2 }), text("ok")]);
  const { home } = await makeHome({
    models: {
      providers: {
        first: provider("openai-completions"),
        second: provider("anthropic-messages"),
        third: provider("google-generative-ai"),
        spare: provider("openai-responses"),
      },
    },
    agents: {
      list: [
        { id: "main", model: "first/test-model" },
        { id: "twin", model: "first/test-model" },
        { id: "research", model: "second/test-model", subagents: { model: "third/test-model" } },
      ],
    },
  });
  const { code, found } = await findings(home, "models");
  expect(code).toBe(0);
  expect(found.map(({ level }) => level)).toEqual(["ok", "ok", "ok", "ok", "ok"]);
  for (const [at, id] of ["first", "second", "third", "spare"].entries())
    expect(found[at + 1]?.text).toMatch(
      new RegExp(`^${id}/test-model: answered in .* s \\(42 tokens, \\$0\\.000150\\)$`),
    );
  expect(server.requests.length).toBe(4);
  const offline = await findings(home, "models", "--offline");
  expect(offline.found[1]?.text).toContain("not called (--offline)");
  expect(server.requests.length).toBe(4);
});

test("MC2: a refused key is a problem with the provider's message, without the key; for a spare provider it is a warning", async () => {
  const { provider } = await served(() => httpError(401, `the key ${KEY} is not known`));
  const { home } = await makeHome({
    models: { providers: { first: provider("openai-completions"), spare: provider("anthropic-messages") } },
    agents: { list: [{ id: "main", model: "first/test-model" }] },
  });
  const { code, out, found } = await findings(home, "models");
  expect(code).toBe(1);
  expect(found.map(({ level }) => level)).toEqual(["ok", "problem", "warning"]);
  expect(found[1]?.text).toMatch(/^first\/test-model: .*is not known/);
  expect(found[1]?.mend).toContain("models.providers.first");
  expect(out).not.toContain(KEY);
});

test("doctor reports the address of an unreachable provider", async () => {
  const { server, provider } = await served(() => [text("o", 1)]);
  const { home } = await makeHome({
    models: { providers: { first: provider("openai-completions") } },
    agents: { list: [{ id: "main", model: "first/test-model" }] },
  });
  await server.close();
  const { code, found } = await findings(home, "models");
  expect(code).toBe(1);
  expect(found[1]?.text).toContain(`no answer from ${server.url}`);
});

test("doctor tests no model for an agent that is an outside program", async () => {
  const { server, provider } = await served(() => "ok");
  const { home } = await makeHome({
    models: { providers: { first: provider("openai-completions") } },
    agents: { list: [{ id: "main", runtime: { type: "acp", command: ["some-agent"] } }] },
  });
  const { found } = await findings(home, "models");
  expect(found[0]?.text).toContain("agents are external programs");
  // The doctor also checks a provider that no agent uses, with one request.
  expect(server.requests.length).toBe(1);
});

test("free disk space is reported, also for a folder that does not exist yet", async () => {
  const { home } = await makeHome();
  const { found } = await findings(home, "disk");
  expect(found).toEqual([
    { name: "disk", level: expect.any(String), text: expect.stringMatching(/ free in /) },
  ]);
  expect(found[0]?.text).toContain(join(home, ".parley"));
});

// Skipped on Windows, where folders have no modes.
test.skipIf(lacks("modes of folders", process.platform !== "win32"))(
  "the doctor reports users who may change the configuration or read the service's keys",
  async () => {
    const { home } = await makeHome();
    const before = await findings(home, "permissions");
    expect(before.found).toEqual([]);
    chmodSync(configFile(home), 0o620);
    chmodSync(join(home, ".parley"), 0o777);
    writeFileSync(join(home, ".parley/service.env"), "A=b\n", { mode: 0o644 });
    chmodSync(join(home, ".parley/service.env"), 0o644);
    const { code, found } = await findings(home, "permissions");
    expect(code).toBe(1);
    expect(found.map(({ level, mend }) => [level, mend])).toEqual([
      ["problem", `chmod go-w ${configFile(home)}`],
      ["problem", `chmod go-w ${join(home, ".parley")}`],
      ["warning", `chmod 600 ${join(home, ".parley/service.env")}`],
    ]);
  },
);

test("a clock that was set back is detected by comparison with the store's last change", async () => {
  const { home } = await makeHome();
  const state = join(home, ".parley/state");
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, "parley.sqlite-wal"), "");
  const inAnHour = Date.now() / 1000 + 3_600;
  utimesSync(join(state, "parley.sqlite-wal"), inAnHour, inAnHour);
  const { found } = await findings(home, "clock");
  expect(found).toEqual([
    expect.objectContaining({
      level: "warning",
      text: expect.stringMatching(/^the store was last changed 3\d{3} s/),
    }),
  ]);
});

test("doctor reports a truncated store as a problem, and also a store without its log", async () => {
  const { home } = await makeHome();
  const dir = join(home, ".parley", "state");
  const store = await openSqlite({ dir, durability: "full", log: silentLog });
  await store.transaction((tx) => tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute());
  const crashed = new Map(
    ["", "-wal", "-mark"].map((end) => [end, readFileSync(join(dir, STORE_FILE + end))]),
  );
  await store.close();
  expect(await findings(home, "store", "--offline")).toMatchObject({ found: [{ level: "ok" }] });
  const whole = readFileSync(join(dir, STORE_FILE));
  writeFileSync(join(dir, STORE_FILE), whole.subarray(0, whole.length / 2));
  const cut = await findings(home, "store", "--offline");
  expect(cut).toMatchObject({ code: 1, found: [{ level: "problem" }] });
  expect(cut.found[0]?.text).toContain("its end is missing");
  for (const [end, bytes] of crashed) writeFileSync(join(dir, STORE_FILE + end), bytes);
  expect(await findings(home, "store", "--offline")).toMatchObject({ found: [{ level: "ok" }] });
  rmSync(join(dir, `${STORE_FILE}-wal`));
  const { found } = await findings(home, "store", "--offline");
  expect(found[0]).toMatchObject({
    level: "problem",
    text: expect.stringContaining("npx parley-gateway store recover"),
  });
});

test("the proxies of the environment are named without their passwords", async () => {
  const { home } = await makeHome({});
  cleanup(() => useProxies({}));
  useProxies({
    HTTPS_PROXY: "http://me:a-planted-password@proxy.test:3128",
    all_proxy: "socks5://socks.test",
  });
  const { found, out } = await findings(home, "proxy", "--offline");
  expect(found).toEqual([
    { name: "proxy", level: "ok", text: "http://proxy.test:3128, from https_proxy" },
    expect.objectContaining({ level: "warning", text: expect.stringContaining("socks5://socks.test") }),
  ]);
  expect(out).not.toContain("planted");
});
