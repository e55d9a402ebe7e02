// Push notifications of the A2A door: a client is told that its task has ended.
// Hard cases: an address inside this network, a receiver that is away, a gateway that is killed before it could
// send, an address that comes after the end, and addresses of other clients. receivers.test.ts has
// hostile receivers.

import { StreamResponse, type TaskPushNotificationConfig, TaskState } from "@a2a-js/sdk";
import {
  DefaultPushNotificationSender,
  InMemoryPushNotificationStore,
  ServerCallContext,
} from "@a2a-js/sdk/server";
import { expect } from "vitest";
import {
  a2aClient,
  addressOf,
  asking,
  BINDINGS,
  type Got,
  openExposed,
  readStream,
  receiver,
  saying,
  taskIn,
} from "../../gateway/clients/a2a.ts";
import { TOKEN } from "../../gateway/kit.ts";
import { test } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { freePort } from "../../kit/loopback.ts";
import { type Script, startModelServer } from "../../kit/model-server/server.ts";
import { hang } from "../../kit/model-server/steps.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";

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

const NO_AUTHENTICATION = { authentication: undefined };
const CONFIGS: readonly Partial<TaskPushNotificationConfig>[] = [
  {},
  NO_AUTHENTICATION,
  { token: "" },
  { token: "", authentication: { scheme: "Basic", credentials: "bWU6c2VjcmV0" } },
  { authentication: { scheme: "Bearer", credentials: "" } },
  { ...NO_AUTHENTICATION, token: "" },
];

