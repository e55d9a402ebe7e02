// Two real gateways as peers, which are killed at random moments while an agent sends messages from one to
// the other. No message may be lost or arrive twice, and each sender gets its answer once.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { dice } from "../kit/dice.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { TOKEN } from "../kit/process/fleet.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";

const SEED = process.env.PARLEY_SEED ?? String(Date.now());
const MESSAGES = 24;
const FAR = "peer:lab/agent:research:main";
const HERE = "agent:main:main";

async function start(agent: string, allow: readonly string[]): Promise<GatewayProcess> {
  const server = await startModelServer(
    ({ lastUserText }) => `got ${/message \d+\./.exec(lastUserText)?.[0]}`,
  );
  cleanup(() => server.close());
  const { id: _, ...provider } = server.provider("openai-completions");
  return startProcess({
    config: {
      models: { providers: { one: provider } },
      agents: { defaults: { model: "one/test-model" }, list: [{ id: agent, default: true }] },
      tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow } },
      gateway: { port: await freePort(), auth: { token: TOKEN } },
    },
  });
}

/** Returns the texts of a session, of one role. */
async function textsOf(client: GatewayClient, sessionKey: string, role: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey, limit: 1_000 });
  return messages.filter((message) => message.role === role).map(textOf);
}

test(`I2, I4: with kills on both sides, each message to a peer arrives once and is answered once (seed ${SEED})`, async () => {
  process.stdout.write(`SEED=${SEED}\n`);
  const random = dice(SEED);
  let near = await start("main", ["main", "peer:lab/*"]);
  let far = await start("research", ["research", "peer:desk/*"]);
  let client = await near.connect();
  const { code = "" } = await (await far.connect()).request("peers.add", {
    name: "desk",
    agents: ["research"],
  });
  await client.request("peers.add", { name: "lab", url: far.httpUrl, code });
  const send = (count: number) =>
    client.call("tools.invoke", {
      ...{ name: "sessions_send", sessionKey: HERE, idempotencyKey: `send ${count}` },
      arguments: { sessionKey: FAR, message: `message ${count}.`, timeoutSeconds: 0 },
    });
  for (let count = 0; count < MESSAGES; count += 1) {
    const sent = send(count).catch(() => undefined);
    if (random.chance(0.3)) {
      if (random.chance(0.5)) await sent;
      await near.end("SIGKILL");
      near = await startProcess({ home: near.home });
      client = await near.connect();
    }
    if (random.chance(0.3)) {
      await far.end("SIGKILL");
      far = await startProcess({ home: far.home });
    }
    // The same call again: it sends the message only if the first one was not accepted.
    await sent;
    await send(count);
  }
  const expected = Array.from({ length: MESSAGES }, (_, count) => `got message ${count}.`);
  await expect.poll(() => textsOf(client, FAR, "assistant"), { timeout: 120_000 }).toEqual(expected);
  const there = await far.connect();
  const arrived = await textsOf(there, "agent:research:main", "user");
  expect(arrived.map((text) => /message \d+\./.exec(text)?.[0])).toEqual(
    Array.from({ length: MESSAGES }, (_, count) => `message ${count}.`),
  );
  expect(await textsOf(there, "agent:research:main", "assistant")).toEqual(expected);
  const notices = async () =>
    (await textsOf(client, HERE, "user")).filter((text) => text.includes("got message"));
  await expect.poll(async () => (await notices()).length, { timeout: 60_000 }).toBe(MESSAGES);
}, 600_000);
