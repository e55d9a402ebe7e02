// The whole gateway: a real process, socket and disk, and model servers that imitate the providers' formats.

import { expect } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import type { ChatEvent } from "../../src/contract/events.ts";
import type { Message } from "../../src/core/shapes/message.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { test } from "../kit/deep.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { deafServer } from "../kit/loopback.ts";
import { type ModelServer, type Script, startModelServer } from "../kit/model-server/server.ts";
import { call, httpError, pause, text } from "../kit/model-server/steps.ts";
import { launch } from "../kit/process/fleet.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";
import { PATIENCE_MS } from "../kit/until.ts";

const RESEARCH = "agent:research:main";

async function modelServer(script: Script): Promise<ModelServer> {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  return server;
}

/**
 * Returns a configuration in which main uses OpenAI's format and research uses Anthropic's, and each agent
 * sees the other.
 */
function twoAgents(server: ModelServer, more: Record<string, unknown> = {}): Record<string, unknown> {
  const openai = server.provider("openai-completions");
  const anthropic = server.provider("anthropic-messages");
  return {
    models: { providers: { one: withoutId(openai), two: withoutId(anthropic) } },
    agents: {
      list: [
        { id: "main", default: true, model: "one/test-model" },
        { id: "research", model: "two/test-model" },
      ],
    },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: [] } },
    session: { agentToAgent: { maxPingPongTurns: 2 } },
    ...more,
  };
}

function withoutId({ id: _, ...provider }: ReturnType<ModelServer["provider"]>) {
  return provider;
}

async function chat(client: GatewayClient, message: string, sessionKey = "main"): Promise<string> {
  const idempotencyKey = crypto.randomUUID();
  await client.call("chat.send", { sessionKey, message, idempotencyKey });
  return idempotencyKey;
}

const waitFor = (client: GatewayClient, runId: string): Promise<{ status: string; runStatus: string }> =>
  client.call("agent.wait", { runId, timeoutMs: PATIENCE_MS });

async function history(client: GatewayClient, sessionKey: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey, limit: 200 });
  return messages.map((message) => `${message.role}: ${textOf(message)}`);
}

test("two agents with different providers' formats ask, answer, exchange reply turns and announce, and every event is sent", async () => {
  const server = await modelServer((request) => {
    if (request.step === "announce") return "The research is done.";
    if (request.step === "reply") return request.agentId === "main" ? "Are you sure?" : "REPLY_SKIP";
    if (request.agentId === "research") return "Forty-two.";
    if (request.toolResults.length > 0) return "Research says forty-two.";
    return [text("Let me ask. "), call("sessions_send", { sessionKey: RESEARCH, message: "What is it?" })];
  });
  const gateway = await startProcess({ config: twoAgents(server) });
  const client = await gateway.connect();
  const events: ChatEvent[] = [];
  client.on("chat", (event) => events.push(event));
  // A person has written to research, so there is a chat for its announcement.
  await waitFor(client, await chat(client, "hello", RESEARCH));
  const runId = await chat(client, "Find out what it is.");
  expect(await waitFor(client, runId)).toMatchObject({ status: "ok", runStatus: "ok" });
  await expect.poll(() => history(client, "main")).toContain("assistant: Are you sure?");
  expect(await history(client, "main")).toEqual([
    "user: Find out what it is.",
    "assistant: Let me ask. ",
    expect.stringMatching(/^toolResult: .*"status":"ok","reply":"Forty-two."/),
    "assistant: Research says forty-two.",
    "user: Forty-two.",
    "assistant: Are you sure?",
  ]);
  const texts = () => events.map((event) => (event.message ? textOf(event.message as Message) : ""));
  await expect.poll(texts).toContain("The research is done.");
  const mine = events.filter((event) => event.runId === runId);
  expect(mine.at(-1)).toMatchObject({ state: "final" });
  expect(mine.map((event) => event.seq)).toEqual([...mine.map((event) => event.seq)].sort((a, b) => a - b));
  const shown = texts().join();
  expect(shown).not.toContain("REPLY_SKIP");
  expect(shown).not.toContain("Are you sure?");
  expect(new Set(server.requests.map((request) => request.api))).toEqual(
    new Set(["openai-completions", "anthropic-messages"]),
  );
  const deliveries = async () => (await client.request("deliveries.list", {})).deliveries;
  await expect.poll(deliveries).toMatchObject([{ state: "sent", text: "The research is done." }]);
});

