// The tool `sessions_spawn` in calls of an agent: refusals, results and limits; and the agents that `agents_list`
// names.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Session } from "../../src/core/shapes/session.ts";
import { listRuns } from "../../src/store/queries/runs/runs.ts";
import { sessionsSpawn } from "../../src/tools/sessions/spawn.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { type App, agentSettings, type Choices, spawningAgents } from "./app.ts";
import { appsOfFile } from "./apps.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const BOXED = "agent:boxed:main";
const CHILD = "agent:main:subagent:00000000-0000-4000-8000-000000000001";
const SPAWN = "sessions_spawn";

const workspace = mkdtempSync(join(tmpdir(), "parley-spawn-tool-"));
const AGENTS = spawningAgents(workspace);

let app: App;
const opened = appsOfFile();
const other = (choices: Choices): Promise<App> => opened({ agents: AGENTS, ...choices });
beforeAll(async () => {
  app = await other({});
  await app.add(CHILD, { spawnedBy: MAIN, spawnDepth: 1 });
});
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const file = (more: object = {}) => ({ name: "a.txt", content: "a", ...more });

async function counts(): Promise<number[]> {
  const { db } = app.engine.store;
  const sessions = await db.selectFrom("sessions").select("key").execute();
  const runs = await db.selectFrom("runs").select("run_id").execute();
  const flows = await db.selectFrom("flows").select("flow_id").execute();
  return [sessions.length, runs.length, flows.length, readdirSync(workspace).length];
}

const files = (count: number) => Array.from({ length: count }, (_, at) => file({ name: `${at}.txt` }));
const big = (bytes: number) => "x".repeat(bytes);

// spawn-policy.test.ts and attachment-rules.test.ts have the tables of all refusals.
test.each<[string, Record<string, unknown>, string, ...string[]]>([
  ["no task", {}, "invalid_argument", "task is required"],
  ["an empty task", { task: "  " }, "invalid_argument", "task must not be empty"],
  ["a task too long", { task: big(256 * 1024 + 1) }, "too_large", "task has 262145 bytes; the maximum is"],
  ["an unknown name", { task: "x", agent: "main" }, "unknown_argument", '"agent"', '"agentId"'],
  ["a label of two lines", { task: "x", label: "a\nb" }, "invalid_argument", "label must be one line"],
  ["a label too long", { task: "x", label: big(201) }, "invalid_argument", "label has 201 characters"],
  [
    "a limit that is no number",
    { task: "x", runTimeoutSeconds: "five" },
    "invalid_argument",
    "must be a number",
  ],
  [
    "an agent that may not be named",
    { task: "x", agentId: "boxed" },
    "spawn_denied",
    "Allowed: main, research.",
  ],
  [
    "an unknown field of an attachment",
    { task: "x", attachments: [file({ path: "a" })] },
    "unknown_argument",
    "attachments[0].path",
  ],
  [
    "one bad attachment among good ones",
    { task: "x", attachments: [...files(2), file({ name: "" })] },
    "invalid_argument",
    "empty name",
  ],
])("a spawn with %s is refused, and nothing of it remains", async (_name, args, code, ...words) => {
  const before = await counts();
  const result = await app.call(MAIN, SPAWN, args);
  expect(result).toMatchObject({ code });
  expect(["error", "forbidden"]).toContain(result.status);
  for (const word of words) expect(`${result.error} ${result.hint ?? ""}`).toContain(word);
  expect(await counts()).toEqual(before);
});

test("one error names every wrong argument of a spawn", async () => {
  const wrong = {
    agentId: "nobody",
    model: "local/none",
    thinking: "hard",
    mode: "session",
    runTimeoutSeconds: -1,
  };
  const { status, error, hint } = await app.call(MAIN, SPAWN, { task: "x", ...wrong });
  expect(status).toBe("forbidden");
  for (const part of ['"nobody"', '"local/none"', '"hard"', "needs thread: true", "runTimeoutSeconds must"]) {
    expect(error).toContain(part);
  }
  expect(hint).toContain("Allowed: main, research.");
});

