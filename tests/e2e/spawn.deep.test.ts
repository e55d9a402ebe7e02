// One message starts fifty sub-agents in a real gateway process, which runs undisturbed or is killed at
// random moments.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { dice } from "../kit/dice.ts";
import { type GatewayProcess, homeWith, startProcess } from "../kit/process/gateway-process.ts";

const CHILDREN = 50;
const TASK = `spawn ${CHILDREN} jobs: say result {n} is there`;
const CONFIG = { agents: { defaults: { subagents: { maxChildren: CHILDREN } } } };
/** Time limit of a round. It is much longer than needed, because the benchmarks measure the actual time. */
const ROUND_MAX_MS = 60_000;
const ASKED_EVERY_MS = 20;
/**
 * Number of rounds with a kill. The usual duration of a round is divided into this number of parts, and the
 * gateway is killed once in each part.
 */
const KILLS = 8;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Announced {
  readonly from: string;
  readonly text: string;
}

async function announced(client: GatewayClient): Promise<Announced[]> {
  const { messages } = await client.request("chat.history", {
    sessionKey: "main",
    limit: 1_000,
  });
  return messages.flatMap((message) => {
    const from = message.role === "user" ? message.provenance : undefined;
    if (from?.kind !== "inter_session" || from.sourceTool !== "sessions_spawn") return [];
    return [{ from: from.sourceSessionKey, text: textOf(message) }];
  });
}

/** Sends the message. If it is sent again with the same key, it is accepted only once. */
async function order(client: GatewayClient, idempotencyKey: string): Promise<void> {
  await client.call("chat.send", { sessionKey: "main", message: TASK, idempotencyKey });
}

interface Delivery {
  readonly kind: string;
  readonly state: string;
  readonly text: string;
}

async function deliveries(client: GatewayClient): Promise<Delivery[]> {
  const page = await client.request("deliveries.list", { limit: 200 });
  return page.deliveries.filter(({ kind }) => kind === "announce");
}

/** Waits until every job is announced and delivered, or the time limit is reached. */
async function settled(client: GatewayClient): Promise<Announced[]> {
  const from = performance.now();
  for (;;) {
    const found = await announced(client);
    const done =
      found.length >= CHILDREN &&
      (await deliveries(client)).filter(({ state }) => state !== "pending").length >= CHILDREN;
    if (done || performance.now() - from > ROUND_MAX_MS) return found;
    await pause(ASKED_EVERY_MS);
  }
}

/** I4: checks that each child is announced once, and that each result and each text is delivered once. */
async function expectFiftyResults(client: GatewayClient): Promise<void> {
  const found = await settled(client);
  const children = new Set(found.map(({ from }) => from));
  expect({ announcements: found.length, children: children.size }).toEqual({
    announcements: CHILDREN,
    children: CHILDREN,
  });
  const results = found.map(({ text }) => /^Status: ok\nResult: result (\d+) is there\n/.exec(text)?.[1]);
  expect(results.toSorted()).toEqual(Array.from({ length: CHILDREN }, (_, at) => String(at + 1)).toSorted());
  const sent = await deliveries(client);
  expect(sent.map(({ state }) => state)).toEqual(Array.from({ length: CHILDREN }, () => "sent"));
  expect(new Set(sent.map(({ text }) => text))).toEqual(new Set(found.map(({ text }) => text)));
  const { sessions } = await client.request("sessions.list", {
    spawnedBy: "agent:main:main",
    includeArchived: true,
    limit: 1_000,
  });
  expect(new Set(sessions.map(({ key }) => key))).toEqual(children);
}

/** Measures an undisturbed round, so that random kills fall inside a round. */
async function roundMs(): Promise<number> {
  const gateway = await startProcess({ config: CONFIG });
  const client = await gateway.connect();
  const from = performance.now();
  await order(client, "one");
  await expectFiftyResults(client);
  const took = performance.now() - from;
  await gateway.end("SIGKILL");
  return took;
}

async function killed(gateway: GatewayProcess, afterMs: number): Promise<void> {
  const client = await gateway.connect();
  // This request may fail when the process dies.
  void order(client, "one").catch(() => {});
  await pause(afterMs);
  await gateway.end("SIGKILL");
}

test("I2, I4: fifty sub-agents give fifty announcements, each once, even if the process is killed at any moment", async () => {
  const seed = process.env.PARLEY_SEED ?? String(Date.now());
  const luck = dice(`${seed} kills`);
  const withinMs = await roundMs();
  for (let at = 0; at < KILLS; at += 1) {
    const afterMs = Math.round(((at + luck.below(1_000) / 1_000) / KILLS) * withinMs);
    const home = homeWith(CONFIG);
    await killed(await startProcess({ home }), afterMs);
    const again = await startProcess({ home });
    const client = await again.connect();
    await order(client, "one");
    await expectFiftyResults(client).catch((error: Error) => {
      throw new Error(`SEED=${seed}, killed after ${afterMs} ms: ${error.message}`);
    });
    client.close();
    await again.end("SIGKILL");
  }
});
