// Imports the state that the newest OpenClaw itself has written. `npm run import:source` makes the files.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { loadSettings } from "../../../src/config.ts";
import { guidanceReach } from "../../../src/core/rules/prompt/guidance.ts";
import { listNodes } from "../../../src/features/nodes/store.ts";
import { readMemory } from "../../../src/store/queries/agent-memory.ts";
import { getPeer } from "../../../src/store/queries/channels/channel-peers.ts";
import { GuidanceFiles } from "../../../src/tools/guidance/guidance.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { good } from "../../store/transfer/moves.ts";
import { MAIN_CHAIN } from "../../tools/app.ts";
import { put } from "./source.ts";
import { stage } from "./stage.ts";

const MADE = join("tests", "features", "import", "openclaw-2026.9.6");

function source(): string {
  const dir = temporaryFolder();
  put(dir, "openclaw.json", readFileSync(join(MADE, "openclaw.json")));
  for (const file of readdirSync(MADE).filter((name) => name.endsWith(".gz"))) {
    const path = file.replace(/\.gz$/, "").replaceAll("--", "/");
    put(dir, path, gunzipSync(readFileSync(join(MADE, file))));
  }
  const workspaces = JSON.parse(readFileSync(join(MADE, "workspaces.json"), "utf8"));
  for (const [path, text] of Object.entries(workspaces)) put(dir, path, String(text));
  return dir;
}

test("workspaces, memory, fallback models and MCP servers of openclaw 2026.9.6 are carried over", async () => {
  const dir = source();
  const skill = (name: string) => `---\nname: ${name}\ndescription: Brewing ${name}.\n---\nUse hot water.\n`;
  put(dir, "workspace-main/skills/tea/SKILL.md", skill("tea"));
  put(dir, "skills/coffee/SKILL.md", skill("coffee"));
  const at = await stage("embedded");
  const report = await at.imported(dir, { accept: ["workspaces", "mcp"] });
  const workspace = join(at.home, ".parley", "workspace");
  expect(report.workspaces).toEqual([
    {
      ...{ agentId: "main", from: join(dir, "workspace-main"), to: workspace, how: "copied", files: 8 },
      memory: ["MEMORY.md", "memory/2026-01-20.md"],
    },
    {
      ...{ agentId: "research", from: join(dir, "workspace-research"), to: `${workspace}-research` },
      ...{ how: "copied", files: 5, memory: [] },
    },
  ]);
  const { text } = await at.inStore(({ db }) => readMemory(db, "main"));
  expect(text).toContain("text of workspace-main/MEMORY.md\n\n## memory/2026-01-20.md");
  const { settings } = good(loadSettings({ env: {}, home: at.home }));
  expect(settings.agents[0]).toMatchObject({ workspace, fallbackModels: ["test/spare-model"] });
  expect(settings.tools.mcp.servers).toMatchObject([{ name: "notes", reach: { command: "notes-server" } }]);
  const guidance = new GuidanceFiles({ now: () => Date.now(), home: at.home });
  const reach = guidanceReach(MAIN_CHAIN, settings);
  const { files, skills } = await guidance.forAgent(settings.agents[0] as never, reach);
  expect(skills.map(({ name }) => name)).toEqual(["tea"]);
  expect(report.remarks).toContainEqual({
    what: "skills for all agents, not imported: copy them to ~/.parley/skills",
    ...{ count: 1, examples: ["coffee"] },
  });
  const order = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"];
  expect(files.map(({ text: one }) => one)).toEqual(order.map((name) => `text of workspace-main/${name}`));
  const again = await at.imported(dir, { accept: ["workspaces"] });
  expect(again.workspaces.map(({ how, files: copied, memory }) => [how, copied, memory])).toEqual([
    ["unchanged", 0, []],
    ["unchanged", 0, []],
  ]);
});

