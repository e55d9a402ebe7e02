// `npx parley-gateway import` on the command line.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeHome, run, runJson, startGateway } from "../../cli/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { hashOf, START, sourceWith, Talk } from "./source.ts";

const ID = "11111111-1111-4111-8111-111111111111";

function source(): string {
  const talk = new Talk();
  talk.user("how do you do?");
  talk.assistant("very well, key=sk-abcdefghijklmnop1234567890");
  return sourceWith({
    agents: {
      main: { "agent:main:discord:channel:42": { sessionId: ID, updatedAt: START, label: "lounge" } },
    },
    transcripts: { [`main/${ID}`]: talk.lines },
    config: { agents: { list: [{ id: "main" }] }, channels: { discord: { token: "hush-hush-token" } } },
  });
}

test("imported sessions can be listed and read like other sessions, and have a JSONL copy", async () => {
  const dir = source();
  const before = hashOf(dir);
  const { home } = await makeHome();
  const dry = await run(home, ["import", dir, "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, err: "" });
  expect(dry.out).toContain("Sessions: 1 would be added");
  expect(existsSync(join(home, ".parley", "state"))).toBe(false);
  const done = await run(home, ["import", dir]);
  expect(done.out).toContain("Sessions: 1 added, 0 extended, 0 unchanged, 0 skipped; 2 transcript entries");
  expect(done.out).toContain("so the import is in");
  expect(done.out).not.toContain("hush");
  const gateway = await startGateway(home);
  const heard = await run(home, ["sessions", "history", "agent:main:discord:channel:42"]);
  expect(heard.out).toContain("how do you do?");
  expect(heard.out).not.toContain("sk-abc");
  const row = await runJson(home, ["tool", "sessions_history", JSON.stringify({ sessionKey: ID })]);
  expect(row).toMatchObject({ sessionKey: "agent:main:discord:channel:42", sessionId: ID });
  expect((await run(home, ["sessions", "list", "--search", "lounge"])).out).toContain("discord:channel:42");

  const refused = await run(home, ["import", dir]);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("belongs to a gateway that is running");
  await gateway.stop();
  expect(existsSync(join(home, ".parley", "state", `${ID}.jsonl`))).toBe(true);
  expect(await runJson(home, ["import", dir])).toMatchObject({
    ok: true,
    entries: 0,
    sessions: { added: 0, unchanged: 1 },
  });
  expect(hashOf(dir)).toBe(before);
});

test("import lists settings that require trust with the option that accepts them, as text and as JSON", async () => {
  const workspace = temporaryFolder();
  writeFileSync(join(workspace, "SOUL.md"), "kind");
  const dir = sourceWith({ config: { agents: { list: [{ id: "main", workspace }] } } });
  const { home } = await makeHome();
  const listed = await run(home, ["import", dir, "--dry-run"]);
  expect(listed.out).toContain("Left out until you accept them:");
  const name = "agents.list.main.workspace";
  expect(listed.out).toContain(`${name}: gives the agent main the files of ${workspace}`);
  // It is outside of the home, so only its name accepts it.
  expect(listed.out).toContain(`npx parley-gateway import ${dir} --accept ${name}`);
  const trusted = [{ name, group: "workspaces", byName: true, text: expect.any(String), accepted: true }];
  expect(await runJson(home, ["import", dir, "--accept", name])).toMatchObject({
    ok: true,
    config: { trusted },
  });
  const wrong = await run(home, ["import", dir, "--accept", "agents"]);
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain(name);
});

test("a missing or empty directory gets a clear error", async () => {
  const { home } = await makeHome();
  const empty = await run(home, ["import", temporaryFolder()]);
  expect(empty.code).toBe(1);
  expect(empty.err).toContain("holds neither a configuration nor sessions");
  const none = await run(home, ["--json", "import", "/not/there"]);
  expect(none.code).toBe(1);
  expect(JSON.parse(none.out)).toMatchObject({ ok: false, error: { code: "invalid_argument" } });
});
