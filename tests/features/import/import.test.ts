// Imports sessions and transcripts into both stores: the stored rows, how they can be read, and repeated
// imports.

import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { readContext } from "../../../src/store/queries/transcripts/transcripts.ts";
import { both, share, test } from "../../kit/deep.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { userMessage } from "../../store/samples.ts";
import { hashOf, START, sourceWith, Talk } from "./source.ts";
import { type Kind, remark, stage } from "./stage.ts";

const KINDS = share<Kind>(["embedded"], ["postgres"]);
const MAIN_ID = "11111111-1111-4111-8111-111111111111";
const GROUP_ID = "22222222-2222-4222-8222-222222222222";
const CHILD_ID = "33333333-3333-4333-8333-333333333333";
const CRON_ID = "44444444-4444-4444-8444-444444444444";

function small(): string {
  const main = new Talk();
  main.user("what time is it?");
  main.call("call-1");
  main.result("call-1", "ten");
  main.assistant("It is ten.");
  const group = new Talk();
  group.user("hello all", { message: undefined });
  group.lines.length = 0;
  group.user("hello all");
  group.assistant("hello");
  const child = new Talk();
  child.user("find the bug");
  child.assistant("found it");
  const cron = new Talk();
  cron.user("good morning?");
  return sourceWith({
    agents: {
      main: {
        "agent:main:main": {
          sessionId: MAIN_ID,
          updatedAt: START + 600_000,
          systemSent: true,
          thinkingLevel: "high",
          verboseLevel: "on",
          label: "The main one",
          inputTokens: 100,
          outputTokens: 20,
          totalTokens: 120,
          contextTokens: 200_000,
          lastChannel: "telegram",
          lastTo: "telegram:4711",
          lastAccountId: "default",
          skillsSnapshot: { prompt: "long" },
          mystery: 1,
        },
        "agent:main:telegram:group:-100200": {
          sessionId: GROUP_ID,
          updatedAt: START + 500_000,
          subject: "The family",
          sendPolicy: "deny",
          chatType: "group",
          channel: "telegram",
        },
        "agent:main:subagent:aaaa": {
          sessionId: CHILD_ID,
          updatedAt: START + 400_000,
          spawnedBy: "agent:main:main",
          archivedAt: START + 450_000,
        },
        "cron:job-7": { sessionId: CRON_ID, updatedAt: START + 300_000 },
        unknown: { sessionId: CRON_ID, updatedAt: START },
      },
    },
    transcripts: {
      [`main/${MAIN_ID}`]: main.lines,
      [`main/${GROUP_ID}`]: group.lines,
      [`main/${CHILD_ID}`]: child.lines,
      [`main/${CRON_ID}`]: cron.lines,
      "main/55555555-5555-4555-8555-555555555555": [],
    },
  });
}

