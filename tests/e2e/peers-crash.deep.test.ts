// Two real gateways as peers, which are killed at random moments while the agents of both write to each other.
// No message, and no file of an answer, may be lost or arrive twice, and each sender gets its answer once.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { dice } from "../kit/dice.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { call } from "../kit/model-server/steps.ts";
import { TOKEN } from "../kit/process/fleet.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";
import { STORES } from "../kit/process/grounds.ts";

const SEED = process.env.PARLEY_SEED ?? String(Date.now());
const MESSAGES = 10;
const AGENTS = { desk: "main", lab: "research" };

type Name = keyof typeof AGENTS;

interface Side {
  readonly name: Name;
  readonly other: Name;
  /** The session that sends messages to the other side. */
  readonly sender: string;
  /** The session that receives messages from the other side, by its key over there. */
  readonly target: string;
  gateway: GatewayProcess;
}

async function start(name: Name, other: Name, store: Record<string, unknown>): Promise<Side> {
  const server = await startModelServer(({ lastUserText, toolResults }) => {
    const text = message(lastUserText);
    if (!text.endsWith(`of ${other}.`) || toolResults.length === 2) return `got ${text}`;
    const path = `${text}txt`;
    return [toolResults.length === 0 ? call("write", { path, content: text }) : call("send_file", { path })];
  });
  cleanup(() => server.close());
  const { id: _, ...provider } = server.provider("openai-completions");
  const agent = AGENTS[name];
  const allow = [agent, `peer:${other}/*`];
  const gateway = await startProcess({
    config: {
      ...store,
      models: { providers: { one: provider } },
      agents: { defaults: { model: "one/test-model" }, list: [{ id: agent, default: true }] },
      tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow } },
      gateway: { port: await freePort(), auth: { token: TOKEN } },
    },
  });
  const target = `peer:${other}/agent:${AGENTS[other]}:main`;
  return { name, other, sender: `agent:${agent}:main`, target, gateway };
}

const message = (text: string): string => /message \d+ of \w+\./.exec(text)?.[0] ?? "";

/** Returns the texts of a session, of one role. */
async function textsOf(client: GatewayClient, sessionKey: string, role: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey, limit: 1_000 });
  return messages
    .filter((one) => one.role === role)
    .map(textOf)
    .filter((text) => text !== "");
}

async function kill(side: Side): Promise<void> {
  await side.gateway.end("SIGKILL");
  side.gateway = await startProcess({ home: side.gateway.home });
}

async function send({ name, sender, target, gateway }: Side, count: number): Promise<void> {
  const client = await gateway.connect();
  await client.call("tools.invoke", {
    ...{ name: "sessions_send", sessionKey: sender, idempotencyKey: `send ${count}` },
    arguments: { sessionKey: target, message: `message ${count} of ${name}.`, timeoutSeconds: 0 },
  });
  client.close();
}

/** Checks that all messages of one side arrived once, in order, and that each was answered once. */
async function checkArrived({ name, sender, target, gateway }: Side, there: GatewayClient): Promise<void> {
  const sent = Array.from({ length: MESSAGES }, (_, count) => `message ${count} of ${name}.`);
  const answers = sent.map((text) => `got ${text}`);
  const client = await gateway.connect();
  await expect.poll(() => textsOf(client, target, "assistant")).toEqual(answers);
  const inbox = target.slice(target.indexOf("agent:"));
  // Over there, messages of the other direction and notices of their answers are between these.
  const arrived = await textsOf(there, inbox, "user");
  expect(arrived.map(message).filter((text) => text.endsWith(`of ${name}.`))).toEqual(sent);
  const files = (await textsOf(client, target, "toolResult")).map((text) => JSON.parse(text));
  expect(files.map((file) => file.name)).toEqual(sent.map((text) => `${text}txt`));
  for (const [index, { fileId }] of files.entries()) {
    const { content = "" } = await client.request("chat.file", { sessionKey: target, fileId });
    expect(atob(content)).toBe(sent[index]);
  }
  const said = await textsOf(there, inbox, "assistant");
  expect(said.filter((text) => text.endsWith(`of ${name}.`))).toEqual(answers);
  const notices = async () =>
    (await textsOf(client, sender, "user")).filter((text) => text.includes("got message")).map(message);
  await expect.poll(notices).toHaveLength(MESSAGES);
  expect((await notices()).sort()).toEqual([...sent].sort());
}

test.each(STORES)(
  `I2, I4: on %s, with kills on both sides, each message arrives once and is answered once, with its file (seed ${SEED})`,
  async (_, newStore) => {
    process.stdout.write(`SEED=${SEED}\n`);
    const random = dice(SEED);
    const lab = await start("lab", "desk", await newStore());
    const desk = await start("desk", "lab", await newStore());
    const invite = { name: "desk", url: desk.gateway.httpUrl, agents: ["research"] };
    const { code = "" } = await (await lab.gateway.connect()).request("peers.add", invite);
    const added = { name: "lab", url: lab.gateway.httpUrl, code, agents: ["main"] };
    await (await desk.gateway.connect()).request("peers.add", added);
    for (let count = 0; count < MESSAGES; count += 1) {
      const sent = [desk, lab].map((side) => send(side, count).catch(() => {}));
      for (const side of [desk, lab]) {
        if (!random.chance(0.3)) continue;
        if (random.chance(0.5)) await Promise.all(sent);
        await kill(side);
      }
      await Promise.all(sent);
      // The same calls again: each sends its message only if the first one was not accepted.
      for (const side of [desk, lab]) await send(side, count);
    }
    await checkArrived(desk, await lab.gateway.connect());
    await checkArrived(lab, await desk.gateway.connect());
  },
);
