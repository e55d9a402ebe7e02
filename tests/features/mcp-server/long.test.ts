// Long sends over MCP: progress messages, and tasks for clients that support them. The test controls the
// clock.

import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import {
  type Answer,
  ask,
  askNew,
  heldModel,
  objectOf,
  oldClient,
  openPeer,
  SPEAKERS,
  timeUntil,
  written,
} from "../../gateway/clients/mcp.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const TASKS = { "io.modelcontextprotocol/tasks": {} };
const SEND = {
  name: "sessions_send",
  arguments: { sessionKey: "main", message: "work", timeoutSeconds: 600 },
};
const ME = { "x-parley-handle": "patient" };
async function task(
  house: House,
  method: "get" | "cancel" | "update",
  taskId: string,
  headers: Record<string, string> = ME,
  extensions: Answer | null = TASKS,
) {
  const request = { method: `tasks/${method}`, params: { taskId }, name: taskId };
  return askNew(house, extensions === null ? request : { ...request, extensions }, headers);
}

async function sendTask(house: House, world: FakeWorld): Promise<Answer> {
  const sent = askNew(
    house,
    { method: "tools/call", params: SEND, name: "sessions_send", extensions: TASKS },
    ME,
  );
  return (await timeUntil(world, sent)).result as Answer;
}

test.each(SPEAKERS)(
  "%s: a client that asks for progress gets the status of its send while it waits",
  async (speaker) => {
    const world = fakeWorld();
    const model = heldModel();
    const house = await openHouse({ play: model.play, world });
    const peer = await openPeer(house, speaker);
    const told = Promise.withResolvers<{ progress: number; message?: string | undefined }>();
    const sent = peer.call("sessions_send", SEND.arguments, { onprogress: told.resolve });
    await timeUntil(world, model.started);
    expect(await timeUntil(world, told.promise)).toMatchObject({
      progress: expect.any(Number),
      message: "agent:main:main: running",
    });
    model.answer("at last");
    expect(await timeUntil(world, sent)).toMatchObject({ status: "ok", reply: "at last" });
  },
);

test.each(SPEAKERS)(
  "%s: a client that waits for its inbox gets progress, and if the gateway stops, it gets the inbox",
  async (speaker) => {
    const world = fakeWorld();
    const house = await openHouse({ world });
    const peer = await openPeer(house, speaker, { headers: ME });
    const told = Promise.withResolvers<{ progress: number; message?: string | undefined }>();
    const waiting = peer.call("sessions_inbox", { waitSeconds: 300 }, { onprogress: told.resolve });
    expect(await timeUntil(world, told.promise)).toMatchObject({ message: "nothing new yet" });
    await timeUntil(world, house.stop());
    expect(await waiting).toMatchObject({ sessionKey: "agent:main:mcp:patient", count: 0, more: false });
  },
);

test("a client that asked for log messages gets the status of its send, and at a higher level none", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const house = await openHouse({ play: model.play, world });
  const client = await oldClient(house, "patient");
  const heard: unknown[] = [];
  const told = Promise.withResolvers<void>();
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    heard.push(params);
    told.resolve();
  });
  await client.setLoggingLevel("info");
  const sent = client.callTool(SEND);
  await timeUntil(world, model.started);
  await timeUntil(world, told.promise);
  expect(heard).toEqual([{ level: "info", logger: "sessions_send", data: "agent:main:main: running" }]);
  await client.setLoggingLevel("warning");
  model.answer("at last");
  await timeUntil(world, sent);
  heard.length = 0;
  const waiting = client.callTool({ name: "sessions_inbox", arguments: { waitSeconds: 30 } });
  await timeUntil(world, waiting);
  expect(heard).toEqual([]);
});

test("a quick answer is returned directly, even if the client supports tasks", async () => {
  const house = await openHouse();
  const request = { method: "tools/call", params: SEND, name: "sessions_send", extensions: TASKS };
  const { result } = await askNew(house, request, ME);
  expect(objectOf(result)).toMatchObject({ status: "ok", reply: "echo work" });
});

