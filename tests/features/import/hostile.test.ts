// Source folders with hostile or broken content: links that lead outside, names that are paths, huge lines,
// invalid UTF-8, pipes, a million items, keys of every version, and ids that another session has.

import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { canonicalKey } from "../../../src/core/shapes/session-key.ts";
import { canonicalSourceKey } from "../../../src/features/import/keys.ts";
import { both, share, test } from "../../kit/deep.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { words } from "../../store/transfer/moves.ts";
import { hashOf, put, putTranscript, START, sourceWith, Talk } from "./source.ts";
import { type Kind, remark, stage } from "./stage.ts";

const ID = "11111111-1111-4111-8111-111111111111";
const RULES = { mainKey: "main", scope: "per-sender", defaultAgentId: "main" } as const;

function hello(text = "hello"): Talk {
  const talk = new Talk();
  talk.user(text);
  return talk;
}

test("no symbolic link is followed, except if the source folder itself is one", async () => {
  const outside = temporaryFolder();
  put(
    outside,
    "agents/x/sessions/sessions.json",
    JSON.stringify({ main: { sessionId: ID, updatedAt: START } }),
  );
  put(
    outside,
    "secret.jsonl",
    JSON.stringify({ type: "message", message: { role: "user", content: "secret" } }),
  );
  put(outside, "more.json", JSON.stringify({ agents: { list: [{ id: "outsider" }] } }));
  const dir = sourceWith({
    agents: { main: { main: { sessionId: ID, updatedAt: START } } },
    config: {
      $include: ["./linked.json", join(outside, "more.json"), "../../more.json"],
      session: { scope: "per-sender" },
    },
  });
  symlinkSync(join(outside, "secret.jsonl"), join(dir, `agents/main/sessions/${ID}.jsonl`));
  symlinkSync(join(outside, "agents/x"), join(dir, "agents/x"));
  symlinkSync(join(outside, "more.json"), join(dir, "linked.json"));
  const door = join(temporaryFolder(), "door");
  symlinkSync(dir, door);
  const before = hashOf(dir);
  const { imported, said, session } = await stage("embedded");
  const report = await imported(door);
  expect(report.sessions.added).toBe(1);
  expect(await said("agent:main:main")).toEqual([]);
  expect(await session("agent:x:main")).toBeUndefined();
  expect(remark(report, "transcript is a link")).toMatchObject({ count: 1 });
  expect(remark(report, "links in the source")?.examples).toContain("agents/x");
  expect(JSON.stringify(report)).not.toContain("outsider");
  expect(remark(report, "outside of the directory")?.count).toBe(2);
  expect(hashOf(dir)).toBe(before);
});

