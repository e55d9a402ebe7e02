// The memory of an agent: which sessions know it, and that no change is lost or made twice.

import { expect, test } from "vitest";
import {
  changedMemory,
  MEMORY_MAX_BYTES,
  memoryDenied,
  withoutMemory,
} from "../../../src/core/rules/prompt/memory.ts";
import type { SpawnChain } from "../../../src/core/rules/sandbox-policy.ts";
import { isCompaction, textOf } from "../../../src/core/shapes/message.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { changeMemory } from "../../../src/flows/memory.ts";
import { readMemory } from "../../../src/store/queries/agent-memory.ts";
import { openHouse } from "../../gateway/kit.ts";
import { type ScriptedCall, scriptedModel } from "../../kit/scripted-model.ts";
import { agentSettings, chainOf, settingsWith } from "../app.ts";

const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
const MAIN = "agent:main:main";
const NOTES = "agent:main:notes";

const CHILD = "agent:main:subagent:1";
const OWNED: Settings = { ...settingsWith(), owners: ["telegram:7"] };

test.each([
  [[MAIN], "writes"],
  [["cron:1"], "writes"],
  [["agent:main:notes"], "writes"],
  [["agent:main:telegram:dm:7"], "writes"],
  [["agent:main:telegram:dm:8"], "nothing"],
  [["agent:main:telegram:group:7"], "nothing"],
  [["agent:main:telegram:group:7:fork:00000000-0000-4000-8000-000000000000"], "nothing"],
  [["hook:mail"], "nothing"],
  [["node-phone"], "nothing"],
  [["agent:main:openai:user-1"], "nothing"],
  [[CHILD, MAIN], "reads"],
  [[CHILD, "agent:main:telegram:group:7"], "nothing"],
  [[CHILD, CHILD, "hook:mail"], "nothing"],
])("ME1, ME2: the session %j of an agent with a memory: %s", (keys, expected) => {
  const chain = chainOf(...keys);
  const reads = withoutMemory(chain, OWNED) === undefined;
  const writes = memoryDenied(chain, OWNED) === undefined;
  expect({ reads, writes }).toEqual({ reads: expected !== "nothing", writes: expected === "writes" });
});

test("ME1: a sub-agent of a deleted session, an agent without a memory and a main session that is open to everybody do not know it", () => {
  const [own] = chainOf(CHILD);
  expect(withoutMemory([{ ...own, spawnedBy: MAIN }], OWNED)).toContain("deleted");
  const off = settingsWith({ agents: [agentSettings("main", { memory: false })] });
  expect(withoutMemory(chainOf(MAIN), off)).toContain("memory is false");
  const account = { channel: "telegram", accountId: "a", dmPolicy: "open", allowFrom: [] };
  const open = { ...OWNED, channels: [account] as unknown as Settings["channels"] };
  expect(withoutMemory(chainOf(MAIN), open)).toContain("strangers");
  // With `session.scope: "global"` the groups of all channels are in one session, whatever direct chats need.
  const paired = {
    ...open,
    channels: [{ ...account, dmPolicy: "pairing" }] as unknown as Settings["channels"],
  };
  const global = [{ key: "global", agentId: "main", kind: "main", spawnDepth: 0 }] as unknown as SpawnChain;
  expect(withoutMemory(global, paired)).toContain("strangers");
  expect(withoutMemory(global, OWNED)).toBeUndefined();
});

test("add, replace and remove change a text that occurs once, within the limit", () => {
  expect(changedMemory("", { action: "add", text: "- tea" })).toMatchObject({ value: "- tea" });
  expect(changedMemory("- tea", { action: "add", text: "- milk" })).toMatchObject({ value: "- tea\n- milk" });
  const two = "- tea\n- milk\n- tea";
  expect(changedMemory(two, { action: "replace", oldText: "milk", text: "rum" })).toMatchObject({
    value: "- tea\n- rum\n- tea",
  });
  expect(changedMemory(two, { action: "remove", oldText: "- milk\n" })).toMatchObject({
    value: "- tea\n- tea",
  });
  expect(changedMemory(two, { action: "remove", oldText: "tea" })).toMatchObject({
    code: "invalid_argument",
  });
  expect(changedMemory(two, { action: "remove", oldText: "rum" })).toMatchObject({
    code: "invalid_argument",
  });
  const long = "é".repeat(MEMORY_MAX_BYTES / 2);
  expect(changedMemory("", { action: "set", text: long }).ok).toBe(true);
  expect(changedMemory("x", { action: "add", text: long })).toMatchObject({ code: "too_large" });
});

test("AM1, AM2, AM3: of changes at once none is lost, a repeated call changes nothing, and secrets are redacted", async () => {
  const { engine, store } = await openHouse();
  const add = (text: string, callId: string) =>
    changeMemory(engine, "main", { action: "add", text }, { callId });
  const lines = Array.from({ length: 20 }, (_, at) => `- fact ${at}.`);
  await Promise.all(lines.map((line, at) => add(line, `call ${at}`)));
  await add(`- key ${KEY}`, "call 20");
  expect(await add("- fact 3.", "call 3")).toMatchObject({ ok: true });
  const { text, revision } = await readMemory(store.db, "main");
  expect(text.split("\n").slice(0, 20).sort()).toEqual([...lines].sort());
  expect(text.split("\n")).toHaveLength(21);
  expect(text).not.toContain(KEY);
  expect(revision).toBe(21);
});

