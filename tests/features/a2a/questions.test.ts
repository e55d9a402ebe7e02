// Permission requests of an agent that works for an A2A client: the task asks its client, if the client's token
// may answer.

import { TaskState } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import {
  a2aClient,
  BINDINGS,
  openExposed,
  readStream,
  runStates,
  saying,
  taskIn,
  textsIn,
} from "../../gateway/clients/a2a.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const LIMITED = "a-token-that-may-not-answer";
const { INPUT, WORKING, COMPLETED, CANCELED } = {
  INPUT: TaskState.TASK_STATE_INPUT_REQUIRED,
  WORKING: TaskState.TASK_STATE_WORKING,
  COMPLETED: TaskState.TASK_STATE_COMPLETED,
  CANCELED: TaskState.TASK_STATE_CANCELED,
};
const named = (id: string) => ({ tenant: "", id });
const listed = {
  ...{ tenant: "", contextId: "", pageToken: "", statusTimestampAfter: undefined },
  status: INPUT,
};

type Task = Awaited<ReturnType<typeof taskIn>>;
const stateOf = ({ status }: Pick<Task, "status">) => status?.state;

/** Returns the texts and the data of what a task says with its state. */
function askedIn({ status }: Pick<Task, "status">) {
  const [text, data] = status?.message?.parts.map(({ content }) => content) ?? [];
  const said = text?.$case === "text" ? text.value : "";
  const about = data?.$case === "data" ? (data.value as Record<string, unknown>) : {};
  return { said, about, id: String(about.permission).slice(0, 8) };
}

/** Opens a gateway whose agent runs a command, and says what came of it. */
function open() {
  const { exec } = settingsWith().tools;
  const model = scriptedModel(({ entries }) => {
    const last = entries.at(-1);
    if (last === undefined || !("role" in last) || last.role !== "toolResult")
      return { toolCalls: [{ name: "exec", arguments: { command: "echo told" } }] };
    return JSON.stringify(last.content).includes("told") ? "It ran." : "It did not run.";
  });
  const tokens = [{ token: LIMITED, role: "operator" as const, scopes: ["operator.write" as const] }];
  return openExposed({
    model,
    gateway: { tokens },
    choices: { tools: { exec: { ...exec, approval: "always" } } },
  });
}

test.each(BINDINGS)(
  "%s: a task asks its client for permission, and continues with the answer",
  async (binding) => {
    const client = await a2aClient(await open(), { binding });
    const asking = await taskIn(client.sendMessage(saying("Run it")));
    expect(stateOf(asking)).toBe(INPUT);
    const { said, about, id } = askedIn(asking);
    expect(said).toContain(`echo told`);
    expect(said).toContain(`"allow ${id}"`);
    expect(about).toMatchObject({ title: "echo told", scopes: ["once", "session", "always"] });
    expect((await client.listTasks(listed)).tasks.map((one) => one.id)).toEqual([asking.id]);
    expect((await client.listTasks({ ...listed, status: WORKING })).tasks).toEqual([]);
    const place = { taskId: asking.id, contextId: asking.contextId };
    for (const wrong of ["allow", "Do it", "allow 00000000"])
      await expect(client.sendMessage(saying(wrong, place))).rejects.toThrow(`"allow ${id}"`);
    const answer = saying(`allow ${id}`, place);
    const done = await taskIn(client.sendMessage(answer));
    expect(await taskIn(client.sendMessage(answer))).toEqual(done);
    expect([done.id, stateOf(done), textsIn(done)]).toEqual([asking.id, COMPLETED, ["It ran."]]);
    expect((await client.listTasks(listed)).tasks).toEqual([]);
  },
);

test("a stream ends when its task asks, and one that joins then ends with the task", async () => {
  const client = await a2aClient(await open());
  const { payloads, end } = await readStream(client.sendMessageStream(saying("Run it")));
  expect(end?.state).toBe(INPUT);
  const [first] = payloads;
  const taskId = first?.$case === "task" ? first.value.id : "";
  const joined = client.resubscribeTask(named(taskId))[Symbol.asyncIterator]();
  expect((await joined.next()).value).toMatchObject({ payload: { value: { status: { state: INPUT } } } });
  const { id } = askedIn(await client.getTask(named(taskId)));
  const denied = await taskIn(client.sendMessage(saying(`/deny ${id}`, { taskId })));
  expect([stateOf(denied), textsIn(denied)]).toEqual([COMPLETED, ["It did not run."]]);
  const rest = await readStream({ [Symbol.asyncIterator]: () => joined });
  expect([rest.text, rest.end?.state]).toEqual(["It did not run.", COMPLETED]);
});

test("AQ1: a client whose token may not answer sees a working task, and an owner answers elsewhere", async () => {
  const house = await open();
  const client = await a2aClient(house, { token: LIMITED });
  const asked = taskIn(client.sendMessage(saying("Run it")));
  const owner = await house.client();
  const request = () => owner.request("permissions.list", {});
  await expect.poll(async () => (await request()).permissions).toHaveLength(1);
  const { tasks } = await client.listTasks({ ...listed, status: WORKING });
  const [task] = tasks;
  expect(tasks.map(stateOf)).toEqual([WORKING]);
  expect(JSON.stringify(task)).not.toContain("echo told");
  const { id = "" } = (await request()).permissions[0] ?? {};
  const answer = client.sendMessage(saying(`allow ${id}`, { taskId: task?.id ?? "" }));
  await expect(answer).rejects.toThrow("is under way and asks for nothing");
  expect((await client.listTasks(listed)).tasks).toEqual([]);
  await owner.request("permissions.answer", { id, decision: "allow" });
  expect(textsIn(await asked)).toEqual(["It ran."]);
});

test("a task that asks can be cancelled", async () => {
  const client = await a2aClient(await open());
  const { id } = await taskIn(client.sendMessage(saying("Run it")));
  expect(stateOf(await client.cancelTask({ ...named(id), metadata: undefined }))).toBe(CANCELED);
});

test("AQ3: a task that a gateway began asks nobody over there, and its result comes back after an owner's answer", async () => {
  const far = await open();
  const card = `${far.http}/a2a/research`;
  const runtime = { type: "a2a", card, token: TOKEN, allowUnsigned: true } as const;
  const near = await openHouse({
    model: scriptedModel(() => "Nobody asked"),
    choices: { agents: [agentSettings("main"), agentSettings("far", { runtime })] },
  });
  const sessionKey = "agent:far:main";
  const person = await near.client();
  const said = () =>
    person.request("chat.history", { sessionKey }).then(({ messages }) => messages.map(textOf));
  await person.request("chat.send", { sessionKey, message: "Run it" });
  const owner = await far.client();
  const waiting = async () => (await owner.request("permissions.list", {})).permissions;
  await expect.poll(waiting).toHaveLength(1);
  const [asked] = await waiting();
  // The gateway's own token may answer, but the people who write to the agent there may not.
  const { tasks } = await (await a2aClient(far)).listTasks({ ...listed, status: WORKING });
  expect(tasks.map(stateOf)).toEqual([WORKING]);
  expect((await (await a2aClient(far)).listTasks(listed)).tasks).toEqual([]);
  const answer = saying(`allow ${asked?.id}`, { taskId: tasks[0]?.id ?? "" });
  await expect((await a2aClient(far)).sendMessage(answer)).rejects.toThrow("asks for nothing");
  expect(await said()).toEqual(["Run it"]);
  await owner.request("permissions.answer", { id: asked?.id ?? "", decision: "allow" });
  await expect.poll(said).toEqual(["Run it", "It ran."]);
  await expect.poll(() => runStates(near)).toEqual(["ok"]);
});