for (const kind of KINDS) {
  const test = both;
  test(`${kind}: named sessions keep their names`, async () => {
    const wanted = { "agent:main:work": { sessionId: GROUP_ID, updatedAt: START, label: "Work" } };
    const dir = sourceWith({ agents: { main: wanted }, transcripts: { [`main/${GROUP_ID}`]: [] } });
    const fresh = await stage(kind);
    await fresh.imported(dir);
    expect(await fresh.session("agent:main:work")).toMatchObject({ sessionId: GROUP_ID, label: "Work" });
  });

  test(`${kind}: sessions are imported with keys, settings, routes and a readable transcript; the source stays unchanged`, async () => {
    const dir = small();
    const before = hashOf(dir);
    const { imported, session, said } = await stage(kind);
    const report = await imported(dir);
    expect(report.sessions).toEqual({
      added: 4,
      toppedUp: 0,
      unchanged: 0,
      leftAlone: [],
      leftAloneCount: 0,
    });
    expect(report.entries).toBe(9);
    expect(hashOf(dir)).toBe(before);

    expect(await session("agent:main:main")).toMatchObject({
      sessionId: MAIN_ID,
      kind: "main",
      label: "The main one",
      thinkingLevel: "high",
      verboseLevel: "on",
      systemSent: true,
      updatedAt: START + 600_000,
      createdAt: START,
      inputTokens: 100,
      outputTokens: 20,
      totalTokens: 120,
      contextUsed: 120,
      lastRoute: { channel: "telegram", to: "4711" },
      external: false,
    });
    expect(await session("agent:main:telegram:group:-100200")).toMatchObject({
      kind: "group",
      displayName: "The family",
      sendPolicy: "deny",
      groupChannel: "telegram",
      lastRoute: { channel: "telegram", to: "-100200" },
    });
    expect(await session("agent:main:subagent:aaaa")).toMatchObject({
      spawnedBy: "agent:main:main",
      spawnDepth: 1,
      archivedAt: START + 450_000,
    });
    expect(await session("cron:job-7")).toMatchObject({ kind: "cron", agentId: "main" });
    expect(await said("agent:main:main")).toEqual([
      "person: what time is it?",
      "assistant: <call exec call-1>",
      "toolResult: ten",
      "assistant: It is ten.",
    ]);
    // I11: text that no person wrote must not look like a person's text.
    expect((await said("agent:main:subagent:aaaa"))[0]).toBe("inter_session: find the bug");
    expect((await said("cron:job-7"))[0]).toBe("cron: good morning?");

    expect(remark(report, "unknown fields of sessions")).toMatchObject({ count: 1, examples: ["mystery"] });
    expect(remark(report, "reserved name")).toMatchObject({ count: 1, examples: ["unknown"] });
    expect(remark(report, "without a session (from")).toMatchObject({ count: 1 });
  });

  test(`${kind}: a second import adds nothing; after the source has changed, a third import adds only the new messages`, async () => {
    const dir = small();
    const { imported, said } = await stage(kind);
    await imported(dir);
    const again = await imported(dir);
    expect(again.sessions).toMatchObject({ added: 0, toppedUp: 0, unchanged: 4, leftAloneCount: 0 });
    expect(again.entries).toBe(0);

    const more = { type: "message", id: "ffff0001", parentId: "00000004", timestamp: "2026-01-20T11:00:00Z" };
    const message = { role: "user", content: "and now?" };
    const file = join(dir, `agents/main/sessions/${MAIN_ID}.jsonl`);
    appendFileSync(file, `${JSON.stringify({ ...more, message })}\n`);
    const third = await imported(dir);
    expect(third.sessions).toMatchObject({ added: 0, toppedUp: 1, unchanged: 3 });
    expect(third.entries).toBe(1);
    expect((await said("agent:main:main")).slice(-2)).toEqual(["assistant: It is ten.", "person: and now?"]);
  });

  test(`${kind}: an interrupted import can be continued and adds nothing twice`, async () => {
    const talk = new Talk();
    for (let turn = 0; turn < 450; turn += 1) {
      talk.user(`question ${turn}`);
      talk.assistant(`answer ${turn}`);
    }
    const agents = { main: { main: { sessionId: MAIN_ID, updatedAt: START } } };
    const dir = sourceWith({ agents, transcripts: { [`main/${MAIN_ID}`]: talk.lines } });
    const { imported, inStore, said } = await stage(kind);
    await imported(dir);
    const whole = await said("agent:main:main");
    expect(whole).toHaveLength(900);
    // Simulates a crash between two transactions, so that the last entries are missing.
    await inStore(async (store) => {
      const rows = await store.db.selectFrom("messages").select("seq").orderBy("seq").execute();
      const last = rows[399]?.seq ?? 0;
      await store.transaction((tx) => tx.deleteFrom("messages").where("seq", ">", last).execute());
    });
    const again = await imported(dir);
    expect(again).toMatchObject({ entries: 500, sessions: { added: 0, toppedUp: 1 } });
    expect(await said("agent:main:main")).toEqual(whole);
  });

  test(`${kind}: sessions that were used or changed in Parley, or have another transcript, are kept and reported`, async () => {
    const dir = small();
    const { imported, inStore, said } = await stage(kind);
    await imported(dir);
    await inStore(async (store) => {
      await store.transaction(async (tx) => {
        const entry = userMessage("here-1", "said here");
        await appendEntry(tx, { sessionKey: "agent:main:main", sessionId: MAIN_ID, entry }, plainRedactor);
        await updateSession(tx, "cron:job-7", { label: "mine" });
      });
    });
    appendFileSync(
      join(dir, `agents/main/sessions/${MAIN_ID}.jsonl`),
      `${JSON.stringify({ type: "message", id: "ffff0002", message: { role: "user", content: "said there" } })}\n`,
    );
    const again = await imported(dir);
    expect(again.sessions).toMatchObject({ added: 0, toppedUp: 0, unchanged: 3, leftAloneCount: 1 });
    expect(again.sessions.leftAlone[0]?.key).toBe("agent:main:main");
    expect((await said("agent:main:main")).at(-1)).toBe("person: said here");
    expect(await inStore(async (store) => (await getSession(store.db, "cron:job-7"))?.label)).toBe("mine");
  });

  test(`${kind}: a dry run gives the same report and writes nothing`, async () => {
    const dir = small();
    const { home, imported, said } = await stage(kind);
    const before = hashOf(home);
    const dry = await imported(dir, { dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, entries: 9, sessions: { added: 4 } });
    expect(hashOf(home)).toBe(before);
    if (kind === "embedded") expect(existsSync(join(home, ".parley"))).toBe(false);
    await imported(dir);
    expect(await imported(dir, { dryRun: true })).toMatchObject({ entries: 0, sessions: { unchanged: 4 } });
    expect(await said("agent:main:main")).toHaveLength(4);
  });
}