test("with fallbackModels in the configuration file the next model answers, and the stored message names that model", async () => {
  const broken = await modelServer(() => httpError(400, "this model was retired"));
  const other = await modelServer(() => "The second one answers.");
  const first = { ...withoutId(broken.provider("openai-completions")), maxRetries: 0 };
  const second = withoutId(other.provider("anthropic-messages"));
  const agent = { id: "main", model: "first/test-model", fallbackModels: ["second/test-model"] };
  const config = { models: { providers: { first, second } }, agents: { list: [agent] } };
  const gateway = await startProcess({ config });
  const client = await gateway.connect();
  expect(await waitFor(client, await chat(client, "hello"))).toMatchObject({ runStatus: "ok" });
  expect(await history(client, "main")).toEqual(["user: hello", "assistant: The second one answers."]);
  const { messages } = await client.request("chat.history", { sessionKey: "main" });
  expect(messages.at(-1)).toMatchObject({ provider: "second", model: "test-model" });
  expect([broken.requests.length, other.requests.length]).toEqual([1, 1]);
});

test.deep(
  "with connectTimeoutSeconds in the configuration, each attempt ends in time and is reported; the next model answers",
  async () => {
    const deaf = await deafServer();
    cleanup(() => deaf.close());
    const other = await modelServer(() => "The second one answers.");
    const provider = withoutId(other.provider("openai-completions"));
    const patience = { connectTimeoutSeconds: 1, maxRetries: 1 };
    const first = { ...provider, ...patience, baseUrl: `${deaf.url}/v1` };
    const agent = { id: "main", model: "first/test-model", fallbackModels: ["second/test-model"] };
    const config = { models: { providers: { first, second: provider } }, agents: { list: [agent] } };
    const gateway = await startProcess({ config });
    const client = await gateway.connect();
    const retries: unknown[] = [];
    client.on("agent", (event) => {
      const { stream, data } = event as { stream: string; data: unknown };
      if (stream === "retry") retries.push(data);
    });
    expect(await waitFor(client, await chat(client, "hello"))).toMatchObject({ runStatus: "ok" });
    expect(await history(client, "main")).toEqual(["user: hello", "assistant: The second one answers."]);
    expect(deaf.connections()).toBe(2);
    const error = expect.stringContaining("accepted no connection within 1 s");
    await expect.poll(() => retries).toMatchObject([{ attempt: 1, of: 1, error }]);
  },
);

async function killedInTheMiddle(when: (server: ModelServer) => Promise<void>): Promise<void> {
  let slow = true;
  const server = await modelServer((request) => {
    if (request.agentId === "research") {
      return slow ? [text("Thinking ", 1), pause(new Promise(() => {})), text("never")] : "Forty-two.";
    }
    if (request.toolResults.length > 0) return "Done.";
    return [call("sessions_send", { sessionKey: RESEARCH, message: "What is it?", timeoutSeconds: 60 })];
  });
  const config = twoAgents(server, { session: { agentToAgent: { maxPingPongTurns: 0 } } });
  const first = await startProcess({ config });
  const client = await first.connect();
  const runId = await chat(client, "Find out.");
  await when(server);
  await first.end("SIGKILL");
  slow = false;
  const second = await startProcess({ home: first.home });
  const again = await second.connect();
  expect(await waitFor(again, runId)).toMatchObject({ status: "ok" });
  const lines = await history(again, "main");
  expect(lines.filter((line) => line.startsWith("user: Find out."))).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith("toolResult"))).toEqual([
    expect.stringContaining("Forty-two."),
  ]);
  expect(lines.at(-1)).toBe("assistant: Done.");
  const asked = (await history(again, RESEARCH)).filter((line) => line.startsWith("user: What is it?"));
  expect(asked).toHaveLength(1);
}

