// One run kills the gateway process at each of its model calls, while other runs execute.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { type Message, textOf } from "../../src/core/shapes/message.ts";
import { cleanup } from "../kit/engine/engine.ts";
import type { ServedRequest } from "../kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../kit/model-server/server.ts";
import { call, hang } from "../kit/model-server/steps.ts";
import { type GatewayProcess, homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { STORES } from "../kit/process/grounds.ts";

const NEIGHBOURS = 7;
const LATER = 3;
const ATTEMPTS = 3;

/**
 * Returns a model that calls `kill` for the message `poison`. It leaves the first requests of other
 * sub-agents unanswered.
 */
function scriptOf(kill: () => Promise<void>) {
  const held = new Set<string>();
  const asked = { poison: 0, neighbours: () => held.size };
  const script = async ({ lastUserText, toolResults }: ServedRequest): Promise<Answer> => {
    if (lastUserText.includes("spawn it")) {
      return toolResults.length > 0 ? "it is under way" : [call("sessions_spawn", { task: "poison" })];
    }
    if (lastUserText.includes("poison")) {
      asked.poison += 1;
      await kill();
      return [hang()];
    }
    if (lastUserText.includes("neighbour") && !held.has(lastUserText)) {
      held.add(lastUserText);
      return [hang()];
    }
    return `echo ${lastUserText}`;
  };
  return { script, asked };
}

async function send(client: GatewayClient, sessionKey: string, message: string): Promise<string> {
  const idempotencyKey = `${sessionKey} ${message}`;
  const { runId } = await client.request("agent", { sessionKey, message, idempotencyKey });
  return runId;
}

const endOf = (client: GatewayClient, runId: string) =>
  client.request("agent.wait", { runId, timeoutMs: 30_000 });

async function historyOf(client: GatewayClient, sessionKey: string): Promise<readonly Message[]> {
  return (await client.request("chat.history", { sessionKey, limit: 200 })).messages;
}

async function childOf(client: GatewayClient): Promise<string> {
  const params = { spawnedBy: "agent:main:main", includeArchived: true, limit: 10 };
  const { sessions } = await client.request("sessions.list", params);
  return sessions[0]?.key ?? "";
}

test.each(STORES)(
  "poison runs, %s: a sub-agent that kills its process fails after three attempts and is announced once; ten others succeed",
  async (_, storeOf) => {
    const mayKill = Promise.withResolvers<void>();
    let gateway: GatewayProcess | undefined;
    const { script, asked } = scriptOf(async () => {
      await mayKill.promise;
      await gateway?.end("SIGKILL");
    });
    const server = await startModelServer(script);
    cleanup(() => server.close());
    const { id: _id, ...provider } = server.provider("openai-completions");
    const home = homeWith({
      models: { providers: { one: provider } },
      agents: { list: [{ id: "main", default: true, model: "one/test-model" }] },
      ...(await storeOf()),
    });
    gateway = await startProcess({ home });
    let client = await gateway.connect();
    const others: string[] = [];
    for (let at = 0; at < NEIGHBOURS; at += 1) {
      others.push(await send(client, `agent:main:n${at}`, `neighbour ${at}`));
    }
    await expect.poll(asked.neighbours).toBe(NEIGHBOURS);
    others.push(await send(client, "main", "spawn it"));
    await expect.poll(() => asked.poison).toBe(1);
    const child = await childOf(client);
    const next = await send(client, child, "hello");
    for (let at = 0; at < LATER; at += 1) {
      others.push(await send(client, `agent:main:later${at}`, `later ${at}`));
    }
    mayKill.resolve();
    await gateway.exited;
    for (let attempt = 2; attempt <= ATTEMPTS; attempt += 1) {
      gateway = await startProcess({ home });
      await gateway.exited;
    }
    gateway = await startProcess({ home });
    client = await gateway.connect();

    for (const runId of others) expect(await endOf(client, runId)).toMatchObject({ status: "ok" });
    expect(await endOf(client, next)).toMatchObject({ status: "ok" });
    expect(asked.poison).toBe(ATTEMPTS);
    const announced = async () =>
      (await historyOf(client, "main")).filter((message) => {
        const from = message.role === "user" ? message.provenance : undefined;
        return from?.kind === "inter_session" && from.sourceTool === "sessions_spawn";
      });
    await expect.poll(async () => (await announced()).length).toBe(1);
    expect((await announced()).map(textOf)).toEqual([
      expect.stringMatching(/died 3 times while it executed/),
    ]);
    expect((await historyOf(client, child)).map(textOf)).toEqual(["poison", "hello", "echo hello"]);
    expect(await gateway.end("SIGTERM")).toBe(0);
  },
);
