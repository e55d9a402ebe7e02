// Workspaces of a source: which files are copied, and what a strange source cannot do with them. Heartbeats,
// resets and jobs of several versions.

import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MEMORY_MAX_BYTES } from "../../../src/core/rules/prompt/memory.ts";
import { getJob, listJobs } from "../../../src/features/cron/store.ts";
import { readMemory } from "../../../src/store/queries/agent-memory.ts";
import { put, sourceWith } from "./source.ts";
import { remark, stage } from "./stage.ts";

const accept = ["workspaces"];

test("only regular files are copied, without links and .git, and no file here is overwritten", async () => {
  const dir = sourceWith({ config: {} });
  const at = await stage("embedded");
  const outside = join(at.home, "outside");
  put(outside, "secret", "a secret");
  put(dir, "workspace/SOUL.md", "kind");
  put(dir, "workspace/USER.md", "theirs");
  put(dir, "workspace/deep/run.sh", "#!/bin/sh");
  put(dir, "workspace/into/file", "through a link");
  put(dir, "workspace/.git/config", "[core] fsmonitor = evil");
  symlinkSync(join(outside, "secret"), join(dir, "workspace", "link"));
  symlinkSync(outside, join(dir, "workspace", "folder"));
  const target = join(at.home, ".parley", "workspace");
  put(target, "USER.md", "mine");
  symlinkSync(outside, join(target, "into"));
  const report = await at.imported(dir, { accept });
  expect(report.workspaces).toMatchObject([{ how: "copied", files: 2, to: target }]);
  expect(readFileSync(join(target, "SOUL.md"), "utf8")).toBe("kind");
  expect(readFileSync(join(target, "USER.md"), "utf8")).toBe("mine");
  expect(statSync(join(target, "deep", "run.sh")).mode & 0o777).toBe(0o600);
  for (const name of ["link", "folder", ".git"]) expect(existsSync(join(target, name)), name).toBe(false);
  expect(existsSync(join(outside, "file"))).toBe(false);
  expect(remark(report, "links and .git folders")?.count).toBe(3);
});

test("without acceptance nothing of a workspace is copied, and an agent's own memory stays", async () => {
  const dir = sourceWith({ config: { agents: { list: [{ id: "tea" }] } } });
  put(dir, "workspace-tea/MEMORY.md", "theirs");
  const at = await stage("embedded");
  const target = join(at.home, ".parley", "workspace");
  const first = await at.imported(dir);
  expect(first.config.trusted).toMatchObject([{ name: "agents.list.tea.workspace", accepted: false }]);
  expect(existsSync(target)).toBe(false);
  expect((await at.imported(dir, { accept, dryRun: true })).workspaces).toMatchObject([{ files: 1 }]);
  expect(existsSync(target)).toBe(false);
  const second = await at.imported(dir, { accept });
  expect(second.workspaces).toMatchObject([{ files: 1, memory: ["MEMORY.md"] }]);
  put(dir, "workspace-tea/MEMORY.md", "changed there");
  expect((await at.imported(dir, { accept })).workspaces).toMatchObject([{ how: "unchanged", memory: [] }]);
  expect(await at.inStore(async ({ db }) => (await readMemory(db, "tea")).text)).toBe("theirs");
});

test("a person chooses a copy or a link, and a linked workspace is used where it is", async () => {
  const dir = realpathSync(sourceWith({ config: {} }));
  put(dir, "workspace/SOUL.md", "kind");
  const at = await stage("embedded");
  const report = await at.imported(dir, { ask: async () => ({ ok: true, value: "link" }) });
  expect(report.workspaces).toMatchObject([{ how: "linked", to: join(dir, "workspace") }]);
  const config = JSON.parse(
    readFileSync(join(at.home, ".parley", "parley.json5"), "utf8").replace(/^.*\n/, ""),
  );
  expect(config.agents.defaults.workspace).toBe(join(dir, "workspace"));
});