test.deep(
  "I2, I4: if the gateway is killed while one session waits for another, both runs end after the restart, each step once",
  async () => {
    await killedInTheMiddle(async (server) => {
      await expect.poll(() => server.requests.map(({ agentId }) => agentId)).toContain("research");
    });
  },
  60_000,
);

test.deep(
  "I2: a message is answered even if the gateway is killed immediately after it accepted the message",
  async () => {
    await killedInTheMiddle(async () => {});
  },
  60_000,
);

test.deep(
  "SIGTERM lets running work finish, the exit code is 0, and nothing is lost",
  async () => {
    const release = Promise.withResolvers<void>();
    const server = await modelServer(() => [text("one ", 1), pause(release.promise), text("two", 1)]);
    const gateway = await startProcess({ config: twoAgents(server) });
    const client = await gateway.connect();
    const runId = await chat(client, "count");
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    gateway.signal("SIGTERM");
    const late = () =>
      chat(client, "late").then(
        () => "accepted",
        () => "refused",
      );
    await expect.poll(late).toBe("refused");
    release.resolve();
    expect(await gateway.exited).toBe(0);
    const second = await startProcess({ home: gateway.home });
    const again = await second.connect();
    expect(await waitFor(again, runId)).toMatchObject({ status: "ok" });
    expect((await history(again, "main")).slice(0, 2)).toEqual(["user: count", "assistant: one two"]);
  },
  60_000,
);

test.deep(
  "a second SIGINT exits at once, and accepted work runs after the next start",
  async () => {
    let stuck = true;
    const server = await modelServer(() => (stuck ? [pause(new Promise(() => {}))] : "back again"));
    const gateway = await startProcess({ config: twoAgents(server) });
    const client = await gateway.connect();
    const runId = await chat(client, "hang");
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    gateway.signal("SIGINT");
    await expect.poll(() => gateway.stderr() + gateway.stdout()).toMatch(/again/i);
    gateway.signal("SIGINT");
    expect(await gateway.exited).not.toBe(0);
    stuck = false;
    const second = await startProcess({ home: gateway.home });
    const again = await second.connect();
    expect(await waitFor(again, runId)).toMatchObject({ status: "ok" });
    expect((await history(again, "main")).at(-1)).toBe("assistant: back again");
  },
  60_000,
);

function outputOf(gateway: GatewayProcess, args: string[]): Promise<{ code: number | null; output: string }> {
  const child = launch(gateway.home, args);
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stdin?.end();
  return new Promise((resolve) => child.once("exit", (code) => resolve({ code, output })));
}

test("a second gateway on the same store folder refuses to start and names the process that uses it", async () => {
  const gateway = await startProcess({ config: {} });
  const second = await outputOf(gateway, ["gateway", "--port", "0"]);
  expect(second.code).toBe(1);
  expect(second.output).toContain(`process ${gateway.pid}`);
  expect(second.output).not.toMatch(/\n\s+at /);
  const response = await fetch(`${gateway.httpUrl}/readyz`);
  expect(response.status).toBe(200);
});

test("without a key and without a configuration the offline model answers, with the same agent loop and tools", async () => {
  const gateway = await startProcess({ config: {} });
  const client = await gateway.connect();
  const runId = await chat(client, "list sessions");
  expect(await waitFor(client, runId)).toMatchObject({ status: "ok" });
  const lines = await history(client, "main");
  expect(lines.some((line) => line.startsWith("toolResult") && line.includes('"sessions"'))).toBe(true);
});
