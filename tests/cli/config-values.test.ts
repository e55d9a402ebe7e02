// `parley config get` and `parley config set`, with a running gateway and without one.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { configFile, makeHome, run, runJson } from "./kit.ts";

const FILE = '// Ours.\n{\n  session: { queueMax: 7 }, // short\n  commands: { owners: ["me"] },\n}\n';

async function homeWithFile(): Promise<string> {
  const { home } = await makeHome();
  writeFileSync(configFile(home), FILE);
  return home;
}

test("config set changes the file without a gateway, and keeps its comments", async () => {
  const home = await homeWithFile();
  const dry = await run(home, ["config", "set", "session.queueMax", "9", "--dry-run"]);
  expect(dry).toMatchObject({
    code: 0,
    out: expect.stringContaining("+  session: { queueMax: 9 }, // short"),
  });
  expect(readFileSync(configFile(home), "utf8")).toBe(FILE);
  const set = await run(home, ["config", "set", "session.queueMax", "9"]);
  expect(set.out).toContain(`Saved ${configFile(home)}.`);
  expect(readFileSync(configFile(home), "utf8")).toBe(FILE.replace("7", "9"));
  expect(await run(home, ["config", "get", "session.queueMax"])).toMatchObject({ code: 0, out: "9\n" });
  await run(home, ["config", "set", "--unset", "session.queueMax"]);
  expect(await runJson(home, ["config", "get", "session.queueMax"])).toMatchObject({
    ...{ isSet: false, value: null, default: "200" },
  });
});

test("config get and config set name the nearest path, and explain a setting with a wrong value", async () => {
  const home = await homeWithFile();
  for (const argv of [
    ["config", "get", "session.quueMax"],
    ["config", "set", "session.quueMax", "8"],
    ["config", "set", "session.quueMax", "--unset"],
  ])
    expect(await run(home, argv)).toMatchObject({
      code: 1,
      err: expect.stringContaining("the nearest valid key is session.queueMax"),
    });
  const wrong = await run(home, ["config", "set", "session.queueMax", "many"]);
  expect(wrong.err).toContain('session.queueMax: must be a number, got "many"');
  expect(wrong.err).toContain("integer 1 to 100000, count, default 200");
  expect(readFileSync(configFile(home), "utf8")).toBe(FILE);
});

test("config set reads a value from standard input, so that a secret is no argument", async () => {
  const home = await homeWithFile();
  const argv = ["config", "set", "models.providers.openai.apiKey", "-"];
  const set = await run(home, argv, { input: "sk-a-secret-of-ours-0123456789\n" });
  expect(set).toMatchObject({ code: 0 });
  expect(set.out + set.err).not.toContain("sk-a-secret");
  expect(readFileSync(configFile(home), "utf8")).toContain('"sk-a-secret-of-ours-0123456789"');
  expect(await run(home, argv, { input: " \n" })).toMatchObject({
    code: 2,
    err: expect.stringContaining("standard input has no value"),
  });
  const long = await run(home, argv, { input: "x".repeat(70_000) });
  expect(long).toMatchObject({ code: 2, err: expect.stringContaining("more than 65536 characters") });
});

test("an invalid file can be corrected by config set, and a path is needed", async () => {
  const home = await homeWithFile();
  writeFileSync(configFile(home), FILE.replace("7", '"seven"'));
  expect(await run(home, ["config", "set", "session.queueMax", "7"])).toMatchObject({ code: 0 });
  expect(readFileSync(configFile(home), "utf8")).toBe(FILE);
  expect(await run(home, ["config", "set", "session..x", "7"])).toMatchObject({ code: 2 });
  expect(await run(home, ["config", "set", "session.queueMax"])).toMatchObject({ code: 2 });
});

test("config set changes a running gateway's settings over the protocol, and hides secrets", async () => {
  const home = homeWith({ session: { queueMax: 7 } });
  const gateway = await startProcess({ home });
  const at = ["--url", gateway.url, "--token", gateway.token];
  const set = await run(home, [...at, "config", "set", "session.mainKey", "desk"]);
  expect(set).toMatchObject({
    code: 0,
    out: expect.stringContaining("Takes effect after a restart: session.mainKey."),
  });
  const token = await run(home, [...at, "config", "get", "gateway.auth.token"]);
  expect(token.out).toMatch(/^\[hidden \w+\]\n$/);
  expect(await run(home, [...at, "config", "get", "session.mainKey"])).toMatchObject({ out: "desk\n" });
});