test("ids and file names that are paths are not used as paths", async () => {
  const dir = sourceWith({
    agents: {
      main: {
        "agent:main:discord:channel:1": { sessionId: "../../../../etc/passwd", updatedAt: START },
        "agent:main:discord:channel:2": { sessionId: ID, sessionFile: "/etc/hostname", updatedAt: START },
        "agent:main:discord:channel:3": { sessionId: "..", sessionFile: "../secret.jsonl", updatedAt: START },
        "agent:main:discord:channel:4": { sessionId: "a\u0000b", updatedAt: START },
        __proto__: { sessionId: ID, updatedAt: START },
      },
    },
  });
  put(dir, "secret.jsonl", JSON.stringify({ type: "message", message: { role: "user", content: "secret" } }));
  const { imported, session, said } = await stage("embedded");
  await imported(dir);
  for (const number of [1, 2, 3, 4]) {
    const found = await session(`agent:main:discord:channel:${number}`);
    // The id becomes the file name of the JSONL copy, so it must not be a path.
    expect(found?.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(await said(found?.key ?? "")).toEqual([]);
  }
});

for (const kind of share<Kind>(["embedded"], ["postgres"])) {
  const test = both;
  test(`${kind}: decompression bombs, huge lines, invalid UTF-8 and unstorable characters damage no other entries`, async () => {
    const talk = hello();
    talk.raw("[".repeat(100_000));
    talk.raw(`{"type":"message","id":"deep","message":${'{"a":'.repeat(300)}1${"}".repeat(300)}}`);
    talk.raw(`[${"[],".repeat(600_000)}1]`);
    talk.raw(`{"type":"message","message":{"role":"user","content":"${"x".repeat(9 * 1024 * 1024)}"}}`);
    talk.user("nul \u0000, half \ud83d, whole \u{1f600}", { parentId: "gone" });
    talk.assistant([
      { type: "toolCall", id: "c\u0000", name: "ex\ud800ec", arguments: { deep: ["\u0000"] } },
    ]);
    const dir = sourceWith({
      agents: {
        main: {
          main: {
            sessionId: ID,
            updatedAt: START,
            label: "a\u0000\u001b[31mb",
            lastChannel: "telegram",
            lastTo: "1\u00002",
          },
        },
      },
      transcripts: { [`main/${ID}`]: talk.lines },
    });
    const bytes = Buffer.from(
      `{"type":"message","id":"bad","message":{"role":"user","content":"caf\u0001"}}\n`,
      "latin1",
    );
    bytes[bytes.indexOf(1)] = 0xe9;
    const file = join(dir, `agents/main/sessions/${ID}.jsonl`);
    writeFileSync(file, bytes, { flag: "a" });
    const { imported, said, session } = await stage(kind);
    const report = await imported(dir);
    const heard = await said("agent:main:main");
    expect(heard).toHaveLength(5);
    expect(heard[0]).toBe("person: hello");
    expect(heard.at(-1)).toBe("person: caf\u{FFFD}");
    expect((await session("agent:main:main"))?.label).toBe("a [31mb");
    expect(remark(report, "too many values or levels")?.count).toBe(3);
    expect(remark(report, "too long")?.count).toBe(1);
    expect(remark(report, "invalid UTF-8")?.count).toBe(1);
    expect(await imported(dir)).toMatchObject({ entries: 0, sessions: { unchanged: 1 } });
  });
}

test("invalid stores, transcripts that are folders or pipes, and sessions without a transcript are reported", async () => {
  const dir = sourceWith({
    agents: {
      main: {
        main: { sessionId: ID, updatedAt: START },
        "agent:main:discord:channel:1": { sessionId: "22222222-2222-4222-8222-222222222222" },
        "agent:main:discord:channel:2": { sessionId: "33333333-3333-4333-8333-333333333333" },
        nonsense: "text",
        numbers: 7,
        empty: {},
      },
      other: {},
    },
  });
  put(dir, "agents/broken/sessions/sessions.json", "{ not json");
  put(dir, "agents/list/sessions/sessions.json", "[1,2,3]");
  put(dir, "agents/bomb/sessions/sessions.json", `{"a":${"[".repeat(5000)}`);
  mkdirSync(join(dir, `agents/main/sessions/${ID}.jsonl`));
  execFileSync("mkfifo", [join(dir, "agents/main/sessions/22222222-2222-4222-8222-222222222222.jsonl")]);
  const { imported } = await stage("embedded");
  const report = await imported(dir);
  expect(report.sessions.added).toBe(3);
  expect(remark(report, "not a readable JSON object")?.count).toBe(3);
  expect(remark(report, "is not a regular file")?.count).toBe(2);
  expect(remark(report, "are not sessions")?.count).toBe(2);
  expect(remark(report, "without a sessionId")?.count).toBe(1);
});

test("two sessions with the same transcript id stay separate, and one session under two keys is imported once", async () => {
  const dir = sourceWith({
    agents: {
      main: {
        main: { sessionId: "22222222-2222-4222-8222-222222222222", updatedAt: START },
        "agent:main:main": { sessionId: ID, updatedAt: START + 1 },
        "agent:main:discord:channel:1": { sessionId: ID, updatedAt: START },
      },
    },
    transcripts: { [`main/${ID}`]: hello().lines },
  });
  const { imported, session, said } = await stage("embedded");
  const report = await imported(dir);
  expect(report.sessions.added).toBe(2);
  expect(remark(report, "same key as a newer one")?.examples).toEqual(["main → agent:main:main"]);
  expect((await session("agent:main:main"))?.sessionId).toBe(ID);
  expect((await session("agent:main:discord:channel:1"))?.sessionId).not.toBe(ID);
  expect(await said("agent:main:discord:channel:1")).toEqual(["person: hello"]);
  expect(await imported(dir)).toMatchObject({ entries: 0, sessions: { added: 0, unchanged: 2 } });
});

test("spawners that form a cycle are imported, and a source without data is refused", async () => {
  const dir = sourceWith({
    agents: {
      main: {
        "agent:main:subagent:a": { sessionId: ID, spawnedBy: "agent:main:subagent:b" },
        "agent:main:subagent:b": {
          sessionId: "22222222-2222-4222-8222-222222222222",
          spawnedBy: "subagent:a",
        },
        "agent:main:subagent:c": {
          sessionId: "33333333-3333-4333-8333-333333333333",
          spawnedBy: "subagent:c",
        },
      },
    },
  });
  const { imported, session, import: attempt, home } = await stage("embedded");
  await imported(dir);
  expect((await session("agent:main:subagent:b"))?.spawnedBy).toBe("agent:main:subagent:a");
  expect((await session("agent:main:subagent:c"))?.spawnedBy).toBeUndefined();
  expect(words(await attempt(temporaryFolder()))).toContain("holds neither a configuration nor sessions");
  expect(words(await attempt(join(dir, "not-there")))).toContain("there is no directory");
  expect(words(await attempt(join(dir, "agents/main/sessions/sessions.json")))).toContain(
    "is not a directory",
  );
  put(home, ".parley/agents/main/sessions/sessions.json", JSON.stringify({ main: { sessionId: ID } }));
  expect(words(await attempt(join(home, ".parley")))).toContain("which an import must not change");
});

test("keys of every version are converted to our form", () => {
  const table: [string, string][] = [
    ["main", "agent:main:main"],
    ["agent:main:haupt", "agent:main:main"],
    ["Agent:Main:Main", "agent:main:main"],
    ["agent:Ops Team:main", "agent:ops-team:main"],
    ["agent:main:telegram:group:-100:topic:7", "agent:main:telegram:group:-100:topic:7"],
    ["agent:main:slack:room:C1", "agent:main:slack:channel:C1"],
    ["agent:main:matrix:channel:!abc:example.org", "agent:main:matrix:channel:!abc%3Aexample.org"],
    ["agent:main:slack:channel:c1:thread:171.2", "agent:main:slack:channel:c1:thread:171.2"],
    ["telegram:group:-5", "agent:main:telegram:group:-5"],
    ["group:123@g.us", "agent:main:whatsapp:group:123@g.us"],
    ["123@g.us", "agent:main:whatsapp:group:123@g.us"],
    ["whatsapp:123@g.us", "agent:main:whatsapp:group:123@g.us"],
    ["agent:main:whatsapp:dm:+1555", "agent:main:whatsapp:dm:+1555"],
    ["agent:main:whatsapp:direct:+1555", "agent:main:whatsapp:dm:+1555"],
    ["agent:main:whatsapp:work:dm:+1555", "agent:main:whatsapp:dm:+1555"],
    ["agent:main:dm:alice", "agent:main:signal:dm:alice"],
    ["+1555", "agent:main:signal:dm:+1555"],
    ["subagent:9", "agent:main:subagent:9"],
    ["agent:main:subagent:9:subagent:8", "agent:main:subagent:9.subagent.8"],
    ["cron:job-1", "cron:job-1"],
    ["agent:main:cron:job-1", "cron:job-1"],
    ["agent:main:cron:job-1:run:5", "cron:job-1%3Arun%3A5"],
    ["hook:abc", "hook:abc"],
    ["hook:gmail:42", "hook:gmail:42"],
    ["agent:main:hook:gmail:42", "hook:gmail:42"],
    ["agent:main:work", "agent:main:work"],
    ["agent:main:my project", "agent:main:my%20project"],
    ["agent:Ops:explicit:desk:100%", "agent:ops:explicit:desk:100%25"],
    ["agent:main:acp-bridge:a:b", "agent:main:acp-bridge:a:b"],
    ["explicit:x", "agent:main:explicit:x"],
    ["node:n1", "node-n1"],
    ["node-n1", "node-n1"],
    ["agent:main:openai:u1", "agent:main:openai:u1"],
  ];
  const hints = { agentId: "main", channel: "signal", mainName: "haupt", isGlobal: false };
  for (const [source, key] of table) {
    expect([source, canonicalSourceKey(source, hints, RULES)]).toMatchObject([source, { key }]);
  }
  expect(canonicalSourceKey("global", hints, RULES)).toEqual({ kind: "reserved" });
  expect(canonicalSourceKey("global", { ...hints, isGlobal: true }, RULES)).toMatchObject({
    key: "agent:main:main",
  });
  const nameless = canonicalSourceKey("agent:main:global", hints, RULES);
  expect(nameless).toMatchObject({
    kind: "conversation",
    key: expect.stringMatching(/^agent:main:chat:[0-9a-f-]{36}$/),
  });
});

test("any key becomes a canonical or reserved key, and always the same one", () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom("agent", "main", "group", "dm", "thread", "cron", "global", "node-", "%", ""),
  );
  const key = fc.array(word, { minLength: 1, maxLength: 7 }).map((parts) => parts.join(":"));
  const hints = fc.record({
    agentId: fc.constantFrom("main", "ops"),
    mainName: fc.constantFrom("main", "haupt"),
    isGlobal: fc.boolean(),
    channel: fc.constantFrom("telegram", "slack"),
  });
  fc.assert(
    fc.property(key, hints, (text, how) => {
      const verdict = canonicalSourceKey(text, how, RULES);
      if (verdict.kind === "reserved") return;
      expect(canonicalKey(verdict.key, { agentId: "main" }, RULES)).toEqual({ ok: true, value: verdict.key });
      expect(canonicalSourceKey(text, how, RULES)).toEqual(verdict);
    }),
    { numRuns: 2_000 },
  );
});

test.deep("a transcript that is larger than the memory is read line by line", async () => {
  const talk = new Talk();
  const filler = "y".repeat(2_000_000);
  for (let turn = 0; turn < 32; turn += 1) talk.user(`${turn} ${filler}`);
  const dir = sourceWith({ agents: { main: { main: { sessionId: ID, updatedAt: START } } } });
  putTranscript(dir, `main/${ID}`, talk.lines);
  const module = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href);
  const script = `
    const { importState } = await import(${module("features/import/import-state.ts")});
    const { realWorld } = await import(${module("world.ts")});
    const [dir, home] = process.argv.slice(1);
    const { signal } = new AbortController();
    const world = realWorld({ level: "silent", sync: true });
    const report = await importState({ dir, home, env: {}, dryRun: true, world, signal, progress() {} });
    console.log(report.value.entries);`;
  const argv = ["--max-old-space-size=48", "--input-type=module", "-e", script, dir, temporaryFolder()];
  // The child process reads 64 MB of text with a heap of 48 MB.
  expect(execFileSync(process.execPath, argv, { encoding: "utf8" }).trim()).toBe("32");
});