test("an imported transcript is valid: each call has one result; broken lines and other branches are skipped", async () => {
  const talk = new Talk();
  const first = talk.user("one");
  talk.assistant("a branch that was left");
  talk.user("more of it");
  talk.entry({ type: "branch_summary", parentId: first, summary: "we went another way" });
  talk.call("c1");
  talk.raw('{"type":"message","id":"broken"');
  talk.result("c9", "nobody asked");
  talk.user("go on");
  talk.call("c2");
  talk.result("c2", "two", { isError: true });
  talk.result("c2", "two again");
  const orphan = talk.user("after a gap", { parentId: "not-there" });
  talk.entry({ type: "telepathy", thought: "?" });
  talk.entry({ type: "model_change", provider: "x", modelId: "y" });
  talk.message({ role: "wizard", content: "abracadabra" });
  talk.entry({ type: "custom_message", customType: "hook", content: "a note", display: true });
  expect(orphan).not.toBe("");
  talk.call("c3");
  const dir = sourceWith({
    agents: { main: { main: { sessionId: MAIN_ID, updatedAt: START } } },
    transcripts: { [`main/${MAIN_ID}`]: talk.lines },
  });
  const { imported, said, history } = await stage("embedded");
  const report = await imported(dir);
  const noResult = "toolResult: The result of this call is not in the imported transcript.";
  expect(await said("agent:main:main")).toEqual([
    "person: one",
    "notice: we went another way",
    "assistant: <call exec c1>",
    noResult,
    "person: go on",
    "assistant: <call exec c2>",
    "toolResult: two",
    "person: after a gap",
    "notice: a note",
    "assistant: <call exec c3>",
    noResult,
  ]);
  expect((await history("agent:main:main"))[6]).toMatchObject({ isError: true, toolCallId: "c2" });
  expect(report.repairs).toEqual({ callsWithoutResult: 2, resultsWithoutCall: 2 });
  expect(remark(report, "are broken")).toMatchObject({ count: 1 });
  expect(remark(report, "abandoned branches")).toMatchObject({ count: 2 });
  expect(remark(report, "missing parent")).toMatchObject({ count: 1 });
  expect(remark(report, "entry telepathy")).toMatchObject({ count: 1 });
  expect(remark(report, "role wizard")).toMatchObject({ count: 1 });
});

test("a call keeps its first result, even if a second one follows", async () => {
  const talk = new Talk();
  talk.user("one");
  talk.call("c1");
  const dir = sourceWith({
    agents: { main: { main: { sessionId: MAIN_ID, updatedAt: START } } },
    transcripts: { [`main/${MAIN_ID}`]: talk.lines },
  });
  const { imported, said } = await stage("embedded");
  await imported(dir);
  expect(await said("agent:main:main")).toHaveLength(3);
  talk.result("c1", "late");
  talk.assistant("done");
  const file = join(dir, `agents/main/sessions/${MAIN_ID}.jsonl`);
  appendFileSync(
    file,
    `${talk.lines
      .slice(2)
      .map((line) => JSON.stringify(line))
      .join("\n")}\n`,
  );
  expect(await imported(dir)).toMatchObject({ entries: 1, sessions: { toppedUp: 1 } });
  expect((await said("agent:main:main")).slice(2)).toEqual([
    "toolResult: The result of this call is not in the imported transcript.",
    "assistant: done",
  ]);
});

test("after an imported compaction the model sees the summary and the kept messages, and history contains everything", async () => {
  const talk = new Talk();
  talk.user("old");
  talk.assistant("old answer");
  talk.call("c1");
  const result = talk.result("c1", "r");
  talk.user("kept");
  talk.entry({ type: "compaction", summary: "they talked", firstKeptEntryId: result, tokensBefore: 9 });
  talk.assistant("new");
  const dir = sourceWith({
    agents: { main: { main: { sessionId: MAIN_ID, updatedAt: START } } },
    transcripts: { [`main/${MAIN_ID}`]: talk.lines },
  });
  const { imported, said, inStore } = await stage("embedded");
  await imported(dir);
  expect(await said("agent:main:main")).toHaveLength(6);
  const seen = await inStore((store) => readContext(store.db, MAIN_ID));
  // A result is never separated from its call, so the kept part begins at the next message.
  expect(seen.map((entry) => ("role" in entry ? entry.role : entry.summary))).toEqual([
    "they talked",
    "user",
    "assistant",
  ]);
});

test("an unused session that a gateway's start created is replaced, but a used one is not", async () => {
  const dir = small();
  const { imported, inStore, said, session } = await stage("embedded", {
    agents: { list: [{ id: "main" }] },
  });
  const { insertSession } = await import("../../../src/store/queries/sessions/sessions.ts");
  const { sampleSession } = await import("../../store/samples.ts");
  const { label: _, model: __, ...bare } = sampleSession({ key: "agent:main:main", sessionId: MAIN_ID });
  await inStore((store) =>
    store.transaction(async (tx) => {
      const plain = { ...bare, sessionId: "99999999-9999-4999-8999-999999999999" };
      await insertSession(tx, plain);
      await insertSession(tx, {
        ...plain,
        key: "cron:job-7",
        sessionId: "88888888-8888-4888-8888-888888888888",
        label: "used",
      });
    }),
  );
  const report = await imported(dir);
  expect(report.sessions).toMatchObject({ added: 3, leftAloneCount: 1 });
  expect(report.sessions.leftAlone).toEqual([
    { key: "cron:job-7", why: "a session with that key already has another conversation here" },
  ]);
  expect((await session("agent:main:main"))?.sessionId).toBe(MAIN_ID);
  expect(await said("agent:main:main")).toHaveLength(4);
});
