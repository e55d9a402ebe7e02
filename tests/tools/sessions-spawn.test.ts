// The tool `sessions_spawn` in calls of an agent: every argument, and the text of every refusal.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
const MIB = 1024 ** 2;

type Refusal = [string, Record<string, unknown>, string, string, ...string[]];

describe.each<[string, Refusal[]]>([
  [
    "its form",
    [
      ["no task", {}, "invalid_argument", "task is required"],
      ["an empty task", { task: "  " }, "invalid_argument", "task must not be empty"],
      [
        "a task too long",
        { task: big(256 * 1024 + 1) },
        "too_large",
        "task has 262145 bytes; the maximum is 262144",
      ],
      [
        "an unknown name",
        { task: "x", agent: "main" },
        "unknown_argument",
        'unknown argument "agent"',
        '"agentId"',
      ],
      ["a task that is no text", { task: 5 }, "invalid_argument", "task must be a string, got a number"],
      [
        "a label that is no text",
        { task: "x", label: {} },
        "invalid_argument",
        "label must be a string, got an object",
      ],
      ["a label of two lines", { task: "x", label: "a\nb" }, "invalid_argument", "label must be one line"],
      ["a label too long", { task: "x", label: big(201) }, "invalid_argument", "label has 201 characters"],
      [
        "an agentId that is no text",
        { task: "x", agentId: 1 },
        "invalid_argument",
        "agentId must be a string",
      ],
      [
        "a model that is no text",
        { task: "x", model: ["m"] },
        "invalid_argument",
        "model must be a string, got an array",
      ],
      [
        "a thinking that is no text",
        { task: "x", thinking: true },
        "invalid_argument",
        "thinking must be a string",
      ],
      [
        "a limit that is no number",
        { task: "x", runTimeoutSeconds: "five" },
        "invalid_argument",
        "must be a number",
      ],
      ["the old name of it, no number", { task: "x", timeoutSeconds: true }, "invalid_argument", "a boolean"],
      [
        "a thread that is no flag",
        { task: "x", thread: "yes" },
        "invalid_argument",
        "thread must be true or false",
      ],
      [
        "attachments that are no list",
        { task: "x", attachments: {} },
        "invalid_argument",
        "attachments must be an array",
      ],
      [
        "attachAs that is no object",
        { task: "x", attachAs: "/x" },
        "invalid_argument",
        "attachAs must be an object",
      ],
    ],
  ],
  [
    "its values",
    [
      [
        "a model that is not there",
        { task: "x", model: "local/none" },
        "invalid_model",
        '"local/none"',
        "offline/rehearsal",
      ],
      [
        "a thinking level that is not there",
        { task: "x", thinking: "hard" },
        "invalid_thinking",
        "valid: off, minimal",
      ],
      [
        "both names of the limit",
        { task: "x", runTimeoutSeconds: 1, timeoutSeconds: 2 },
        "invalid_argument",
        "their values differ",
      ],
      [
        "a negative limit",
        { task: "x", runTimeoutSeconds: -1 },
        "invalid_argument",
        "must be 0 (no limit) to 2592000",
      ],
      [
        "an endless limit",
        { task: "x", timeoutSeconds: 1e9 },
        "invalid_argument",
        "must be 0 (no limit) to 2592000",
      ],
      [
        "an unknown mode",
        { task: "x", mode: "loop" },
        "invalid_argument",
        'mode must be one of run, session, got "loop"',
      ],
      [
        "a session without a thread",
        { task: "x", mode: "session" },
        "invalid_argument",
        'mode "session" needs thread: true',
      ],
      [
        "a session with thread false",
        { task: "x", mode: "session", thread: false },
        "invalid_argument",
        "needs thread: true",
      ],
      [
        "a thread where there is no channel",
        { task: "x", thread: true },
        "spawn_denied",
        "this session has none",
      ],
      [
        "a thread and one run, likewise",
        { task: "x", thread: true, mode: "run" },
        "spawn_denied",
        "has none",
      ],
      [
        "an unknown cleanup",
        { task: "x", cleanup: "burn" },
        "invalid_argument",
        "cleanup must be one of keep, delete",
      ],
      [
        "an unknown sandbox",
        { task: "x", sandbox: "no" },
        "invalid_argument",
        "sandbox must be one of inherit, require",
      ],
      [
        "require where it would run bare",
        { task: "x", sandbox: "require" },
        "spawn_denied",
        'the call has sandbox: "require"',
      ],
      [
        "an agent that may not be named",
        { task: "x", agentId: "boxed" },
        "spawn_denied",
        "allowAgents",
        "Allowed: main, research.",
      ],
      [
        "an agent that is not there",
        { task: "x", agentId: "nobody" },
        "spawn_denied",
        '"nobody"',
        "Allowed: main, research.",
      ],
      [
        "an agent id that is none",
        { task: "x", agentId: "a/b" },
        "invalid_argument",
        "agentId must be 1 to 64",
      ],
    ],
  ],
  [
    "its attachments",
    [
      ["more files than allowed", { task: "x", attachments: files(51) }, "too_large", "maxFiles is 50"],
      [
        "a file too large",
        { task: "x", attachments: [file({ content: big(MIB + 1) })] },
        "too_large",
        "maxFileBytes is 1048576",
      ],
      [
        "too much in all",
        { task: "x", attachments: files(6).map((one) => ({ ...one, content: big(MIB) })) },
        "too_large",
        "maxTotalBytes",
      ],
      [
        "a name that leads out",
        { task: "x", attachments: [file({ name: "../a" })] },
        "invalid_argument",
        '"../a"',
      ],
      [
        "two of one name",
        { task: "x", attachments: [file(), file({ name: "A.TXT" })] },
        "invalid_argument",
        "same name",
      ],
      [
        "no content",
        { task: "x", attachments: [{ name: "a" }] },
        "invalid_argument",
        "attachments[0].content is required",
      ],
      [
        "an unknown field",
        { task: "x", attachments: [file({ path: "a" })] },
        "unknown_argument",
        "attachments[0].path",
      ],
      [
        "an unknown encoding",
        { task: "x", attachments: [file({ encoding: "hex" })] },
        "invalid_argument",
        "encoding must be one of utf8, base64",
      ],
      [
        "bad base64",
        { task: "x", attachments: [file({ encoding: "base64", content: "a" })] },
        "invalid_argument",
        "base64",
      ],
      [
        "one bad among good ones",
        { task: "x", attachments: [...files(2), file({ name: "" })] },
        "invalid_argument",
        "empty name",
      ],
    ],
  ],
])("a call is refused for %s", (_, refusals) => {
  test.each(refusals)(
    "refusal %s has its own text, and nothing of the spawn remains",
    async (_name, args, code, ...words) => {
      const before = await counts();
      const result = await app.call(MAIN, SPAWN, args);
      expect(result).toMatchObject({ code });
      expect(["error", "forbidden"]).toContain(result.status);
      for (const word of words) expect(`${result.error} ${result.hint ?? ""}`).toContain(word);
      expect(await counts()).toEqual(before);
    },
  );
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

test("no two refusals of a spawn have the same text", async () => {
  const calls: Record<string, unknown>[] = [
    { task: "x", thread: true },
    { task: "x", mode: "session" },
    { task: "x", mode: "loop" },
    { task: "x", sandbox: "require" },
    { task: "x", sandbox: "no" },
    { task: "x", cleanup: "no" },
    { task: "x", agentId: "boxed" },
    { task: "x", agentId: "a/b" },
    { task: "x", model: "a/b" },
    { task: "x", thinking: "no" },
    { task: "x", timeoutSeconds: -1 },
    { task: "x", timeoutSeconds: 1, runTimeoutSeconds: 1 },
  ];
  const errors = await Promise.all(calls.map(async (args) => (await app.call(MAIN, SPAWN, args)).error));
  expect(new Set(errors).size).toBe(calls.length);
});
