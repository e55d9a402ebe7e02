// Benchmarks conversations and sub-agents over WebSocket on a real gateway process, with a model server in
// another process that answers at once. `node bench/conversations.ts` runs only this part.

import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { optional } from "../src/core/optional.ts";
import { type Ground, keyOf, onGround } from "./ground.ts";
import { percentile, type Row, sample } from "./measure.ts";
import { modelCall } from "./runs.ts";

const TIMES = 300;
const WARM_UP = 60;
/** Number of model calls in a conversation: the first answer, the reply turns and the announcement. */
const WHOLE_CALLS = 7;
const RESET_EVERY = 20;

/** Resolves at the next matching event. */
function told(client: GatewayClient, wanted: (event: string, payload: unknown) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const off = client.onEvent(({ event, payload }) => {
      if (!wanted(event, payload)) return;
      off();
      resolve();
    });
  });
}

const isFlowEnd = (event: string, payload: unknown): boolean => {
  const { stream, data } = payload as { stream?: string; data?: { step?: string } };
  return event === "agent" && stream === "flow" && data?.step === "ended";
};

/** Returns whether the event reports a text that was delivered to the people of a session. */
const isDelivered = (event: string, payload: unknown): boolean =>
  event === "chat" && (payload as { stopReason?: string }).stopReason === "delivered";

async function invoke(client: GatewayClient, name: string, given: object): Promise<void> {
  const request = { name, arguments: { ...given }, sessionKey: keyOf(0) };
  const answer = JSON.stringify(await client.request("tools.invoke", request));
  if (!/"status":"(ok|accepted)"/.test(answer)) throw new Error(`${name}: ${answer}`);
}

async function begin(client: GatewayClient, at: number): Promise<void> {
  if (at % RESET_EVERY !== 0) return;
  for (const key of [keyOf(0), keyOf(1)]) {
    await client.request("sessions.reset", { key });
    // Sends a person's message, so that the session has a chat to which it can announce.
    await client.agent({ sessionKey: key, message: "hello", channel: "webchat" }).done;
  }
}

async function sends(client: GatewayClient): Promise<{ waited: number[]; whole: number[] }> {
  const [waited, whole]: [number[], number[]] = [[], []];
  for (let at = 0; at < WARM_UP + TIMES; at += 1) {
    await begin(client, at);
    const over = told(client, isFlowEnd);
    const from = performance.now();
    await invoke(client, "sessions_send", { sessionKey: keyOf(1), message: "hello", timeoutSeconds: 30 });
    const answered = performance.now() - from;
    await over;
    if (at < WARM_UP) continue;
    waited.push(answered);
    whole.push(performance.now() - from);
  }
  return { waited, whole };
}

async function spawns(client: GatewayClient): Promise<{ accepted: number[]; announced: number[] }> {
  const [accepted, announced]: [number[], number[]] = [[], []];
  for (let at = 0; at < WARM_UP + TIMES; at += 1) {
    await begin(client, at);
    const over = told(client, isDelivered);
    const from = performance.now();
    await invoke(client, "sessions_spawn", { task: "say done", cleanup: "delete" });
    const taken = performance.now() - from;
    await over;
    if (at < WARM_UP) continue;
    accepted.push(taken);
    announced.push(performance.now() - from);
  }
  return { accepted, announced };
}

async function rowsOf(ground: Ground): Promise<Row[]> {
  const client = await ground.all();
  const call = percentile(await sample(TIMES, WARM_UP, () => modelCall(ground.modelUrl)), 0.5);
  const { waited, whole } = await sends(client);
  const { accepted, announced } = await spawns(client);
  client.close();
  const row = (name: string, samples: readonly number[], target?: string): Row => ({
    name,
    size: "one at a time, over WebSocket",
    unit: "ms",
    samples,
    ...optional({ target }),
  });
  const above = waited.map((ms) => ms - call);
  return [
    row("`sessions_send`, waited reply: above its model call (its p50)", above, "< 8"),
    row(
      `\`sessions_send\` until the flow has ended: ${WHOLE_CALLS} runs in turn, model calls included`,
      whole,
    ),
    row("`sessions_spawn` -> accepted", accepted),
    row("`sessions_spawn` -> announced and delivered: two runs, model calls included", announced),
  ];
}

export async function conversations(): Promise<Row[]> {
  return onGround({ sessions: 2 }, rowsOf);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { machine, table } = await import("./measure.ts");
  console.log(`${machine()}\n\n${table(await conversations())}`);
}
