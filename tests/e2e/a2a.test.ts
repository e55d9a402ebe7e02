// Two real gateways: an agent of one is reached over A2A by the other.
// Hard cases: either side is killed while a task runs, the run is aborted, the card is signed by another key,
// the agent is away, and two gateways ask each other in a circle.

import { expect } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { test } from "../kit/deep.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { type ModelServer, type Script, startModelServer } from "../kit/model-server/server.ts";
import { call } from "../kit/model-server/steps.ts";
import { TOKEN } from "../kit/process/fleet.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";
import { PATIENCE_MS } from "../kit/until.ts";

type Config = Record<string, unknown>;

async function modelServer(script: Script): Promise<ModelServer> {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  return server;
}

/** Returns a configuration with these agents and one model server. */
function configOf(server: ModelServer, agents: readonly Config[], more: Config = {}): Config {
  const { id: _, ...provider } = server.provider("openai-completions");
  const [first, ...others] = agents;
  return {
    models: { providers: { one: provider } },
    agents: {
      defaults: { model: "one/test-model" },
      list: [{ ...first, default: true }, ...others],
    },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: [] } },
    session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 3 } },
    ...more,
  };
}

/** Starts the gateway whose agent `research` is exposed. `port`: where it is after a restart, too. */
function startRemote(server: ModelServer, port: number): Promise<GatewayProcess> {
  const more = { a2a: { expose: ["research"] }, gateway: { port, auth: { token: TOKEN } } };
  return startProcess({ config: configOf(server, [{ id: "research" }], more) });
}

async function keyOf(httpUrl: string): Promise<string> {
  const { keys } = (await (await fetch(`${httpUrl}/a2a/jwks.json`)).json()) as { keys: { kid: string }[] };
  return keys[0]?.kid ?? "";
}

const far = (url: string, key: string): Config => ({
  id: "far",
  runtime: { type: "a2a", card: `${url}/a2a/research`, token: TOKEN, key },
});

async function say(client: GatewayClient, message: string, sessionKey = "agent:far:main"): Promise<string> {
  const { runId } = await client.request("chat.send", { sessionKey, message });
  return runId;
}

const ended = (client: GatewayClient, runId: string) =>
  client.request("agent.wait", { runId, timeoutMs: PATIENCE_MS });

/** Returns the last text of a session. */
async function last(client: GatewayClient, sessionKey = "agent:far:main"): Promise<string> {
  const { messages } = await client.request("chat.history", { sessionKey });
  const message = messages.at(-1);
  return message === undefined ? "" : textOf(message);
}

/** Returns the states of all tasks of the exposed agent, the newest first. */
async function tasksAt(url: string, agentId = "research"): Promise<string[]> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await fetch(`${url}/a2a/${agentId}/tasks`, { headers });
  const { tasks } = (await answer.json()) as { tasks: { status: { state: string } }[] };
  return tasks.map(({ status }) => status.state);
}

/** Starts two gateways and a task between them. Its answer is held until the test releases it. */
async function startHeldTask(answer: string) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const there = await modelServer(async () => {
    begun.resolve();
    await released.promise;
    return answer;
  });
  const remote = await startRemote(there, await freePort());
  const config = configOf(there, [{ id: "main" }, far(remote.httpUrl, await keyOf(remote.httpUrl))]);
  const local = await startProcess({ config });
  const client = await local.connect();
  const runId = await say(client, "Take your time");
  await begun.promise;
  return { there, remote, local, client, runId, release: () => released.resolve() };
}

test("an agent asks an agent of another gateway with sessions_send, and both remember the conversation", async () => {
  const there = await modelServer(({ messages }) => `answer ${messages.length}`);
  const remote = await startRemote(there, await freePort());
  const here = await modelServer(({ toolResults }) =>
    toolResults.length > 0
      ? `It says: ${JSON.parse(toolResults[0] ?? "{}").reply}`
      : [call("sessions_send", { sessionKey: "agent:far:main", message: "What is new?" })],
  );
  // Its answers are from outside, and the session is private.
  const labels = { sinks: { places: ["far"] } };
  const agents = [{ id: "main" }, far(remote.httpUrl, await keyOf(remote.httpUrl))];
  const config = configOf(here, agents, { labels });
  const local = await startProcess({ config });
  const client = await local.connect();
  for (const count of [1, 3]) {
    const runId = await say(client, "Ask it", "agent:main:main");
    expect(await ended(client, runId)).toMatchObject({ status: "ok" });
    expect(await last(client, "agent:main:main")).toBe(`It says: answer ${count}`);
  }
  expect(await tasksAt(remote.httpUrl)).toEqual(["TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"]);
  expect(there.requests[0]?.lastUserText).toContain("What is new?");
});

test.deep("a file that the agent elsewhere sends is kept here, for the people of the session", async () => {
  const there = await modelServer(({ toolResults }) => {
    if (toolResults.length === 0) return [call("write", { path: "plan.txt", content: "step one" })];
    return toolResults.length === 1 ? [call("send_file", { path: "plan.txt" })] : "Here is the plan.";
  });
  const remote = await startRemote(there, await freePort());
  const here = await modelServer(() => "not asked");
  const config = configOf(here, [{ id: "main" }, far(remote.httpUrl, await keyOf(remote.httpUrl))]);
  const local = await startProcess({ config });
  const client = await local.connect();
  expect(await ended(client, await say(client, "The plan, please"))).toMatchObject({ status: "ok" });
  const sessionKey = "agent:far:main";
  const { messages } = await client.request("chat.history", { sessionKey });
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
  const { fileId } = JSON.parse(messages[2] === undefined ? "{}" : textOf(messages[2]));
  const file = await client.request("chat.file", { sessionKey, fileId });
  expect(file).toMatchObject({ name: "plan.txt", bytes: 8, content: btoa("step one") });
  expect(await last(client)).toBe("Here is the plan.");
});

