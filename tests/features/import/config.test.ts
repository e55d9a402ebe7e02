// An imported configuration: the settings, the file, and a gateway that starts with the file.

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSettings } from "../../../src/config.ts";
import { mapConfig } from "../../../src/features/import/config/map.ts";
import { good } from "../../store/transfer/moves.ts";
import { hashOf, put, sourceWith } from "./source.ts";
import { stage } from "./stage.ts";

const KEY = "sk-abcdefghijklmnop1234567890";
const BOT = "1234567890:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawx";

const FULL = {
  agents: {
    defaults: {
      model: { primary: "fast", fallbacks: ["openai/gpt-5.5"] },
      models: { "local/qwen3": { alias: "fast" } },
      thinkingDefault: "low",
      workspace: "~/clawd",
      subagents: { maxConcurrent: 3, archiveAfterMinutes: 30 },
      sandbox: { mode: "non-main", workspaceAccess: "rw", docker: { network: "bridge" } },
      heartbeat: { every: "30m" },
    },
    list: [
      { id: "Main Agent", default: true, identity: { name: "Molly" } },
      {
        id: "research",
        model: "anthropic/claude-opus-4-5",
        subagents: { allowAgents: ["*"], thinking: "high" },
        tools: { profile: "minimal", deny: ["bash"] },
      },
    ],
  },
  models: {
    providers: {
      local: {
        baseUrl: "http://127.0.0.1:11434/v1",
        apiKey: KEY,
        timeoutSeconds: 5,
        models: [
          { id: "qwen3", name: "Qwen", input: ["text", "image"], contextWindow: 64_000, maxTokens: 4_000 },
        ],
      },
      bedrock: { baseUrl: "https://x", api: "bedrock-converse-stream", models: [{ id: "m", name: "m" }] },
    },
  },
  session: {
    dmScope: "per-channel-peer",
    mainKey: "Haupt",
    agentToAgent: { maxPingPongTurns: 2 },
    sendPolicy: {
      default: "deny",
      fallback: "ask",
      rules: [
        { action: "deny", match: { channel: "discord", chatType: "channel" } },
        { action: "allow" },
        { action: "deny", match: { keyPrefix: "cron:" } },
        { action: "deny", match: { weekday: "Sunday" } },
      ],
    },
  },
  tools: {
    allow: ["group:fs", "exec"],
    agentToAgent: { enabled: true, allow: ["Main"] },
    subagents: { tools: { deny: ["exec"], byProvider: {} } },
    exec: { timeoutSec: 60 },
    web: { search: { apiKey: KEY } },
  },
  channels: {
    telegram: { botToken: "${BOT_TOKEN}", allowFrom: ["1"], linkPreview: false },
    discord: { token: BOT },
    slack: { botToken: "x" },
  },
  env: { vars: { note: "${lower} and $${ESCAPED}" } },
};

test("agents, tools, session, models and channels become a configuration with which Parley starts", async () => {
  const dir = sourceWith({ config: FULL });
  const before = hashOf(dir);
  const { home, imported } = await stage("embedded");
  const report = await imported(dir, { accept: ["tokens"] });
  const path = join(home, ".parley", "parley.json5");
  expect(report.config).toMatchObject({ kind: "written", path });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(hashOf(dir)).toBe(before);
  const { settings } = good(loadSettings({ env: { BOT_TOKEN: "b" }, home }));
  expect(settings.agents.map(({ id, name, model, default: first }) => [id, name, model, first])).toEqual([
    ["main-agent", "Molly", "local/qwen3", true],
    ["research", undefined, "anthropic/claude-opus-4-5", false],
  ]);
  expect(settings.agents.map(({ fallbackModels }) => fallbackModels)).toEqual([
    ["openai/gpt-5.5"],
    ["openai/gpt-5.5"],
  ]);
  // CT1: a tool profile becomes a list of allowed tools.
  expect(settings.agents[1]?.tools).toEqual({ allow: ["session_status"], deny: ["exec"] });
  expect(settings.agents[0]?.sandbox).toMatchObject({ mode: "non-main", network: true });
  expect(settings.session).toMatchObject({
    mainKey: "haupt",
    dmScope: "per-peer",
    agentToAgent: { maxPingPongTurns: 2 },
  });
  expect(settings.session.sendPolicy).toEqual({
    default: "deny",
    rules: [
      { match: { channel: "discord", chatType: "room" }, action: "deny" },
      { match: {}, action: "allow" },
      { match: { keyPrefix: "cron:" }, action: "deny" },
    ],
  });
  expect(settings.tools.filter.allow).toEqual(["read", "write", "edit", "exec"]);
  expect(settings.tools.exec.timeoutSeconds).toBe(60);
  expect(settings.subagents).toMatchObject({ maxConcurrent: 3, archiveAfterMinutes: 30 });
  expect(readFileSync(path, "utf8")).toContain(KEY);

  // Settings without an equivalent are reported by name, never with their values.
  const told = JSON.stringify(report);
  for (const secret of [KEY, BOT]) expect(told).not.toContain(secret);
  const notes = report.config.notes.join("\n");
  expect(notes).toContain("rules[3] matches by weekday");
  expect(notes).toContain("models.providers.bedrock uses an unsupported API");
  expect(notes).toContain("ANTHROPIC_API_KEY");
  expect(notes).toContain("BOT_TOKEN");
  expect(notes).toContain("channels.telegram: these settings are not imported: linkPreview");
  expect(notes).toContain("tools.subagents.tools.byProvider has no counterpart here");
  expect(notes).toContain("models.providers.local.timeoutSeconds has no counterpart here");
  expect(notes).toContain("not converted: tools.web. The setting here: tools.search and tools.fetch");
  expect(report.config.left).toEqual([
    ...["agents.list[research].subagents", "channels.slack", "session.sendPolicy"],
  ]);
});

