// Two real gateways as peers: their agents write to each other.
// Hard cases: the peer is away, either side is killed, a file that the peer sends meanwhile, a wrong code, a peer
// that was removed, and a policy that does not admit the peer.

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

const FAR = "peer:lab/agent:research:main";

async function modelServer(script: Script): Promise<ModelServer> {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  return server;
}

/** Starts a gateway with one agent. `allow`: the agents that its policy admits. */
async function startGateway(agent: string, script: Script, allow: readonly string[]) {
  const server = await modelServer(script);
  const { id: _, ...provider } = server.provider("openai-completions");
  const gateway = await startProcess({
    config: {
      models: { providers: { one: provider } },
      agents: { defaults: { model: "one/test-model" }, list: [{ id: agent, default: true }] },
      tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow } },
      gateway: { port: await freePort(), auth: { token: TOKEN } },
    },
  });
  return { gateway, server };
}

/** Pairs two gateways: `near` knows the other one as `lab`, which knows it as `desk`. */
async function pair(near: GatewayProcess, far: GatewayProcess): Promise<[GatewayClient, GatewayClient]> {
  const [client, there] = [await near.connect(), await far.connect()];
  const invite = { name: "desk", url: near.httpUrl, agents: ["research"] };
  const { code = "" } = await there.request("peers.add", invite);
  const added = await client.request("peers.add", { name: "lab", url: far.httpUrl, code, agents: ["main"] });
  expect(added.peer).toMatchObject({ state: "paired", exposes: ["main"], offers: ["research"] });
  return [client, there];
}

const FAR_ALLOWS = ["research", "peer:desk/*"];
const NEAR_ALLOWS = ["main", "peer:lab/*"];

/** Returns a script that asks the agent of the peer, and says what it got. */
const asking =
  (message: string, timeoutSeconds = 30): Script =>
  ({ toolResults }) =>
    toolResults.length > 0
      ? `It says: ${toolResults[0]}`
      : [call("sessions_send", { sessionKey: FAR, message, timeoutSeconds })];

async function said(client: GatewayClient, message: string): Promise<Record<string, unknown>> {
  const { runId } = await client.request("chat.send", { sessionKey: "agent:main:main", message });
  await client.request("agent.wait", { runId, timeoutMs: PATIENCE_MS });
  const { messages } = await client.request("chat.history", { sessionKey: "agent:main:main" });
  const result = messages.findLast(({ role }) => role === "toolResult");
  return JSON.parse(result === undefined ? "{}" : textOf(result));
}

const receipt = async (client: GatewayClient) => {
  const { messages } = await client.request("chat.history", { sessionKey: FAR, includeRuns: true });
  return JSON.stringify(messages);
};

test("I11: an agent writes to an agent of a peer, which knows the sender by the name of its gateway", async () => {
  const far = await startGateway("research", () => "All is well", FAR_ALLOWS);
  const near = await startGateway("main", asking("What is new?"), NEAR_ALLOWS);
  const [client, there] = await pair(near.gateway, far.gateway);
  expect(await said(client, "Ask it")).toMatchObject({
    status: "ok",
    reply: "All is well",
    receipt: "answered",
  });
  const { messages } = await there.request("chat.history", { sessionKey: "agent:research:main" });
  expect(messages[0]).toMatchObject({
    role: "user",
    provenance: { kind: "inter_session", sourceSessionKey: "peer:desk/agent:main:main", hop: 1 },
  });
  expect(far.server.requests[0]?.lastUserText).toContain("What is new?");
  expect(await receipt(client)).toContain("All is well");
});

test.deep(
  "I2, I4: a message to a peer that is away stays queued, survives a kill here, and arrives once",
  async () => {
    const far = await startGateway("research", () => "Here I am", FAR_ALLOWS);
    const near = await startGateway("main", asking("Are you there?", 0), NEAR_ALLOWS);
    const [client] = await pair(near.gateway, far.gateway);
    await far.gateway.end("SIGKILL");
    const { messageId } = (await said(client, "Ask it")) as { messageId: string };
    const status = async (from: GatewayClient) => {
      const params = { name: "session_status", arguments: { messageId }, sessionKey: "agent:main:main" };
      return JSON.stringify(await from.request("tools.invoke", params));
    };
    expect(await status(client)).toContain("queued");
    await near.gateway.end("SIGKILL");
    const again = await startProcess({ home: near.gateway.home });
    const after = await again.connect();
    expect(await status(after)).toContain("queued");
    const back = await startProcess({ home: far.gateway.home });
    await expect.poll(() => status(after)).toContain("answered");
    const { messages } = await (await back.connect()).request("chat.history", {
      sessionKey: "agent:research:main",
    });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  },
);

/** Returns a script that writes a file, sends it, and answers once `done` is settled. */
const sendingFile =
  (done?: { begun(): void; released: Promise<void> }): Script =>
  async ({ toolResults }) => {
    if (toolResults.length === 0) return [call("write", { path: "plan.txt", content: "step one" })];
    if (toolResults.length === 1) return [call("send_file", { path: "plan.txt" })];
    done?.begun();
    await done?.released;
    return "Here is the plan.";
  };

