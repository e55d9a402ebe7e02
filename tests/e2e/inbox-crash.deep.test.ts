// Kills a real gateway while an MCP client reads, acknowledges or answers a message in its inbox. No state
// may be lost or repeated, and the answer must arrive once.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { optional } from "../../src/core/optional.ts";
import type { Receipt, ReceiptState } from "../../src/core/shapes/run.ts";
import { type GatewayProcess, homeWith, startProcess } from "../kit/process/gateway-process.ts";

const ASKER = "agent:main:main";
const DESK = "agent:main:mcp:desk";
const ORDER: readonly ReceiptState[] = ["queued", "offered", "in_turn", "answered"];

/** Calls a tool as the client that owns the inbox. Rejects if the gateway dies first. */
async function ownCall(
  gateway: GatewayProcess,
  name: string,
  args: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${gateway.httpUrl}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${gateway.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2025-11-25",
      "x-parley-handle": "desk",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  // The answer is an event of a stream, or plain JSON.
  const found = /\{.*\}/.exec(await response.text())?.[0] ?? "{}";
  const { result } = JSON.parse(found) as { result: { content: { text: string }[] } };
  return JSON.parse(result.content[0]?.text ?? "") as Record<string, unknown>;
}

const asOperator = <T>(client: GatewayClient, name: string, args: Record<string, unknown>): Promise<T> =>
  client.call<T>("tools.invoke", { name, arguments: args, sessionKey: ASKER });

const receiptOf = (client: GatewayClient, messageId: string): Promise<Receipt> =>
  asOperator<Receipt>(client, "session_status", { messageId });

/** Returns the steps of a client with one message, and the message's state after each step. */
function stepsFor(messageId: string, text: string, after: unknown) {
  const answer = { sessionKey: ASKER, message: text, timeoutSeconds: 0 };
  return [
    { state: "offered", name: "sessions_inbox", args: { waitSeconds: 20, ...optional({ after }) } },
    { state: "in_turn", name: "sessions_inbox", args: { ack: [messageId] } },
    { state: "answered", name: "sessions_send", args: answer },
  ] as const;
}

test("I2, I4: if the gateway is killed at any step of an inbox, no state is lost or repeated, and the answer arrives once", async () => {
  const home = homeWith({ tools: { sessions: { visibility: "all" } } });
  let gateway = await startProcess({ home });
  let client = await gateway.connect();
  const answers: string[] = [];
  for (const killed of ["offered", "in_turn", "answered"] as const) {
    for (const moment of ["before the answer", "after the answer"] as const) {
      const text = `the answer: killed at ${killed}, ${moment}`;
      answers.push(text);
      const { nextAfter } = await ownCall(gateway, "sessions_inbox", {});
      const question = { sessionKey: DESK, message: `a question for ${text}`, timeoutSeconds: 0 };
      const { messageId } = await asOperator<{ messageId: string }>(client, "sessions_send", question);
      let before = await receiptOf(client, messageId);
      const stateNow = async () => (await receiptOf(client, messageId)).state;
      for (const { state, name, args } of stepsFor(messageId, text, nextAfter)) {
        if (state === killed) {
          const asked = ownCall(gateway, name, args).catch(() => undefined);
          if (moment === "after the answer") expect(await asked).not.toHaveProperty("error");
          await gateway.end("SIGKILL");
          await asked;
          gateway = await startProcess({ home });
          client = await gateway.connect();
        }
        const found = await receiptOf(client, messageId);
        expect(found.times).toMatchObject(before.times);
        // The state `offered` is recorded after the answer was sent, so a crash may lose it. The next read
        // records the state again.
        const isSure = state !== "offered" && state === killed && moment === "after the answer";
        if (isSure) expect(found.state).toBe(state);
        if (ORDER.indexOf(found.state) < ORDER.indexOf(state)) await ownCall(gateway, name, args);
        const reached = async () => {
          const now = await stateNow();
          // A notice about an earlier answer may have ended the wait before the message was in the inbox.
          if (state === "offered" && now === "queued") await ownCall(gateway, name, args);
          return now;
        };
        await expect.poll(reached).toBe(state);
        before = await receiptOf(client, messageId);
      }
      expect(Object.keys(before.times)).toEqual(["queued", "offered", "in_turn", "answered"]);
    }
  }
  const { messages } = await client.request("chat.history", { sessionKey: ASKER, limit: 200 });
  const said = messages.flatMap(({ role, content }) => (role === "user" ? [JSON.stringify(content)] : []));
  for (const text of answers) expect(said.filter((one) => one.includes(text))).toHaveLength(1);
  expect(said).toHaveLength(answers.length);
});