test("with --config, config set changes that file, although a gateway with another one answers", async () => {
  const other = homeWith({ session: { dmScope: "main" } });
  const gateway = await startProcess({ home: other });
  const mine = join(other, "mine.json5");
  const { port } = new URL(gateway.url);
  writeFileSync(mine, JSON.stringify({ gateway: { port: Number(port), auth: { token: gateway.token } } }));
  const before = readFileSync(configFile(other), "utf8");
  const set = await run(other, ["--config", mine, "config", "set", "session.queueMax", "9"]);
  expect(set).toMatchObject({ code: 0, out: expect.stringContaining(`Saved ${mine}.`) });
  expect(readFileSync(configFile(other), "utf8")).toBe(before);
  expect(readFileSync(mine, "utf8")).toContain("queueMax");
});

const LISTS = `{
  agents: {
    list: [
      { id: "main", default: true }, // ours
      { id: "research", model: "offline/rehearsal" },
    ],
  },
  hooks: { outgoing: [{ name: "news", url: "https://example.org/a", events: ["run.ended"], secret: "plain words of ours" }] },
}
`;

test("config get, set and unset take an entry of a list by its id or name, as by its position", async () => {
  const { home } = await makeHome();
  const file = configFile(home);
  writeFileSync(file, LISTS);
  const set = (...argv: string[]) => run(home, ["config", "set", ...argv]);
  expect(await run(home, ["config", "get", "agents.list.research.model"])).toMatchObject({
    out: "offline/rehearsal\n",
  });
  expect(await set("agents.list.Research.thinking", "high")).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toContain('thinking: "high"');
  expect(await set("agents.list[1].thinking", "low")).toMatchObject({ code: 0 });
  expect(await set("hooks.outgoing.news.enabled", "false")).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toContain("enabled: false }");
  expect(await set("agents.list.research", '{"thinking":"off"}')).toMatchObject({ code: 0 });
  expect(await runJson(home, ["config", "get", "agents.list.research"])).toMatchObject({
    value: { id: "research", thinking: "off" },
  });
  expect(await set("agents.list.writer", '{"name":"Writer"}')).toMatchObject({ code: 0 });
  expect(await set("--unset", "agents.list.research")).toMatchObject({ code: 0 });
  expect(await runJson(home, ["config", "get", "agents.list"])).toMatchObject({
    value: [{ id: "main" }, { id: "writer", name: "Writer" }],
  });
  expect(readFileSync(file, "utf8")).toContain("// ours");
});

test("an id that no entry has, or that several have, is an error that names the ids or positions", async () => {
  const { home } = await makeHome();
  const file = configFile(home);
  writeFileSync(file, LISTS);
  for (const argv of [
    ["config", "get", "agents.list.writr.model"],
    ["config", "get", "agents.list.writr"],
    ["config", "set", "agents.list.writr.model", "offline/rehearsal"],
    ["config", "set", "agents.list.writr", "text"],
    ["config", "set", "--unset", "agents.list.writr"],
  ])
    expect(await run(home, argv)).toMatchObject({
      code: 1,
      err: expect.stringContaining('agents.list has no entry with id "writr". It has: main, research.'),
    });
  const token = { token: "a-token-of-ours-0123456789", scopes: ["operator.read"] };
  writeFileSync(file, JSON.stringify({ gateway: { auth: { tokens: [token] } } }));
  const other = await run(home, ["config", "set", "gateway.auth.tokens.other.scopes", "[]"]);
  expect(other.err).toContain("gateway.auth.tokens has no such entry. Give a position");
  expect(other.err).not.toContain("a-token");
  writeFileSync(file, '{ hooks: { outgoing: [{ name: "a" }, { name: "a" }] } }');
  expect((await run(home, ["config", "set", "hooks.outgoing.a.enabled", "false"])).err).toContain(
    "2 entries of hooks.outgoing have this name. Give a position: hooks.outgoing[0] or hooks.outgoing[1].",
  );
});