/** Returns the messages of the peer's session, and the files that it has. */
async function kept(client: GatewayClient) {
  const { messages } = await client.request("chat.history", { sessionKey: FAR });
  const files: unknown[] = [];
  for (const result of messages.filter(({ role }) => role === "toolResult")) {
    const { fileId } = JSON.parse(textOf(result));
    const { name, content = "" } = await client.request("chat.file", { sessionKey: FAR, fileId });
    files.push([name, atob(content)]);
  }
  return { roles: messages.map(({ role }) => role), files, last: textOf(messages.at(-1) ?? NOTHING) };
}

const NOTHING = { role: "user", content: [] } as unknown as Parameters<typeof textOf>[0];
const ONE_FILE = {
  roles: ["user", "assistant", "toolResult", "assistant"],
  files: [["plan.txt", "step one"]],
  last: "Here is the plan.",
};

test.deep("a file that the agent of a peer sends arrives here, for the people of the session", async () => {
  const far = await startGateway("research", sendingFile(), FAR_ALLOWS);
  const near = await startGateway("main", asking("The plan, please"), NEAR_ALLOWS);
  const [client] = await pair(near.gateway, far.gateway);
  expect(await said(client, "Ask it")).toMatchObject({ status: "ok", reply: "Here is the plan." });
  expect(await kept(client)).toEqual(ONE_FILE);
});

test.deep(
  "I2, I4: a file of a peer arrives once, though both sides are killed between the file and the answer",
  async () => {
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const script = sendingFile({ begun: begun.resolve, released: released.promise });
    const far = await startGateway("research", script, FAR_ALLOWS);
    const near = await startGateway("main", asking("The plan, please", 0), NEAR_ALLOWS);
    const [client] = await pair(near.gateway, far.gateway);
    await said(client, "Ask it");
    await begun.promise;
    await near.gateway.end("SIGKILL");
    await far.gateway.end("SIGKILL");
    released.resolve();
    await startProcess({ home: far.gateway.home });
    const after = await (await startProcess({ home: near.gateway.home })).connect();
    await expect.poll(() => kept(after)).toEqual(ONE_FILE);
    expect(far.server.requests.filter(({ toolResults }) => toolResults.length === 0)).toHaveLength(1);
  },
);

test.deep("I9: a peer that the policy does not admit is refused, and nothing runs", async () => {
  const far = await startGateway("research", () => "Never", ["*"]);
  const near = await startGateway("main", asking("Hello"), NEAR_ALLOWS);
  const [client] = await pair(near.gateway, far.gateway);
  const answer = await said(client, "Ask it");
  expect(answer).toMatchObject({ status: "error", error: expect.stringContaining("policy of the peer") });
  expect(far.server.requests).toEqual([]);
});

test.deep("I9: without a pattern for the peer, an agent does not see its sessions", async () => {
  const far = await startGateway("research", () => "Never", FAR_ALLOWS);
  const near = await startGateway("main", asking("Hello"), ["*"]);
  const [client] = await pair(near.gateway, far.gateway);
  expect(await said(client, "Ask it")).toMatchObject({ status: "forbidden", code: "agent_to_agent" });
  expect(far.server.requests).toEqual([]);
});

test.deep("I7: an agent that asks back, while the other one waits for it, is refused at once", async () => {
  const ask = { sessionKey: "peer:desk/agent:main:main", message: "Why?", timeoutSeconds: 30 };
  const far = await startGateway(
    "research",
    ({ toolResults }) => (toolResults.length > 0 ? "I had to guess" : [call("sessions_send", ask)]),
    FAR_ALLOWS,
  );
  const near = await startGateway("main", asking("What is new?"), NEAR_ALLOWS);
  const [client, there] = await pair(near.gateway, far.gateway);
  expect(await said(client, "Ask it")).toMatchObject({ status: "ok", reply: "I had to guess" });
  const { messages } = await there.request("chat.history", { sessionKey: "agent:research:main" });
  const refused = messages.find(({ role }) => role === "toolResult");
  expect(JSON.parse(refused === undefined ? "{}" : textOf(refused))).toMatchObject({ code: "wait_cycle" });
});

test.deep(
  "PE1: a wrong code and a used code are refused alike; a removed peer has no more rights",
  async () => {
    const far = await startGateway("research", () => "Never", FAR_ALLOWS);
    const near = await startGateway("main", asking("Hello"), NEAR_ALLOWS);
    const client = await near.gateway.connect();
    const there = await far.gateway.connect();
    const add = (code: string, from = client) =>
      from.request("peers.add", { name: "lab", url: far.gateway.httpUrl, code }).catch(String);
    await there.request("peers.add", { name: "desk", agents: ["research"] });
    const wrong = await add("ABCD-EFGH-JKLM-NPQR");
    expect(wrong).toContain("the pairing code is wrong, was used, or has expired");
    const { code = "" } = await there.request("peers.add", { name: "desk", agents: ["research"] });
    expect(await add(code)).toMatchObject({ peer: { state: "paired" } });
    const third = await startGateway("main", () => "Never", NEAR_ALLOWS);
    expect(await add(code, await third.gateway.connect())).toBe(wrong);
    await there.request("peers.remove", { name: "desk" });
    expect(await said(client, "Ask it")).toMatchObject({
      status: "error",
      error: expect.stringContaining("401"),
    });
    expect(far.server.requests).toEqual([]);
  },
);