test("spellings of other programs are accepted: timeoutSeconds, runtime, thinking levels, and model ids without a provider", async () => {
  const spelled = {
    timeoutSeconds: "5",
    runtime: "Subagent",
    thinking: "Mid",
    model: "rehearsal",
    cleanup: "KEEP",
  };
  const result = await app.call(MAIN, SPAWN, { task: "x", ...spelled });
  expect(result).toMatchObject({ status: "accepted", model: "offline/rehearsal" });
  const child = await app.session(String(result.childSessionKey));
  expect(child.thinkingLevel).toBe("medium");
  const other = await app.call(MAIN, SPAWN, { task: "x", runtime: "acp" });
  expect(other.error).toBe('agent "main" has the runtime "subagent", not "acp"; leave runtime out');
  const { properties } = sessionsSpawn.spec.parameters as { properties: object };
  expect(Object.keys(properties)).not.toEqual(expect.arrayContaining(["timeoutSeconds"]));
});

async function childOf(on: App, result: ToolResult): Promise<Session> {
  expect(result).toMatchObject({ status: "accepted" });
  return on.session(String(result.childSessionKey));
}

test("at the depth limit, the error for a sub-agent names the setting; a higher limit allows the spawn", async () => {
  const refused = await app.call(CHILD, SPAWN, { task: "x" });
  expect(refused).toMatchObject({ status: "forbidden", code: "tool_denied" });
  expect(refused.error).toContain("1 deep, and agents.defaults.subagents.maxSpawnDepth is 1");
  const deeper = await other({ subagents: { maxSpawnDepth: 2 } });
  await deeper.add(CHILD, { spawnedBy: MAIN, spawnDepth: 1 });
  const nested = await childOf(deeper, await deeper.call(CHILD, SPAWN, { task: "x" }));
  expect(nested).toMatchObject({ spawnDepth: 2, spawnedBy: CHILD });
  expect(await deeper.call(nested.key, SPAWN, { task: "x" })).toMatchObject({ code: "tool_denied" });
});

test("with maxChildren unfinished children, another spawn gives an error that names the setting; a finished child makes room", async () => {
  const own = await other({ subagents: { maxChildren: 1 } });
  own.hold();
  const first = await own.call(MAIN, SPAWN, { task: "x" });
  const refused = await own.call(MAIN, SPAWN, { task: "x" });
  expect(refused).toMatchObject({ status: "error", code: "too_many_children" });
  expect(refused.error).toContain("agents.defaults.subagents.maxChildren is 1");
  const cancel = { action: "cancel", sessionKey: first.childSessionKey };
  expect(await own.call(MAIN, "subagents", cancel)).toMatchObject({ cancelled: [first.childSessionKey] });
  expect(await own.call(MAIN, "subagents", cancel)).toMatchObject({ status: "ok", cancelled: [] });
  expect(await own.call(MAIN, SPAWN, { task: "x" })).toMatchObject({ status: "accepted" });
});

test("I14: the list of sub-agents redacts credentials in tasks and labels", async () => {
  const own = await other({});
  const secret = "sk-abcdefghijklmnopqrstuvwx1234";
  const task = `${"x".repeat(180)} use the key ${secret}`;
  await childOf(own, await own.call(MAIN, SPAWN, { task, label: `with ${secret}` }));
  const { subagents } = await own.call(MAIN, "subagents", {});
  expect(subagents).toMatchObject([
    { label: "with [redacted]", task: expect.stringContaining("use the key") },
  ]);
  expect(JSON.stringify(subagents)).not.toContain("sk-");
});

test("if attachments are disabled, the error names the setting", async () => {
  const limits = { ...app.settings.tools.sessionsSpawn.attachments, enabled: false };
  const own = await other({ tools: { sessionsSpawn: { attachments: limits } } });
  const result = await own.call(MAIN, SPAWN, { task: "x", attachments: [file()] });
  expect(result).toMatchObject({ status: "forbidden", code: "tool_denied" });
  expect(result.error).toContain("tools.sessions_spawn.attachments.enabled is false");
});