test("an existing configuration is never changed: a proposal is written next to it, once", async () => {
  const dir = sourceWith({ config: FULL });
  const mine = { agents: { list: [{ id: "mine" }] } };
  const { home, imported } = await stage("embedded", mine);
  const path = join(home, ".parley", "parley.json5");
  const proposal = join(home, ".parley", "parley.imported.json5");
  expect((await imported(dir)).config).toMatchObject({ kind: "proposed", path: proposal });
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(mine);
  expect((await imported(dir)).config).toMatchObject({ kind: "there", path: proposal });
  writeFileSync(proposal, "// changed by hand\n{}");
  expect((await imported(dir)).config).toMatchObject({
    kind: "proposed",
    path: join(home, ".parley", "parley.imported-2.json5"),
  });
  expect(readFileSync(proposal, "utf8")).toContain("by hand");
});

test("an import replaces an empty configuration file", async () => {
  const { home, imported } = await stage("embedded", {});
  const path = join(home, ".parley", "parley.json5");
  writeFileSync(path, " \n");
  expect((await imported(sourceWith({ config: FULL }))).config).toMatchObject({ kind: "written", path });
  expect(readFileSync(path, "utf8")).toContain("Made by");
});

test("settings that would prevent a start are omitted and reported, and a file that cannot be parsed is ignored", async () => {
  const config = {
    agents: {
      defaults: { model: "nowhere/none", maxConcurrent: -5, thinkingDefault: "telepathy" },
      list: [{ id: "a" }, { id: "a" }, {}, 7, { id: "b", default: true }, { id: "c", default: true }],
    },
    session: { mainKey: "no good key", scope: "sideways" },
    models: { providers: { "bad id": { baseUrl: "x" }, half: {} } },
    tools: { profile: "unheard-of" },
  };
  const { home, imported } = await stage("embedded");
  const report = await imported(sourceWith({ config }));
  expect(report.config.kind).toBe("written");
  const { settings } = good(loadSettings({ env: {}, home }));
  expect(settings.agents.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  // If a filter cannot be parsed, everything is denied.
  expect(settings.tools.filter.deny).toEqual(["*"]);
  expect(report.config.notes.join("\n")).toContain("left out: agents.defaults.model");

  const broken = sourceWith({ agents: { main: { main: { sessionId: "x" } } } });
  put(broken, "clawdbot.json", "{ nothing: ");
  const other = await stage("embedded");
  expect((await other.imported(broken)).config.kind).toBe("none");
  expect(existsSync(join(other.home, ".parley", "parley.json5"))).toBe(false);
});

test("included files are read only inside the source folder, and cycles of includes end", async () => {
  const dir = sourceWith({ config: { $include: "parts/a.json5", session: { mainKey: "own" } } });
  put(dir, "parts/a.json5", "{ $include: './b.json5', agents: { list: [{ id: 'one' }] } }");
  put(
    dir,
    "parts/b.json5",
    "{ $include: './a.json5', agents: { list: [{ id: 'two' }] }, session: { mainKey: 'other' } }",
  );
  const { home, imported } = await stage("embedded");
  await imported(dir);
  const { settings } = good(loadSettings({ env: {}, home }));
  expect(settings.session.mainKey).toBe("own");
  expect(settings.agents.map(({ id }) => id).sort()).toEqual(["one", "two"]);
});

test("an older layout can be imported, too, and the same source always gives the same file", () => {
  const early = {
    agent: { model: "anthropic/claude-sonnet-5", workspace: "~/w" },
    routing: { agentToAgent: { enabled: true } },
    telegram: { botToken: BOT },
  };
  const { file } = mapConfig(early);
  expect(file).toMatchObject({
    agents: { defaults: { model: "anthropic/claude-sonnet-5" } },
    tools: { agentToAgent: { enabled: true } },
    channels: { telegram: { botToken: BOT } },
  });
  expect(JSON.stringify(mapConfig(structuredClone(early)).file)).toBe(JSON.stringify(file));
});
