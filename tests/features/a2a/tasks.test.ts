// The A2A door with the official client: messages become runs, and runs are tasks.
// Hard cases: a message that is sent twice, a client that leaves, two tokens with one conversation id, secrets
// in answers, and a restart of the gateway while a task runs.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TaskState } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import { type Message, textOf } from "../../../src/core/shapes/message.ts";
import {
  a2aClient,
  BINDINGS,
  EXPOSED,
  limitsIn,
  openExposed,
  readStream,
  saying,
  taskIn,
  textsIn,
} from "../../gateway/clients/a2a.ts";
import { heldPlay } from "../../gateway/clients/openai.ts";
import { type House, type Play, TOKEN } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { whole } from "../../kit/live-text.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { until } from "../../kit/until.ts";
import { agentSettings } from "../../tools/app.ts";

const OTHER = "another-token-of-this-test";
const FOR_MAIN = "a-token-for-main-only";
const WRITE = "operator.write" as const;
const READ = "operator.read" as const;
const listed = {
  ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
  statusTimestampAfter: undefined,
};
const named = (id: string) => ({ tenant: "", id });
const stateOf = (task: { status?: { state: TaskState } | undefined }) => task.status?.state;

function runsOf(house: House) {
  const { db } = house.store;
  const query = db.selectFrom("runs").innerJoin("sessions", "sessions.key", "runs.session_key");
  return query.select(["run_id", "session_key", "state", "runs.agent_id"]).orderBy("accepted_at").execute();
}