test("a long send becomes a task; only the sending session can read it, through any process on the store", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const dir = temporaryFolder();
  const house = await openHouse({ play: model.play, world, dir });
  const made = await sendTask(house, world);
  expect(made).toMatchObject({
    resultType: "task",
    status: "working",
    ttlMs: 86_400_000,
    pollIntervalMs: 2_000,
  });
  const taskId = String(made.taskId);
  expect(await task(house, "get", taskId)).toMatchObject({
    result: { resultType: "complete", taskId, status: "working" },
  });
  expect(await task(house, "update", taskId)).toMatchObject({ result: { resultType: "complete" } });

  const stranger = { "x-parley-handle": "stranger" };
  for (const method of ["get", "cancel", "update"] as const) {
    expect(await task(house, method, taskId, stranger)).toMatchObject({ error: { code: -32602 } });
    expect(await task(house, method, "mcp:none")).toMatchObject({ error: { code: -32602 } });
    expect(await task(house, method, taskId, ME, null)).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: { extensions: TASKS } } },
    });
  }

  const said = written(house, "agent:main:main", "assistant");
  model.answer("the fruit of long work");
  await timeUntil(world, said);
  const done = (await timeUntil(world, completed(house, taskId))) as { result: unknown };
  expect(done.result).toMatchObject({ resultType: "complete" });
  expect(objectOf(done.result)).toMatchObject({ status: "ok", reply: "the fruit of long work" });
  await house.stop();

  const again = await openHouse({ world: fakeWorld({ seed: 2 }), dir });
  const { result } = await task(again, "get", taskId);
  expect(objectOf((result as { result: unknown }).result)).toMatchObject({ reply: "the fruit of long work" });
});

async function completed(house: House, taskId: string): Promise<unknown> {
  for (;;) {
    const { result } = (await task(house, "get", taskId)) as { result: Answer };
    if (result.status === "completed") return result;
  }
}

test("cancelling a task ends the wait; the run continues, and its result arrives in the inbox", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const house = await openHouse({ play: model.play, world });
  const { taskId } = await sendTask(house, world);
  expect(await task(house, "cancel", String(taskId))).toMatchObject({ result: { resultType: "complete" } });
  const state = async () => (await task(house, "get", String(taskId))).result as Answer;
  const cancelled = { resultType: "complete", status: "cancelled", statusMessage: expect.any(String) };
  expect(await state()).toMatchObject(cancelled);
  const told = written(house, "agent:main:mcp:patient");
  model.answer("for whoever wants it");
  await timeUntil(world, told);
  const { result: inbox } = await askNew(
    house,
    { method: "tools/call", params: { name: "sessions_inbox" }, name: "sessions_inbox" },
    ME,
  );
  expect(objectOf(inbox)).toMatchObject({
    messages: [{ kind: "notice", text: expect.stringContaining("for whoever") }],
  });
  // A cancelled task stays cancelled, and never has a result.
  expect(await state()).toMatchObject(cancelled);
  expect(await state()).not.toHaveProperty("result");
});

test("if the wait of a task has timed out, the task reports that", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const house = await openHouse({ play: model.play, world });
  const { taskId } = await sendTask(house, world);
  await world.advance(601_000);
  const { result } = (await task(house, "get", String(taskId))) as { result: Answer };
  expect(objectOf(result.result)).toMatchObject({
    status: "timeout",
    state: "running",
    error: expect.stringContaining("600 s"),
  });
  model.answer("late");
});

test("a call whose run killed its process again and again fails with an error of the protocol, also as a task", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const house = await openHouse({ play: model.play, world });
  const busy = { name: "sessions_send", arguments: { ...SEND.arguments, timeoutSeconds: 0 } };
  await askNew(house, { method: "tools/call", params: busy, name: "sessions_send" }, ME);
  await model.started;
  const { taskId } = await sendTask(house, world);
  const waiting = ask(house, "tools/call", SEND, { "x-parley-handle": "direct" });
  const crashing = () =>
    house.store.transaction((tx) =>
      tx.updateTable("runs").set({ crashes: 5 }).where("state", "=", "queued").execute(),
    );
  await expect.poll(async () => (await crashing())[0]?.numUpdatedRows).toBe(2n);
  model.answer("done");
  const error = { code: -32603, message: expect.stringMatching(/process died 5 times/) };
  expect(await timeUntil(world, waiting)).toMatchObject({ error });
  const state = async () => (await task(house, "get", String(taskId))).result as Answer;
  await expect.poll(state).toMatchObject({ resultType: "complete", status: "failed", error });
  expect(await state()).not.toHaveProperty("result");
});

test("a client that disconnects before it gets its task finds the result in its inbox", async () => {
  const world = fakeWorld();
  const model = heldModel();
  const house = await openHouse({ play: model.play, world });
  const gone = new AbortController();
  const request = {
    method: "tools/call",
    params: SEND,
    name: "sessions_send",
    extensions: TASKS,
    signal: gone.signal,
  };
  const sent = askNew(house, request, ME);
  const lost = expect(sent).rejects.toThrow();
  await timeUntil(world, model.started);
  gone.abort();
  await lost;
  for (;;) {
    const open = await house.store.db
      .selectFrom("waits")
      .select("call_id")
      .where("state", "=", "open")
      .execute();
    if (open.length === 0) break;
    await world.advance(0);
  }
  const told = written(house, "agent:main:mcp:patient");
  model.answer("you had gone");
  await timeUntil(world, told);
});
