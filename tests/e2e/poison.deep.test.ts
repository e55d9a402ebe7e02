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
import { until } from "../kit/until.ts";

const NEIGHBOURS = 7;
const LATER = 3;

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

/** Starts the gateway again after each death, as a supervisor does, until `stop` is called. */
function supervise(home: string, first: GatewayProcess) {
  let current = Promise.resolve(first);
  let isOver = false;
  const watch = async (process: GatewayProcess): Promise<void> => {
    await process.exited;
    if (isOver) return;
    current = startProcess({ home });
    await watch(await current);
  };
  void watch(first);
  return {
    gateway: () => current,
    stop(): void {
      isOver = true;
    },
  };
}

test.each(STORES)(
  "poison runs, %s: while a sub-agent kills its process again and again, ten others succeed, and an abort ends it",
  async (_, storeOf) => {
    const mayKill = Promise.withResolvers<void>();
    let running: ReturnType<typeof supervise> | undefined;
    const { script, asked } = scriptOf(async () => {
      await mayKill.promise;
      await (await running?.gateway())?.end("SIGKILL");
    });
    const server = await startModelServer(script);
    cleanup(() => server.close());
    const { id: _id, ...provider } = server.provider("openai-completions");
    const home = homeWith({
      models: { providers: { one: provider } },
      agents: { list: [{ id: "main", default: true, model: "one/test-model" }] },
      ...(await storeOf()),
    });
    const gateway = await startProcess({ home });
    running = supervise(home, gateway);
    const client = await gateway.connect();
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
    /** Asks whichever gateway runs now. A request that its death interrupts is made again. */
    const ask = <T>(question: (now: GatewayClient) => Promise<T>): Promise<T> =>
      until(async () => {
        try {
          const now = await (await running.gateway()).connect();
          return { answer: await question(now) };
        } catch {
          return undefined;
        }
      }).then(({ answer }) => answer);
    for (const runId of others) expect(await ask((now) => endOf(now, runId))).toMatchObject({ status: "ok" });
    await expect.poll(() => asked.poison).toBeGreaterThan(2);
    await ask((now) => now.request("chat.abort", { sessionKey: child, idempotencyKey: "stop it" }));
    await ask((now) => send(now, child, "hello again"));
    expect(await ask((now) => endOf(now, next))).toMatchObject({ status: "error", code: "run_aborted" });
    const texts = async () => (await ask((now) => historyOf(now, child))).map(textOf);
    await expect.poll(texts).toContain("echo hello again");
    running.stop();
    expect(await (await running.gateway()).end("SIGTERM")).toBe(0);
  },
);