test("the memory takes MEMORY.md, then the newest notes, as far as there is room", async () => {
  const dir = sourceWith({ config: {} });
  put(dir, "workspace/MEMORY.md", "facts");
  const half = "x".repeat(MEMORY_MAX_BYTES / 2);
  for (const day of ["01", "02", "03"]) put(dir, `workspace/memory/2026-01-${day}.md`, `${day} ${half}`);
  put(dir, "workspace/memory/2025-12-31.md", "a key=sk-abcdefghijklmnop1234567890");
  const at = await stage("embedded");
  const report = await at.imported(dir, { accept });
  expect(report.workspaces[0]?.memory).toEqual(["MEMORY.md", "memory/2026-01-03.md", "memory/2025-12-31.md"]);
  expect(remark(report, "memory files without room")?.count).toBe(2);
  const { text } = await at.inStore(({ db }) => readMemory(db, "main"));
  expect(text).toMatch(/^facts\n\n## memory\/2026-01-03\.md\n\n03 x+\n\n## memory\/2025-12-31\.md/);
  expect(text).not.toContain("sk-abc");
});

test("a workspace that is not there, and one that is a file, are no workspaces", async () => {
  const config = {
    agents: {
      list: [
        { id: "a", workspace: "/not/there" },
        { id: "b", workspace: "~/file" },
      ],
    },
  };
  const at = await stage("embedded");
  mkdirSync(at.home, { recursive: true });
  writeFileSync(join(at.home, "file"), "");
  expect((await at.imported(sourceWith({ config }))).config.trusted).toEqual([]);
});

test("heartbeats within active hours and daily resets become jobs of the main session", async () => {
  const heartbeat = { every: "2h", activeHours: { start: "08:00", end: "14:00", timezone: "Europe/Berlin" } };
  const config = {
    agents: {
      defaults: { heartbeat: { prompt: "Look around." }, userTimezone: "Asia/Tokyo" },
      list: [{ id: "main" }, { id: "tea", heartbeat: { ...heartbeat, target: "telegram", to: "7:topic:8" } }],
    },
    session: { reset: { mode: "daily", atHour: 5, idleMinutes: 60 } },
  };
  const at = await stage("embedded");
  const report = await at.imported(sourceWith({ config }));
  const jobs = await at.inStore(({ db }) => listJobs(db, 10));
  const [beat] = jobs.filter(({ name }) => name?.startsWith("Heartbeat"));
  expect(beat).toMatchObject({
    ...{ agentId: "tea", sessionKey: "agent:tea:main", message: "Look around.", enabled: false },
    schedule: { kind: "cron", expr: "0 8,10,12 * * *", tz: "Europe/Berlin" },
    deliver: { channel: "telegram", to: "7", threadId: "8" },
  });
  expect(
    jobs
      .filter(({ message }) => message === "/reset")
      .map(({ sessionKey, schedule }) => [sessionKey, schedule]),
  ).toEqual(
    expect.arrayContaining([
      ["agent:main:main", { kind: "cron", expr: "0 5 * * *", tz: "Asia/Tokyo" }],
      ["agent:tea:main", { kind: "cron", expr: "0 5 * * *", tz: "Asia/Tokyo" }],
    ]),
  );
  expect(jobs).toHaveLength(3);
  expect(report.config.notes.join()).toContain("session.reset.idleMinutes has no counterpart here");
});

test("jobs of Clawdbot keep the chat to which they deliver", async () => {
  const dir = sourceWith({ config: {} });
  const schedule = { kind: "every", everyMs: 3_600_000 };
  const payload = { kind: "agentTurn", message: "news?" };
  const jobs = [
    {
      id: "told",
      schedule,
      payload: { ...payload, deliver: true, channel: "telegram", to: "telegram:4711" },
    },
    { id: "implied", schedule, payload: { ...payload, channel: "discord", to: "42" } },
    { id: "mute", schedule, payload: { ...payload, deliver: false, channel: "telegram", to: "4711" } },
    { id: "event", schedule, payload: { kind: "systemEvent", text: "tea" }, sessionTarget: "main" },
    { id: "posted", schedule, payload, delivery: { mode: "webhook", to: "https://example.com" } },
    { id: "lost", schedule, payload: { ...payload, deliver: true, channel: "a channel?", to: "4711" } },
  ];
  put(dir, "cron/jobs.json", JSON.stringify({ version: 1, jobs }));
  const at = await stage("embedded");
  const report = await at.imported(dir);
  const stored = await at.inStore(({ db }) => Promise.all(jobs.map(({ id }) => getJob(db, id))));
  expect(stored.map((job) => [job?.sessionKey, job?.deliver])).toEqual([
    [undefined, { channel: "telegram", to: "4711" }],
    [undefined, { channel: "discord", to: "42" }],
    [undefined, undefined],
    ["agent:main:main", { channel: "last", to: "agent:main:main" }],
    [undefined, undefined],
    [undefined, undefined],
  ]);
  const kept = ["fresh", "fresh", "fresh", "keep", "fresh", "fresh"];
  expect(stored.map((job) => job?.conversation)).toEqual(kept);
  expect(report.remarks).toContainEqual({
    what: "jobs that delivered to a place that is unknown here: replies stay in the session",
    ...{ count: 2, examples: ["posted", "lost"] },
  });
});
