// Push notifications of the A2A door: a client is told that its task has ended.
// Hard cases: an address inside this network, a receiver that is away, a gateway that is restarted before it
// could send, an address that comes after the end, and addresses of other clients.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { type Script, startModelServer } from "../../kit/model-server/server.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { a2aClient, BINDINGS, openExposed, saying, taskIn } from "./kit.ts";

interface Got {
  readonly headers: Record<string, unknown>;
  readonly body: unknown;
}

/** Starts a receiver of notifications. `status`: its answer to each request. */
async function receiver(status: (index: number) => number = () => 204) {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    got.push({ headers: request.headers, body: JSON.parse(Buffer.concat(pieces).toString()) });
    response.writeHead(status(got.length - 1)).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { got, host, url: `http://${host}/told` };
}

/** Starts a real gateway that may notify these hosts. */
async function startGateway(notifyHosts: readonly string[], script: Script = () => "Done") {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  const { id: _, ...provider } = server.provider("openai-completions");
  const config = {
    models: { providers: { one: provider } },
    agents: {
      defaults: { model: "one/test-model" },
      list: [{ id: "main", default: true }, { id: "research" }],
    },
    a2a: { expose: ["research"], notifyHosts },
  };
  const gateway = await startProcess({ config });
  const open = (binding?: (typeof BINDINGS)[number]) =>
    a2aClient(
      { http: gateway.httpUrl },
      { token: gateway.token, ...(binding === undefined ? {} : { binding }) },
    );
  return { gateway, open };
}

function addressOf(url: string, more: Partial<TaskPushNotificationConfig> = {}): TaskPushNotificationConfig {
  const authentication = { scheme: "Bearer", credentials: "for-the-receiver" };
  return { tenant: "", id: "", taskId: "", url, token: "my-token", authentication, ...more };
}

const asking = (taskPushNotificationConfig: TaskPushNotificationConfig | undefined) => ({
  ...{ acceptedOutputModes: [], returnImmediately: true },
  taskPushNotificationConfig,
});

test("a client is told once that its task has ended, with its token and without the answer", async () => {
  const { got, host, url } = await receiver();
  const { open } = await startGateway([host], () => "The secret answer");
  const client = await open();
  const message = { ...saying("Go"), configuration: asking(addressOf(url)) };
  const { id, contextId } = await taskIn(client.sendMessage(message));
  await expect.poll(() => got.length).toBe(1);
  expect(got[0]?.headers).toMatchObject({
    "content-type": "application/a2a+json",
    "x-a2a-notification-token": "my-token",
    authorization: "Bearer for-the-receiver",
  });
  const status = { state: "TASK_STATE_COMPLETED", timestamp: expect.stringMatching(/^\d{4}-/) };
  expect(got[0]?.body).toEqual({ statusUpdate: { taskId: id, contextId, status } });
});

test("a receiver that is away is told after the restart of the gateway", async () => {
  const { got, host, url } = await receiver((index) => (index === 0 ? 503 : 200));
  const { gateway, open } = await startGateway([host]);
  const client = await open();
  await taskIn(client.sendMessage({ ...saying("Go"), configuration: asking(addressOf(url)) }));
  await expect.poll(() => got.length).toBe(1);
  await gateway.end("SIGKILL");
  await startProcess({ home: gateway.home });
  await expect.poll(() => got.length, { timeout: 20_000 }).toBe(2);
  expect(got[1]?.body).toEqual(got[0]?.body);
});

test.each(BINDINGS)("%s: addresses of a task are stored, listed, read and removed", async (binding) => {
  const held = Promise.withResolvers<void>();
  const { got, host, url } = await receiver();
  const { open } = await startGateway([host], async () => {
    await held.promise;
    return "Done";
  });
  const client = await open(binding);
  const { id: taskId } = await taskIn(
    client.sendMessage({ ...saying("Go"), configuration: asking(undefined) }),
  );
  const kept = await client.createTaskPushNotificationConfig(addressOf(`${url}?kept`, { taskId }));
  const other = await client.createTaskPushNotificationConfig(
    addressOf(`${url}?other`, { taskId, id: "other" }),
  );
  expect(other).toMatchObject({ id: "other", taskId, url: `${url}?other` });
  const named = { tenant: "", taskId };
  expect(await client.getTaskPushNotificationConfig({ ...named, id: kept.id })).toMatchObject({
    url: `${url}?kept`,
  });
  await client.deleteTaskPushNotificationConfig({ ...named, id: "other" });
  const list = { ...named, pageSize: 0, pageToken: "" };
  const { configs } = await client.listTaskPushNotificationConfig(list);
  expect(configs.map(({ id }) => id)).toEqual([kept.id]);
  const gone = client.getTaskPushNotificationConfig({ ...named, id: "other" });
  await expect(gone).rejects.toMatchObject({ name: expect.stringContaining("TaskNotFound") });
  held.resolve();
  await expect.poll(() => got.length).toBe(1);
  // An address that comes after the end is told at once.
  await client.createTaskPushNotificationConfig(addressOf(`${url}?late`, { taskId }));
  await expect.poll(() => got.length).toBe(2);
});

test("PU1: addresses of other hosts, users in them and line breaks in headers are refused; nothing is sent", async () => {
  const { got, url, host } = await receiver();
  const notifyHosts = ["agents.example", `localhost:${host.split(":")[1]}`];
  const house = await openExposed({
    choices: { a2a: { expose: ["research"], notifyHosts, descriptions: {} } },
  });
  const client = await a2aClient(house);
  const refused = async (address: TaskPushNotificationConfig, text: RegExp) => {
    const sent = client.sendMessage({ ...saying("Go"), configuration: asking(address) });
    await expect(sent).rejects.toThrow(text);
  };
  await refused(addressOf(url), /is not in a2a\.notifyHosts/);
  await refused(addressOf("http://169.254.169.254/latest"), /is not in a2a\.notifyHosts/);
  await refused(addressOf("https://agents.example.evil/"), /is not in a2a\.notifyHosts/);
  await refused(addressOf("https://me:secret@agents.example/"), /without a user/);
  await refused(addressOf("file:///etc/passwd"), /http or https/);
  await refused(addressOf("https://agents.example/", { token: "a\nb: c" }), /visible ASCII/);
  expect(got).toEqual([]);
  expect(await house.store.db.selectFrom("runs").select("run_id").execute()).toEqual([]);
});

test("the address of another client's task is missing, and a task has at most eight", async () => {
  const tokens = [
    { token: "another-token-of-this-test", role: "operator" as const, scopes: ["operator.write" as const] },
  ];
  const a2a = { expose: ["research"], notifyHosts: ["agents.example"], descriptions: {} };
  const house = await openExposed({ gateway: { tokens }, choices: { a2a } });
  const mine = await a2aClient(house);
  const theirs = await a2aClient(house, { token: "another-token-of-this-test" });
  const { id: taskId } = await taskIn(mine.sendMessage(saying("Go")));
  const address = addressOf("https://agents.example/x", { taskId });
  const missing = { name: expect.stringContaining("TaskNotFound") };
  await expect(theirs.createTaskPushNotificationConfig(address)).rejects.toMatchObject(missing);
  const list = { tenant: "", taskId, pageSize: 0, pageToken: "" };
  await expect(theirs.listTaskPushNotificationConfig(list)).rejects.toMatchObject(missing);
  for (let count = 0; count < 8; count += 1) await mine.createTaskPushNotificationConfig(address);
  await expect(mine.createTaskPushNotificationConfig(address)).rejects.toThrow(/at most 8/);
});