test("the children of a sandboxed requester are always sandboxed, and their sandbox is stored", async () => {
  const bare = await app.call(BOXED, SPAWN, { task: "x", agentId: "main" });
  expect(bare).toMatchObject({ status: "forbidden", code: "spawn_denied", hint: "Sandboxed are: boxed." });
  expect(bare.error).toContain("a sandboxed session can't spawn one that is not");
  const child = await childOf(app, await app.call(BOXED, SPAWN, { task: "x" }));
  expect(child.spawn?.sandboxed).toBe(true);
  const required = { task: "x", agentId: "boxed", sandbox: "require" };
  expect((await childOf(app, await app.call(RESEARCH, SPAWN, required))).spawn?.sandboxed).toBe(true);
});

test("a call with every argument creates a child with exactly these properties", async () => {
  const args = {
    task: "count",
    label: " beans ",
    agentId: " Research ",
    model: "offline/rehearsal",
    thinking: "high",
    timeoutSeconds: 1.5,
    thread: false,
    mode: "run",
    cleanup: "delete",
    sandbox: "inherit",
    attachments: [
      file(),
      file({ name: "b.bin", content: "AAE=", encoding: "base64", mimeType: "image/png" }),
    ],
    attachAs: { mountPath: "/in" },
  };
  const result = await app.call(MAIN, SPAWN, args);
  expect(Object.keys(result).sort()).toEqual([
    "attachments",
    "childSessionKey",
    "model",
    "note",
    "runId",
    "status",
  ]);
  expect(result.attachments).toMatchObject({
    dir: `.parley/attachments/${result.runId}`,
    files: [
      { name: "a.txt", bytes: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { name: "b.bin", bytes: 2 },
    ],
  });
  const child = await childOf(app, result);
  expect(child).toMatchObject({
    key: expect.stringMatching(/^agent:research:subagent:[0-9a-f-]{36}$/),
    agentId: "research",
    label: "beans",
    model: "offline/rehearsal",
    thinkingLevel: "high",
    spawnedBy: MAIN,
    spawn: { cleanup: "delete", mode: "run", sandboxed: false, requesterKey: MAIN },
  });
  const [run] = (await listRuns(app.engine.store.db, { sessionKey: child.key, limit: 9 })).reverse();
  expect(run).toMatchObject({ runId: result.runId, timeoutMs: 1_500, hop: 1 });
  expect(run?.input.text).toContain("count");
});

test("a child gets no tools that its requester lacks, and the result names the missing tools", async () => {
  const agents = [agentSettings("main", { tools: { allow: [], deny: ["exec"] } })];
  const own = await other({
    agents: [...agents, agentSettings("research")].map((agent) => ({
      ...agent,
      subagents: { allowAgents: ["*"] },
    })),
  });
  expect(await own.call(MAIN, SPAWN, { task: "x", agentId: "research" })).toMatchObject({
    withheldTools: ["exec"],
  });
  expect(await own.call(MAIN, SPAWN, { task: "x" })).not.toHaveProperty("withheldTools");
});

describe("agents_list", () => {
  test("agents_list names the caller's own agent and the agents that it may spawn, with model, runtime and sandbox", async () => {
    expect(await app.call(MAIN, "agents_list", {})).toEqual({
      requester: "main",
      allowAny: false,
      agents: [
        { id: "main", model: "offline/rehearsal", runtime: "builtin", sandboxed: false, self: true },
        {
          id: "research",
          name: "Research",
          model: "offline/rehearsal",
          runtime: "builtin",
          sandboxed: false,
          self: false,
        },
      ],
    });
  });

  test("if the allow list is `*`, agents_list names every configured agent, and exactly these can be spawned", async () => {
    const list = await app.call(RESEARCH, "agents_list", {});
    expect(list).toMatchObject({ allowAny: true });
    const agents = list.agents as { id: string; sandboxed: boolean }[];
    expect(agents.map(({ id, sandboxed }) => `${id} ${sandboxed}`)).toEqual([
      "research false",
      "main false",
      "boxed true",
    ]);
    for (const { id } of agents)
      await childOf(app, await app.call(RESEARCH, SPAWN, { task: "x", agentId: id }));
    expect(await app.call(RESEARCH, SPAWN, { task: "x", agentId: "nobody" })).toMatchObject({
      code: "agent_not_found",
    });
  });

  test("agents_list takes no arguments", async () => {
    expect(await app.call(MAIN, "agents_list", { all: true })).toMatchObject({ code: "unknown_argument" });
  });
});