test("sessions, jobs and nodes that openclaw 2026.9.6 stored are imported", async () => {
  const dir = source();
  const at = await stage("embedded");
  const report = await at.imported(dir, { accept: ["all"] });
  expect(report.sessions).toMatchObject({ added: 3 });
  expect(await at.said("agent:main:main")).toEqual([
    ...["person: hello from the source", "assistant: noted"],
    ...["person: hello from telegram", "assistant: noted"],
  ]);
  expect(await at.said("agent:main:telegram:group:-1001")).toEqual([
    ...["person: hello from the group", "assistant: noted"],
  ]);
  expect(await at.said("agent:research:main")).toEqual([
    "person: what is new in research?",
    "assistant: noted",
  ]);
  expect(report.jobs).toEqual({ added: 6, unchanged: 0 });
  const jobs = await at.inStore(({ db }) => db.selectFrom("cron_jobs").selectAll().orderBy("name").execute());
  expect(jobs.map(({ name, session_key: key, message, enabled }) => [name, key, message, enabled])).toEqual([
    ["Daily reset (main)", "agent:main:main", "/reset", 0],
    ["Daily reset (research)", "agent:research:main", "/reset", 0],
    [
      "Heartbeat (main)",
      "agent:main:main",
      expect.stringMatching(/HEARTBEAT_OK.\n\nLook at the garden\.$/),
      0,
    ],
    ["Heartbeat (research)", "agent:research:main", expect.stringMatching(/HEARTBEAT_OK\.$/), 0],
    ["Main", "agent:main:main", "look", 0],
    ["Morning", null, "what is new?", 0],
  ]);
  const beat = jobs.find(({ name }) => name === "Heartbeat (main)");
  expect(JSON.parse(beat?.schedule_json ?? "")).toMatchObject({ kind: "every", everyMs: 45 * 60_000 });
  expect(JSON.parse(beat?.deliver_json ?? "")).toEqual({ channel: "last", to: "agent:main:main" });
  expect(report.nodes).toMatchObject({ added: 1 });
  expect((await at.inStore(({ db }) => listNodes(db))).map(({ node }) => node.name)).toEqual(["Attic"]);
  // Nothing is unknown: these are the program's own jobs.
  expect(report.remarks.map(({ what, count }) => [what, count])).toEqual([
    ["open requests for pairing, which must be made again", 1],
    ["heartbeats and daily resets, which are scheduled jobs here", 4],
    ["jobs that the source's program made for itself, skipped", 3],
  ]);
  expect((await at.imported(dir)).sessions).toMatchObject({ added: 0, unchanged: 3 });
});

test("bots, bindings, allow lists, pairings and the owner that openclaw 2026.9.6 wrote are imported once they are accepted", async () => {
  const at = await stage("embedded");
  const dir = source();
  const offered = await at.imported(dir, { dryRun: true });
  const names = offered.config.trusted.map(({ name }) => name);
  expect(names).toEqual([
    ...["commands.owners.telegram:801", "tools.mcp.servers.notes"],
    ...["botToken", "allowFrom", "groups"].map((key) => `channels.telegram.accounts.default.${key}`),
    ...["botToken", "allowFrom", "groups"].map((key) => `channels.telegram.accounts.work.${key}`),
    ...["paired.telegram.default", "paired.telegram.work"],
    expect.stringMatching(/^nodes\./),
    ...["agents.list.main.workspace", "agents.list.research.workspace"],
  ]);
  expect(offered.config.trusted.every(({ accepted }) => !accepted)).toBe(true);
  const report = await at.imported(dir, { accept: ["all"] });
  expect(report.people).toMatchObject({ added: 2 });
  const { settings } = good(loadSettings({ env: {}, home: at.home }));
  expect(settings.owners).toEqual(["telegram:801"]);
  const group = { "-1001": expect.objectContaining({ requireMention: false, allowFrom: ["4711"] }) };
  expect(settings.channels).toMatchObject([
    { accountId: "default", agentId: "main", dmPolicy: "pairing", allowFrom: ["4711"], groups: group },
    { accountId: "work", agentId: "research", dmPolicy: "pairing", allowFrom: ["4711"], groups: group },
  ]);
  const peers = [
    { accountId: "default", peerId: "801" },
    { accountId: "default", peerId: "802" },
    { accountId: "work", peerId: "803" },
  ];
  const states = await at.inStore(({ db }) =>
    Promise.all(peers.map(async (peer) => (await getPeer(db, { channel: "telegram", ...peer }))?.state)),
  );
  expect(states).toEqual(["approved", undefined, "approved"]);
});
