// The tool `sessions_spawn` in calls of an agent: the door of the rule in spawn-policy.ts.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sessionsSpawn } from "../../src/tools/sessions/spawn.ts";
import { type App, openApp, spawningAgents } from "./app.ts";

const MAIN = "agent:main:main";
const SPAWN = "sessions_spawn";

const workspace = mkdtempSync(join(tmpdir(), "parley-spawn-tool-"));
const AGENTS = spawningAgents(workspace);

let app: App;
beforeAll(async () => {
  app = await openApp({ agents: AGENTS });
});
afterAll(async () => {
  await app.close();
  rmSync(workspace, { recursive: true, force: true });
});

async function counts(): Promise<number[]> {
  const { db } = app.engine.store;
  const sessions = await db.selectFrom("sessions").select("key").execute();
  const runs = await db.selectFrom("runs").select("run_id").execute();
  const flows = await db.selectFrom("flows").select("flow_id").execute();
  return [sessions.length, runs.length, flows.length, readdirSync(workspace).length];
}

const file = (more: object = {}) => ({ name: "a.txt", content: "a", ...more });
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