test("a receiver gets the request that the official library sends and reads, with its token even besides credentials", async () => {
  const { got, host, url } = await receiver();
  const { open } = await startGateway([host]);
  const client = await open();
  for (const more of CONFIGS) {
    got.length = 0;
    const config = addressOf(url, more);
    const { id } = await taskIn(client.sendMessage({ ...saying("Go"), configuration: asking(config) }));
    await expect.poll(() => got.length).toBe(1);
    const event = StreamResponse.fromJSON(got[0]?.body);
    expect(event.payload).toMatchObject({
      $case: "statusUpdate",
      value: { taskId: id, status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
    const context = new ServerCallContext({ requestedVersion: "1.0" });
    const store = new InMemoryPushNotificationStore();
    await store.save(id, context, { ...config, taskId: id });
    await new DefaultPushNotificationSender(store).send(event, context);
    const [ours, theirs] = got;
    const requestOf = ({ method, text, headers }: Partial<Got> = {}) => ({
      ...{ method, text, type: headers?.["content-type"], authorization: headers?.authorization },
    });
    expect(requestOf(ours)).toEqual(requestOf(theirs));
    expect(ours?.headers["x-a2a-notification-token"] ?? "").toBe(config.token);
    if (theirs?.headers.authorization === undefined)
      expect(theirs?.headers["x-a2a-notification-token"] ?? "").toBe(config.token);
  }
});

test("PU2: after a token was revoked or narrowed, nothing is told to the address that it named", async () => {
  const { got, host, url } = await receiver();
  const held = Promise.withResolvers<void>();
  const { gateway } = await startGateway([host], async () => {
    await held.promise;
    return "Done";
  });
  const operator = await gateway.connect();
  const begin = async (name: string) => {
    const made = await operator.request("tokens.create", { name, scopes: ["operator.write"] });
    const { entry, token = "" } = made;
    const client = await a2aClient({ http: gateway.httpUrl }, { token });
    const configuration = asking(addressOf(`${url}?${name}`));
    const task = await taskIn(client.sendMessage({ ...saying("Go"), configuration }));
    return { id: entry.id, taskId: task.id };
  };
  const revoked = await begin("revoked");
  const narrowed = await begin("narrowed");
  const kept = await begin("kept");
  await operator.request("tokens.revoke", { id: revoked.id });
  await operator.request("tokens.narrow", { id: narrowed.id, sessions: ["agent:main:*"] });
  held.resolve();
  const states = async () =>
    (await operator.request("deliveries.list", {})).deliveries.map(({ state }) => state).sort();
  await expect.poll(states).toEqual(["failed", "failed", "sent"]);
  expect(got).toMatchObject([{ body: { statusUpdate: { taskId: kept.taskId } } }]);
});

test.deep(
  "a gateway that is killed after the end of the task, before it could notify, notifies once after its restart",
  async () => {
    const port = await freePort();
    const { gateway, open } = await startGateway([`127.0.0.1:${port}`]);
    const configuration = { ...asking(addressOf(`http://127.0.0.1:${port}/told`)), returnImmediately: false };
    const task = await taskIn((await open()).sendMessage({ ...saying("Go"), configuration }));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    await gateway.end("SIGKILL");
    const { got } = await receiver(undefined, port);
    const again = await (await startProcess({ home: gateway.home })).connect();
    const left = async () => {
      const { deliveries } = await again.request("deliveries.list", {});
      return deliveries.filter(({ state }) => state !== "sent");
    };
    await expect.poll(() => got.length).toBe(1);
    await expect.poll(left).toEqual([]);
    expect(got).toMatchObject([{ body: { statusUpdate: { taskId: task.id } } }]);
  },
);

test.deep("the end of a failed, a cancelled and a streamed task is told, each as it is", async () => {
  const { got, host, url } = await receiver();
  const begun = Promise.withResolvers<void>();
  const { open } = await startGateway([host], ({ lastUserText }) => {
    if (lastUserText.includes("fail")) return [{ step: "malformed" }];
    if (!lastUserText.includes("wait")) return "Done";
    begun.resolve();
    return [hang()];
  });
  const client = await open();
  const send = (text: string) =>
    taskIn(client.sendMessage({ ...saying(text), configuration: asking(addressOf(url)) }));
  const told = () =>
    got.map(({ body }) => {
      const { payload } = StreamResponse.fromJSON(body);
      return payload?.$case === "statusUpdate" ? [payload.value.taskId, payload.value.status?.state] : [];
    });
  const failed = await send("fail");
  await expect.poll(told).toEqual([[failed.id, TaskState.TASK_STATE_FAILED]]);
  const waiting = await send("wait");
  await begun.promise;
  await client.cancelTask({ tenant: "", id: waiting.id, metadata: undefined });
  await expect.poll(told).toContainEqual([waiting.id, TaskState.TASK_STATE_CANCELED]);
  const configuration = asking(addressOf(url));
  const { payloads } = await readStream(client.sendMessageStream({ ...saying("go"), configuration }));
  const id = payloads[0]?.$case === "task" ? payloads[0].value.id : "";
  await expect.poll(told).toContainEqual([id, TaskState.TASK_STATE_COMPLETED]);
  expect(got).toHaveLength(3);
});

test.deep("a receiver that is away is told after the restart of the gateway", async () => {
  const { got, host, url } = await receiver((index) => (index === 0 ? 503 : 200));
  const { gateway, open } = await startGateway([host]);
  const client = await open();
  await taskIn(client.sendMessage({ ...saying("Go"), configuration: asking(addressOf(url)) }));
  await expect.poll(() => got.length).toBe(1);
  await gateway.end("SIGKILL");
  await startProcess({ home: gateway.home });
  await expect.poll(() => got.length).toBe(2);
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
  const whole = addressOf(url, { taskId });
  expect(other).toEqual({ ...whole, id: "other", url: `${url}?other` });
  const named = { tenant: "", taskId };
  const read = (id: string) => client.getTaskPushNotificationConfig({ ...named, id });
  expect(kept.id).not.toBe("");
  expect(await read(kept.id)).toEqual({ ...whole, id: kept.id, url: `${url}?kept` });
  const changed = { id: "other", taskId, token: "", authentication: undefined };
  await client.createTaskPushNotificationConfig(addressOf(`${url}?changed`, changed));
  expect(await read("other")).toEqual({ ...changed, tenant: "", url: `${url}?changed` });
  for (const _ of ["once", "and again"])
    await client.deleteTaskPushNotificationConfig({ ...named, id: "other" });
  const list = { ...named, pageSize: 0, pageToken: "" };
  const { configs, nextPageToken } = await client.listTaskPushNotificationConfig(list);
  expect([configs.map(({ id }) => id), nextPageToken]).toEqual([[kept.id], ""]);
  await expect(read("other")).rejects.toMatchObject({ name: expect.stringContaining("TaskNotFound") });
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
    choices: { features: { a2a: { expose: ["research"], notifyHosts, descriptions: {} } } },
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
  const authentication = { scheme: "", credentials: "secret" };
  await refused(
    addressOf("https://agents.example/", { authentication }),
    /authentication\.scheme is missing/,
  );
  expect(got).toEqual([]);
  expect(await house.store.db.selectFrom("runs").select("run_id").execute()).toEqual([]);
});

test("the address of another client's task is missing, and a task has at most eight", async () => {
  const tokens = [
    { token: "another-token-of-this-test", role: "operator" as const, scopes: ["operator.write" as const] },
  ];
  const a2a = { expose: ["research"], notifyHosts: ["agents.example"], descriptions: {} };
  const house = await openExposed({ gateway: { tokens }, choices: { features: { a2a } } });
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
  const { configs } = await mine.listTaskPushNotificationConfig(list);
  const pages: string[][] = [];
  let pageToken = "";
  do {
    const page = await mine.listTaskPushNotificationConfig({ ...list, pageSize: 3, pageToken });
    pages.push(page.configs.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && pages.length < 9);
  expect(pages.map(({ length }) => length)).toEqual([3, 3, 2]);
  expect(pages.flat()).toEqual(configs.map(({ id }) => id));
  for (const wrong of [{ pageSize: -1 }, { pageToken: "nobody" }])
    await expect(mine.listTaskPushNotificationConfig({ ...list, ...wrong })).rejects.toThrow(/page/);
});

test("over HTTP+JSON a new address is answered with 201, and a removed one with 204 and no body", async () => {
  const a2a = { expose: ["research"], notifyHosts: ["agents.example"], descriptions: {} };
  const house = await openExposed({ choices: { features: { a2a } } });
  const { id } = await taskIn((await a2aClient(house)).sendMessage(saying("Go")));
  const at = `${house.http}/a2a/research/tasks/${id}/pushNotificationConfigs`;
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ id: "one", url: "https://agents.example/x" });
  const made = await fetch(at, { method: "POST", headers, body });
  expect([made.status, await made.json()]).toMatchObject([201, { id: "one", taskId: id }]);
  const gone = await fetch(`${at}/one`, { method: "DELETE", headers });
  expect([gone.status, await gone.text()]).toEqual([204, ""]);
});