test.each(BINDINGS)(
  "%s: a message is answered by a completed task, and its conversation continues",
  async (binding) => {
    const model = scriptedModel((_, call) => `answer ${call}`);
    const house = await openExposed({ model });
    const client = await a2aClient(house, { binding });
    const first = await taskIn(client.sendMessage(saying("What is new?")));
    expect(stateOf(first)).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(textsIn(first)).toEqual(["answer 0"]);
    expect(first.history.map(({ role, parts }) => [role, parts[0]?.content])).toEqual([
      [1, { $case: "text", value: "What is new?" }],
      [2, { $case: "text", value: "answer 0" }],
    ]);
    const { contextId } = first;
    const second = await taskIn(client.sendMessage(saying("And then?", { contextId })));
    expect(second.contextId).toBe(contextId);
    expect(model.requests[1]?.entries).toMatchObject([
      { role: "user" },
      { role: "assistant" },
      { role: "user" },
    ]);
    const read = await client.getTask({ ...named(second.id), historyLength: 1 });
    expect(read.history).toHaveLength(1);
    expect(textsIn(read)).toEqual(["answer 1"]);
    const { tasks, totalSize } = await client.listTasks({ ...listed, contextId });
    expect(tasks.map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(totalSize).toBe(2);
  },
);

test.each(BINDINGS)("%s: a stream has the task, the pieces of its answer and its end", async (binding) => {
  const play: Play = async ({ text }) => {
    for (const said of ["One ", "One two ", "One two three"]) text(whole(said));
    return "One two three";
  };
  const house = await openExposed({ play });
  const client = await a2aClient(house, { binding });
  const { kinds, text, end } = await readStream(client.sendMessageStream(saying("Count")));
  expect(kinds[0]).toBe("task");
  expect(text).toBe("One two three");
  expect(end?.state).toBe(TaskState.TASK_STATE_COMPLETED);
});

test.each(BINDINGS)("%s: text before a call of a tool is replaced by the answer", async (binding) => {
  const script = (_: unknown, call: number) =>
    call === 0
      ? { text: "I look around.", toolCalls: [{ name: "agents_list" }] }
      : { text: "There are three." };
  const house = await openExposed({ model: scriptedModel(script) });
  const client = await a2aClient(house, { binding });
  const { text, payloads } = await readStream(client.sendMessageStream(saying("Who is there?")));
  expect(text).toBe("There are three.");
  const [first] = payloads;
  const id = first?.$case === "task" ? first.value.id : "";
  expect(textsIn(await client.getTask(named(id)))).toEqual(["There are three."]);
});

test.each(BINDINGS)(
  "%s: a client follows a task, cancels it, and cannot cancel it again",
  async (binding) => {
    const held = heldPlay();
    const house = await openExposed({ play: held.play });
    const client = await a2aClient(house, { binding });
    const configuration = {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: true,
    };
    const { id } = await taskIn(client.sendMessage({ ...saying("Wait"), configuration }));
    await held.begun;
    const following = readStream(client.resubscribeTask(named(id)));
    await until(async () => stateOf(await client.getTask(named(id))) === TaskState.TASK_STATE_WORKING);
    const cancelled = await client.cancelTask({ ...named(id), metadata: undefined });
    expect(stateOf(cancelled)).toBe(TaskState.TASK_STATE_CANCELED);
    expect((await following).end?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const again = client.cancelTask({ ...named(id), metadata: undefined });
    await expect(again).rejects.toMatchObject({ name: expect.stringContaining("TaskNotCancelable") });
    const late = readStream(client.resubscribeTask(named(id)));
    await expect(late).rejects.toMatchObject({ name: expect.stringContaining("UnsupportedOperation") });
  },
);

test.each(BINDINGS)(
  "%s: a repeated message of a task that has ended gets the ended task, and nothing after it",
  async (binding) => {
    const house = await openExposed({ play: () => "Done" });
    const client = await a2aClient(house, { binding });
    const message = saying("Only once");
    await readStream(client.sendMessageStream(message));
    const { payloads } = await readStream(client.sendMessageStream(message));
    expect(payloads).toMatchObject([
      { $case: "task", value: { status: { state: TaskState.TASK_STATE_COMPLETED } } },
    ]);
    const [again] = payloads;
    expect(again?.$case === "task" && textsIn(again.value)).toEqual(["Done"]);
    expect(await runsOf(house)).toHaveLength(1);
  },
);

test("the history has the client's ids of its messages, and an agent's own ids", async () => {
  const house = await openExposed({ model: scriptedModel(() => "Hello") });
  const client = await a2aClient(house);
  const task = await taskIn(client.sendMessage(saying("Hi", { messageId: "mine:1" })));
  const ids = task.history.map(({ messageId }) => messageId);
  expect(ids).toEqual(["mine:1", expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  const read = await client.getTask(named(task.id));
  expect(read.history.map(({ messageId }) => messageId)).toEqual(ids);
});

test("data and addresses are told to the agent, and no address is fetched", async () => {
  const model = scriptedModel(({ entries }) => textOf(entries.at(-1) as Message));
  const house = await openExposed({ model });
  const facts = { metadata: undefined, filename: "", mediaType: "" };
  const parts = [
    { ...facts, content: { $case: "data" as const, value: { rows: [1, 2] } } },
    { ...facts, content: { $case: "url" as const, value: "http://127.0.0.1:1/a.pdf" }, filename: "a.pdf" },
  ];
  const task = await taskIn((await a2aClient(house)).sendMessage(saying("", { parts })));
  expect(textsIn(task).join()).toContain('{"rows":[1,2]}\n\na.pdf: http://127.0.0.1:1/a.pdf');
});

test("AO1: a message that is sent twice runs once, also at once; other content under its id is refused", async () => {
  const house = await openExposed();
  const client = await a2aClient(house);
  const message = saying("Only once");
  const answers = await Promise.all([
    taskIn(client.sendMessage(message)),
    taskIn(client.sendMessage(message)),
  ]);
  expect(answers[1]?.id).toBe(answers[0]?.id);
  expect(await runsOf(house)).toHaveLength(1);
  const { messageId = "" } = message.message ?? {};
  const other = client.sendMessage(saying("Something else", { messageId }));
  await expect(other).rejects.toThrow(
    "message.messageId belongs to a message with other content. Send each new message with a new messageId.",
  );
  expect(await runsOf(house)).toHaveLength(1);
});

test("AO2: another token finds neither the task nor the conversation, even with the same id", async () => {
  const model = scriptedModel((_, call) => `answer ${call}`);
  const tokens = [{ token: OTHER, role: "operator" as const, scopes: [WRITE] }];
  const house = await openExposed({ model, gateway: { tokens } });
  const [mine, theirs] = [await a2aClient(house), await a2aClient(house, { token: OTHER })];
  const task = await taskIn(mine.sendMessage(saying("My secret", { contextId: "shared" })));
  const missing = { name: expect.stringContaining("TaskNotFound") };
  await expect(theirs.getTask(named(task.id))).rejects.toMatchObject(missing);
  await expect(theirs.cancelTask({ ...named(task.id), metadata: undefined })).rejects.toMatchObject(missing);
  await expect(readStream(theirs.resubscribeTask(named(task.id)))).rejects.toMatchObject(missing);
  expect((await theirs.listTasks({ ...listed, contextId: "shared" })).tasks).toEqual([]);
  const answer = await taskIn(theirs.sendMessage(saying("What was said?", { contextId: "shared" })));
  expect(answer.contextId).toBe("shared");
  expect(model.requests[1]?.entries).toHaveLength(1);
  expect((await theirs.listTasks(listed)).tasks.map(({ id }) => id)).toEqual([answer.id]);
  expect(new Set((await runsOf(house)).map((run) => run.session_key)).size).toBe(2);
});

test("a run of the same token that is no A2A message is not a task", async () => {
  const house = await openExposed();
  const client = await house.client();
  const { runId } = await client.request("chat.send", {
    sessionKey: "agent:research:main",
    message: "Hello",
  });
  await client.request("agent.wait", { runId });
  const a2a = await a2aClient(house);
  await expect(a2a.getTask(named(runId))).rejects.toMatchObject({
    name: expect.stringContaining("TaskNotFound"),
  });
  expect((await a2a.listTasks(listed)).totalSize).toBe(0);
});

test("AO3: a task continues after its client has left and the gateway was restarted", async () => {
  const dir = temporaryFolder();
  const held = heldPlay();
  const first = await openExposed({ dir, play: held.play });
  const leaving = new AbortController();
  const asked = (await a2aClient(first)).sendMessage(saying("Take your time"), { signal: leaving.signal });
  const gone = expect(asked).rejects.toThrow();
  await held.begun;
  leaving.abort();
  await gone;
  const [run] = await runsOf(first);
  await first.stop();
  const second = await openExposed({ dir, play: () => "Done at last" });
  const client = await a2aClient(second);
  const id = run?.run_id ?? "";
  await until(async () => stateOf(await client.getTask(named(id))) === TaskState.TASK_STATE_COMPLETED);
  expect(textsIn(await client.getTask(named(id)))).toEqual(["Done at last"]);
  expect(await runsOf(second)).toHaveLength(1);
});

test("a failed run is a failed task with its reason; text that looks like a credential is redacted", async () => {
  const key = "sk-abcdefghij0123456789abcdefghij";
  const play: Play = ({ run, text }) => {
    if (run.input.text === "fail") throw new Error(`the key ${key} is wrong`);
    text(whole(`It is ${key.slice(0, 12)}`));
    return `It is ${key} indeed`;
  };
  const house = await openExposed({ play });
  const client = await a2aClient(house);
  const failed = await taskIn(client.sendMessage(saying("fail")));
  expect(stateOf(failed)).toBe(TaskState.TASK_STATE_FAILED);
  expect(JSON.stringify(failed)).toContain("the key [redacted] is wrong");
  const told = await readStream(client.sendMessageStream(saying("tell")));
  expect(told.text).toBe("It is [redacted] indeed");
  expect(JSON.stringify(told)).not.toContain(key);
  const { tasks } = await client.listTasks({ ...listed, includeArtifacts: true, historyLength: 10 });
  expect(JSON.stringify(tasks)).not.toContain(key);
  const { tasks: lean } = await client.listTasks(listed);
  expect(lean.flatMap(({ artifacts, history }) => [...artifacts, ...history])).toEqual([]);
});

test("a file that the agent sends is an artifact of its task", async () => {
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "report.pdf"), "the report");
  const agents = [agentSettings("main"), agentSettings("research", { workspace })];
  const house = await openExposed({ model: talkingModel(), choices: { agents, features: { a2a: EXPOSED } } });
  const client = await a2aClient(house);
  const said = doing({ name: "send_file", arguments: { path: "report.pdf" } });
  const { artifacts } = await taskIn(client.sendMessage(saying(said)));
  const [file] = artifacts.filter(({ name }) => name === "report.pdf");
  const content = file?.parts[0]?.content;
  expect(content?.$case === "raw" ? content.value.toString() : "").toBe("the report");
  const { artifacts: next } = await taskIn(client.sendMessage(saying("Thank you")));
  expect(next.filter(({ name }) => name === "report.pdf")).toEqual([]);
});

test("a file that somebody else sends in the session during a task is not an artifact of it", async () => {
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "private.pdf"), "not for the client");
  const agents = [agentSettings("main"), agentSettings("research", { workspace })];
  const held = heldPlay();
  const house = await openExposed({ play: held.play, choices: { agents, features: { a2a: EXPOSED } } });
  const asked = taskIn((await a2aClient(house)).sendMessage(saying("Take your time")));
  await held.begun;
  const sessionKey = (await runsOf(house))[0]?.session_key ?? "";
  const call = { name: "send_file", sessionKey, arguments: { path: "private.pdf" } };
  expect(await (await house.client()).request("tools.invoke", call)).toMatchObject({ status: "accepted" });
  held.end("Done");
  expect(textsIn(await asked)).toEqual(["Done"]);
});