test.deep(
  "RT1: if this gateway is killed while the task runs, it follows the task after the restart; the agent works once",
  async () => {
    const { there, remote, local, release } = await startHeldTask("Done at last");
    await local.end("SIGKILL");
    release();
    const second = await startProcess({ home: local.home });
    const client = await second.connect();
    await expect.poll(() => last(client)).toBe("Done at last");
    expect(await tasksAt(remote.httpUrl)).toEqual(["TASK_STATE_COMPLETED"]);
    expect(there.requests).toHaveLength(1);
  },
);

test.deep(
  "if the other gateway is killed while the task runs, its answer arrives after its restart",
  async () => {
    const { remote, client, runId, release } = await startHeldTask("Done at last");
    await remote.end("SIGKILL");
    release();
    const again = await startProcess({ home: remote.home });
    expect(await ended(client, runId)).toMatchObject({ status: "ok" });
    expect(await last(client)).toBe("Done at last");
    expect(await tasksAt(again.httpUrl)).toEqual(["TASK_STATE_COMPLETED"]);
  },
);

test.deep("a message to a gateway that is away is sent when it comes back, once", async () => {
  const there = await modelServer(() => "Here I am");
  const port = await freePort();
  const remote = await startRemote(there, port);
  const key = await keyOf(remote.httpUrl);
  await remote.end("SIGTERM");
  const local = await startProcess({ config: configOf(there, [{ id: "main" }, far(remote.httpUrl, key)]) });
  const client = await local.connect();
  const { promise: retried, resolve } = Promise.withResolvers<void>();
  client.on("agent", ({ stream, data }) => {
    if (stream === "retry" && JSON.stringify(data).includes("cannot be reached")) resolve();
  });
  const runId = await say(client, "Are you there?");
  await retried;
  const again = await startProcess({ home: remote.home });
  expect(await ended(client, runId)).toMatchObject({ status: "ok" });
  expect(await last(client)).toBe("Here I am");
  expect(await tasksAt(again.httpUrl)).toEqual(["TASK_STATE_COMPLETED"]);
});

test.deep("RT3: an aborted run cancels its task", async () => {
  const { remote, client, release } = await startHeldTask("Too late");
  const { aborted } = await client.request("chat.abort", { sessionKey: "agent:far:main" });
  expect(aborted).toBe(true);
  await expect.poll(() => tasksAt(remote.httpUrl)).toEqual(["TASK_STATE_CANCELED"]);
  release();
});

test.deep(
  "RT3: a gateway that stops does not cancel the task, and an abort after its restart does",
  async () => {
    const { remote, local, release } = await startHeldTask("Too late");
    await local.end("SIGINT");
    expect(await tasksAt(remote.httpUrl)).toEqual(["TASK_STATE_WORKING"]);
    const second = await startProcess({ home: local.home });
    const client = await second.connect();
    const aborting = () => client.request("chat.abort", { sessionKey: "agent:far:main" });
    await expect.poll(async () => (await aborting()).aborted).toBe(true);
    await expect.poll(() => tasksAt(remote.httpUrl)).toEqual(["TASK_STATE_CANCELED"]);
    release();
  },
);

test.deep("RC2: a card that another key has signed is refused, and nothing is sent", async () => {
  const there = await modelServer(() => "Never");
  const remote = await startRemote(there, await freePort());
  const key = await keyOf(remote.httpUrl);
  const local = await startProcess({
    config: configOf(there, [{ id: "main" }, far(remote.httpUrl, "another-key")]),
  });
  const client = await local.connect();
  const answer = await ended(client, await say(client, "Hello"));
  expect(answer).toMatchObject({
    status: "error",
    error: expect.stringContaining(`signed by the key ${key}`),
  });
  expect(there.requests).toEqual([]);
});

test.deep("two gateways that ask each other in a circle stop at the hop limit", async () => {
  const ports = [await freePort(), await freePort()];
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  // Each agent asks the agent of the other gateway, whatever it is asked.
  const everywhere = await modelServer(({ toolResults }) =>
    toolResults.length > 0
      ? `It says: ${JSON.parse(toolResults[0] ?? "{}").error ?? "an answer"}`
      : [call("sessions_send", { sessionKey: "agent:far:main", message: "You do it" })],
  );
  const start = (at: number) => {
    const other = { type: "a2a", card: `${urls[1 - at]}/a2a/research`, token: TOKEN, allowUnsigned: true };
    const more = { a2a: { expose: ["research"] }, gateway: { port: ports[at], auth: { token: TOKEN } } };
    return startProcess({
      config: configOf(everywhere, [{ id: "research" }, { id: "far", runtime: other }], more),
    });
  };
  const [first, second] = [await start(0), await start(1)];
  const client = await first.connect();
  const runId = await say(client, "Begin", "agent:research:main");
  expect(await ended(client, runId)).toMatchObject({ status: "ok" });
  const counts = [...(await tasksAt(first.httpUrl)), ...(await tasksAt(second.httpUrl))];
  expect(counts.length).toBeGreaterThan(0);
  expect(counts.length).toBeLessThan(4);
});