test("a run keeps a fact, and the next run and a sub-agent are told it", async () => {
  const keep = { name: "memory", arguments: { action: "add", text: "- The tea is green." } };
  const model = scriptedModel((_request, call) => (call === 0 ? { toolCalls: [keep] } : "done"));
  const house = await openHouse({ model });
  const client = await house.client();
  const said = async (sessionKey: string): Promise<string> => {
    const accepted = await house.engine.accept({ sessionKey, input: { text: "hello" } });
    if (!accepted.ok) throw new Error(accepted.error);
    await client.request("agent.wait", { runId: accepted.value.run.runId });
    return model.requests.at(-1)?.system ?? "";
  };
  const names = () => (model.requests.at(-1)?.tools ?? []).map(({ name }) => name);
  await said(MAIN);
  expect(await said(MAIN)).toContain("Your memory (MEMORY.md):\n- The tea is green.");
  expect(names()).toContain("memory");
  await client.request("sessions.create", { key: NOTES, idempotencyKey: "notes" });
  expect(await said(NOTES)).toContain("green");
  const spawn = { name: "sessions_spawn", args: { task: "look" }, sessionKey: MAIN };
  const spawned = await client.request("tools.invoke", spawn);
  const child = String(spawned.childSessionKey);
  expect(await said(child)).toContain("green");
  expect(names()).not.toContain("memory");
});

test("ME3: a token for some sessions gets no memory: not by a message, a tool call, a sub-agent or another session", async () => {
  const tools: Record<string, ScriptedCall> = {
    spawn: { name: "sessions_spawn", arguments: { task: "look" } },
    send: { name: "sessions_send", arguments: { sessionKey: MAIN, message: "tell me", timeoutSeconds: 0 } },
  };
  const model = scriptedModel(({ entries }) => {
    const last = entries.at(-1);
    const wanted = last !== undefined && !isCompaction(last) && last.role === "user" && tools[textOf(last)];
    return wanted ? { toolCalls: [wanted] } : "done";
  });
  const guest = { token: "notes-only", role: "operator" as const, scopes: ["operator.admin" as const] };
  const gateway = { tokens: [{ ...guest, sessions: [NOTES, "agent:main:subagent:*"] }] };
  const house = await openHouse({ model, gateway });
  const owner = await house.client();
  await owner.request("sessions.create", { key: NOTES, idempotencyKey: "notes" });
  await owner.request("agents.memory.set", { agentId: "main", revision: 0, text: "- The tea is green." });
  const caller = await house.client({ token: "notes-only" });
  const untilDone = async () => {
    const busy = async () => (await owner.request("status")).lanes;
    await expect.poll(busy).toMatchObject({ running: 0, waiting: 0, queued: 0 });
  };
  for (const message of ["hello", "spawn", "send"]) {
    await caller.request("chat.send", { sessionKey: NOTES, message, idempotencyKey: message });
    await untilDone();
  }
  const args = { task: "look", sessionKey: NOTES };
  await caller.request("tools.invoke", { name: "sessions_spawn", args, sessionKey: NOTES });
  await untilDone();
  const seen = model.requests.length;
  // The message, the sub-agent with its announcement, the send with its answer, and the sub-agent of the call.
  expect(seen).toBeGreaterThan(6);
  expect(model.requests.filter(({ system }) => system.includes("green"))).toEqual([]);
  const read = { name: "memory", args: { action: "read" }, sessionKey: NOTES };
  expect(await caller.request("tools.invoke", read)).toMatchObject({ code: "tool_denied" });
  expect(await owner.request("tools.invoke", read)).toMatchObject({ text: "- The tea is green." });
  await owner.request("chat.send", { sessionKey: NOTES, message: "hello", idempotencyKey: "owner" });
  await untilDone();
  expect(model.requests.at(-1)?.system).toContain("green");
});

test("ME3: a job that a token for some sessions created gets no memory", async () => {
  const model = scriptedModel(() => "done");
  const guest = { token: "some", role: "operator" as const, scopes: ["operator.admin" as const] };
  const gateway = { tokens: [{ ...guest, sessions: ["agent:main:*", "cron:*"] }] };
  const house = await openHouse({ model, gateway });
  const owner = await house.client();
  await owner.request("agents.memory.set", { agentId: "main", revision: 0, text: "- The tea is green." });
  const told: boolean[] = [];
  for (const client of [await house.client({ token: "some" }), owner]) {
    const schedule = { kind: "every" as const, everyMs: 3_600_000 };
    const { job } = await client.request("cron.add", { schedule, message: "say it" });
    const { runId } = await client.request("cron.run", { id: job.id });
    await client.request("agent.wait", { runId });
    told.push(model.requests.at(-1)?.system.includes("green") === true);
  }
  expect(told).toEqual([false, true]);
});

test("operators read and replace a memory, a lost update is refused, and the prompt shows it", async () => {
  const house = await openHouse();
  const client = await house.client();
  const first = await client.request("agents.memory.get", { agentId: "main" });
  expect(first).toEqual({ agentId: "main", text: "", revision: 0, maxBytes: MEMORY_MAX_BYTES });
  const edit = { agentId: "main", revision: 0 };
  await client.request("agents.memory.set", { ...edit, text: "- one\n" });
  const late = client.request("agents.memory.set", { ...edit, text: "- two" });
  await expect(late).rejects.toMatchObject({ code: "CONFLICT", reason: "memory_changed" });
  expect(await client.request("agents.memory.get", { agentId: "main" })).toMatchObject({
    ...{ text: "- one", revision: 1 },
  });
  const { parts } = await client.request("agents.prompt", { agentId: "main" });
  expect(parts).toContainEqual(expect.objectContaining({ title: "Memory" }));
});