test.each(BINDINGS)("%s: pictures and text files of a message reach the agent", async (binding) => {
  const model = scriptedModel(() => "I see");
  const house = await openExposed({ model });
  const client = await a2aClient(house, { binding });
  const file = (value: Buffer, mediaType: string, filename: string) => ({
    ...{ content: { $case: "raw" as const, value }, metadata: undefined, mediaType, filename },
  });
  const picture = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  const parts = [file(picture, "image/png", "dot.png"), file(Buffer.from("a,b"), "text/csv", "table.csv")];
  expect(textsIn(await taskIn(client.sendMessage(saying("", { parts }))))).toEqual(["I see"]);
  const content = (model.requests[0]?.entries.at(-1) as { content?: unknown })?.content;
  expect(content).toEqual([
    { type: "text", text: "table.csv:\na,b" },
    { type: "image", mimeType: "image/png", data: picture.toString("base64") },
  ]);
});

test.each(BINDINGS)("%s: tasks are listed in pages, newest first, by state and by time", async (binding) => {
  const play: Play = ({ run }) => {
    if (run.input.text.startsWith("fail")) throw new Error("no");
    return "yes";
  };
  const house = await openExposed({ play });
  const client = await a2aClient(house, { binding });
  const ids: string[] = [];
  for (const text of ["a", "fail b", "c", "fail d", "e"])
    ids.unshift((await taskIn(client.sendMessage(saying(text)))).id);
  const pages: string[][] = [];
  let pageToken = "";
  do {
    const page = await client.listTasks({ ...listed, pageSize: 2, pageToken });
    expect(page.totalSize).toBe(5);
    pages.push(page.tasks.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && pages.length < 10);
  expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
  expect(pages.flat()).toEqual(ids);
  const failed = await client.listTasks({ ...listed, status: TaskState.TASK_STATE_FAILED });
  expect(failed.tasks.map(({ id }) => id)).toEqual([ids[1], ids[3]]);
  const later = await client.listTasks({
    ...listed,
    statusTimestampAfter: new Date(Date.now() + 1e6).toISOString(),
  });
  expect(later.tasks).toEqual([]);
});

test("a message over A2A is one of a guest: the run does not know the memory of the agent", async () => {
  const house = await openExposed();
  await taskIn((await a2aClient(house)).sendMessage(saying("Hello")));
  const [run] = await runsOf(house);
  const client = await house.client();
  const { messages } = await client.request("chat.history", { sessionKey: run?.session_key ?? "" });
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  const row = await house.store.db.selectFrom("runs").select("input_json").executeTakeFirst();
  expect(JSON.parse(row?.input_json ?? "{}")).toMatchObject({ guest: true });
});

test("I8: messages of one chain of a client count in one chain here, which another client's token cannot reach", async () => {
  const tokens = [{ token: OTHER, role: "operator" as const, scopes: [WRITE] }];
  const session = { agentToAgent: { maxPingPongTurns: 0, maxHops: 9, maxChainRuns: 2 } };
  const house = await openExposed({ gateway: { tokens }, choices: { session } });
  const [mine, theirs] = [await a2aClient(house), await a2aClient(house, { token: OTHER })];
  const metadata = { "parley.hop": 1, "parley.chain": "chain-1" };
  const send = (client: typeof mine) => taskIn(client.sendMessage(saying("Go", { metadata })));
  await send(mine);
  await send(mine);
  await expect(send(mine)).rejects.toThrow(/maxChainRuns/);
  await send(theirs);
  const chains = (await house.store.db.selectFrom("runs").select("chain_id").execute()).map(
    (one) => one.chain_id,
  );
  expect(new Set(chains).size).toBe(2);
  expect(chains).not.toContain("chain-1");
});

test("I8: a message may limit the tokens of its chain, also for the runs that follow from it", async () => {
  const ask = { name: "sessions_send", arguments: { sessionKey: "agent:main:main", message: "Well?" } };
  const model = scriptedModel(({ entries }) =>
    entries.length === 1 ? { toolCalls: [ask], totalTokens: 99_900 } : "Done",
  );
  const agentToAgent = { enabled: true, allow: ["*"] };
  const house = await openExposed({ model, choices: { tools: { agentToAgent } } });
  const client = await a2aClient(house);
  const task = await taskIn(client.sendMessage(saying("Go", { metadata: { "parley.budget": 100_000 } })));
  expect(stateOf(task)).toBe(TaskState.TASK_STATE_FAILED);
  expect(JSON.stringify(task.status)).toContain("the limit of the program or gateway that asked is 100000");
  expect(model.requests).toHaveLength(1);
  expect(await limitsIn(house)).toEqual([100_000, 100_000]);
  for (const budget of [-1, 0.5, "100"]) {
    const wrong = client.sendMessage(saying("Go", { metadata: { "parley.budget": budget } }));
    await expect(wrong).rejects.toThrow(/parley\.budget/);
  }
});

test("I8: a later message can lower the limit of its chain, but neither raise nor end it", async () => {
  const house = await openExposed({ model: scriptedModel(() => "Done") });
  const client = await a2aClient(house);
  const send = async (chain: string, budget?: number) => {
    const limit = budget === undefined ? {} : { "parley.budget": budget };
    const metadata = { "parley.hop": 1, "parley.chain": chain, ...limit };
    await taskIn(client.sendMessage(saying("Go", { metadata })));
  };
  for (const budget of [90_000, 80_000, 95_000, undefined]) await send("limited", budget);
  await expect(send("limited", 0)).rejects.toThrow(/gateway that asked is 60/);
  for (const budget of [undefined, 90_000]) await send("unlimited", budget);
  expect(await limitsIn(house)).toEqual([90_000, 80_015, 80_015, 80_015, undefined, undefined]);
});

test("a token needs its scopes, and an agent must be exposed and covered", async () => {
  const scoped = [
    { token: OTHER, role: "operator" as const, scopes: [READ] },
    { token: FOR_MAIN, role: "operator" as const, scopes: [WRITE], sessions: ["agent:main:*"] },
  ];
  const house = await openExposed({ gateway: { tokens: scoped } });
  const reader = await a2aClient(house, { token: OTHER });
  await expect(reader.sendMessage(saying("Hello"))).rejects.toThrow(/operator.write/);
  expect((await reader.listTasks(listed)).tasks).toEqual([]);
  const post = (path: string, token: string) =>
    fetch(`${house.http}/a2a/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} }),
    });
  expect((await post("research", "wrong-token-of-nobody")).status).toBe(401);
  const hidden = await Promise.all([post("main", TOKEN), post("nobody", TOKEN), post("research", FOR_MAIN)]);
  expect(hidden.map(({ status }) => status)).toEqual([404, 404, 404]);
  expect(await runsOf(house)).toEqual([]);
});

test("I9: a token that was narrowed no longer lists the tasks of sessions that it does not cover", async () => {
  const house = await openExposed();
  const admin = await house.client();
  const wanted = { name: "laptop", scopes: [WRITE], sessions: ["agent:research:*"] };
  const { entry, token = "" } = await admin.request("tokens.create", wanted);
  const before = await a2aClient(house, { token });
  const task = await taskIn(before.sendMessage(saying("Keep this")));
  expect(await before.listTasks(listed)).toMatchObject({ tasks: [{ id: task.id }], totalSize: 1 });
  await admin.request("tokens.narrow", { id: entry.id, sessions: ["agent:research:main"] });
  const after = await a2aClient(house, { token });
  await expect(after.getTask(named(task.id))).rejects.toThrow(/no task/);
  expect(await after.listTasks(listed)).toMatchObject({ tasks: [], totalSize: 0 });
  const ofContext = { ...listed, contextId: task.contextId };
  expect(await after.listTasks(ofContext)).toMatchObject({ tasks: [], totalSize: 0 });
});

test("a client no longer lists the tasks of a conversation that an operator deleted", async () => {
  const house = await openExposed();
  const client = await a2aClient(house);
  const kept = await taskIn(client.sendMessage(saying("Keep this")));
  const gone = await taskIn(client.sendMessage(saying("Forget this")));
  const deleted = (await runsOf(house)).find(({ run_id }) => run_id === gone.id);
  const admin = await house.client();
  await admin.request("sessions.delete", { key: deleted?.session_key ?? "" });
  const page = await client.listTasks({ ...listed, includeArtifacts: true });
  expect(page).toMatchObject({ tasks: [{ id: kept.id }], totalSize: 1 });
});
