// Tasks of revision 2025-11-25, with the official client of that revision.

import { CallToolResultSchema as ANSWER, ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { fakeWorld } from "../../kit/world.ts";
import { openHouse } from "../kit.ts";
import { heldModel, objectOf, oldClient, timeUntil } from "./kit.ts";

const SEND = {
  name: "sessions_send",
  arguments: { sessionKey: "main", message: "work", timeoutSeconds: 600 },
};

/** Sends as a task, and returns its id. */
async function begin(client: Awaited<ReturnType<typeof oldClient>>): Promise<string> {
  const calls = client.experimental.tasks.callToolStream(SEND, undefined, { task: {} });
  const first = await calls.next();
  if (first.done === true || first.value.type !== "taskCreated") throw new Error("no task was made");
  return first.value.task.taskId;
}

test("the official client follows a long send as a task, and reads its result once it is done", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const client = await oldClient(house, "patient");
  const { tools } = await client.listTools();
  const supports = tools.filter(({ execution }) => execution?.taskSupport === "optional");
  expect(supports.map(({ name }) => name)).toEqual(["sessions_send"]);
  const seen: string[] = [];
  let result: unknown;
  for await (const message of client.experimental.tasks.callToolStream(SEND, undefined, { task: {} })) {
    seen.push(message.type);
    if (message.type === "taskCreated") {
      const { taskId } = message.task;
      expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ taskId, status: "working" });
      model.answer("the fruit of long work");
    }
    if (message.type === "error") throw message.error;
    if (message.type === "result") result = message.result;
  }
  expect(seen[0]).toBe("taskCreated");
  expect(objectOf(result)).toMatchObject({ status: "ok", reply: "the fruit of long work" });
  expect(result).toMatchObject({ _meta: { "io.modelcontextprotocol/related-task": expect.anything() } });
});

test("a client finds only its own tasks, and a cancelled task sends its answer to the inbox", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const client = await oldClient(house, "patient");
  const stranger = await oldClient(house, "stranger");
  const taskId = await begin(client);
  const tasks = stranger.experimental.tasks;
  await expect(tasks.getTask(taskId)).rejects.toThrow("no task of this id");
  await expect(tasks.getTaskResult(taskId)).rejects.toThrow("no task of this id");
  await expect(tasks.cancelTask(taskId)).rejects.toThrow("no task of this id");
  const own = client.experimental.tasks;
  expect(await own.cancelTask(taskId)).toMatchObject({ status: "cancelled" });
  model.answer("for the inbox");
  await expect
    .poll(async () => JSON.stringify(await client.callTool({ name: "sessions_inbox" })))
    .toContain("for the inbox");
  expect(await own.getTask(taskId)).toMatchObject({ taskId, status: "cancelled" });
  // The answer is given once: it is in the inbox.
  await expect(own.getTaskResult(taskId, ANSWER)).rejects.toThrow("was cancelled");
});

test("a task that has ended cannot be cancelled, and keeps its result", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const client = await oldClient(house, "patient");
  const own = client.experimental.tasks;
  const refusal = { code: ErrorCode.InvalidParams, message: expect.stringContaining("has ended") };
  const cancelled = await begin(client);
  await own.cancelTask(cancelled);
  await expect(own.cancelTask(cancelled)).rejects.toMatchObject(refusal);

  const done = await begin(client);
  model.answer("the fruit");
  await expect.poll(() => own.getTask(done)).toMatchObject({ status: "completed" });
  await expect(own.cancelTask(done)).rejects.toMatchObject(refusal);
  expect(await own.getTask(done)).toMatchObject({ status: "completed" });
  expect(objectOf(await own.getTaskResult(done, ANSWER))).toMatchObject({ status: "ok", reply: "the fruit" });
});

test("a client that waits for the result of its task gets an error when the task is cancelled", async () => {
  const model = heldModel();
  const world = fakeWorld();
  const house = await openHouse({ play: model.play, world });
  const client = await oldClient(house, "patient");
  const own = client.experimental.tasks;
  const taskId = await timeUntil(world, begin(client));
  const result = expect(own.getTaskResult(taskId, ANSWER)).rejects.toThrow("was cancelled");
  await own.cancelTask(taskId);
  await timeUntil(world, result);
  model.answer("for the inbox");
});

test("another tool, a send without a wait and a refused send make no task", async () => {
  const house = await openHouse();
  const client = await oldClient(house, "patient");
  const asTask = async (params: { name: string; arguments: Record<string, unknown> }): Promise<unknown> => {
    for await (const message of client.experimental.tasks.callToolStream(params, undefined, { task: {} }))
      if (message.type === "error") return message.error;
      else if (message.type !== "taskStatus") return message;
    return undefined;
  };
  expect(await asTask({ name: "sessions_list", arguments: {} })).toBeInstanceOf(McpError);
  const quick = { ...SEND, arguments: { ...SEND.arguments, timeoutSeconds: 0 } };
  expect(await asTask(quick)).toMatchObject({ message: expect.stringContaining("timeoutSeconds") });
  const nobody = { ...SEND, arguments: { ...SEND.arguments, sessionKey: "agent:nobody:main" } };
  expect(await asTask(nobody)).toMatchObject({ message: expect.stringContaining("nobody") });
});
