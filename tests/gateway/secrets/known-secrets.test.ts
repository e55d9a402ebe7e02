// I14: secrets that look like ordinary words are redacted everywhere if the configuration contains them or
// the gateway generated them.

import { expect, test } from "vitest";
import { connect } from "../../../src/contract/client/node.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { TOKEN } from "../../kit/process/fleet.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";

/** Words with dashes, which no pattern for secrets matches. */
const HOOK_TOKEN = "plain-words-for-hooks-only";
const READER_TOKEN = "plain-words-for-a-reader";

const CONFIG = {
  gateway: {
    port: 0,
    auth: {
      token: TOKEN,
      tokens: [{ token: READER_TOKEN, role: "operator", scopes: ["operator.read"] }],
    },
  },
  hooks: { enabled: true, token: HOOK_TOKEN },
  agents: { list: [{ id: "main", default: true }, { id: "research" }] },
  tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
};

const SECRETS = [TOKEN, HOOK_TOKEN, READER_TOKEN];
const SAID = `the file says ${SECRETS.join(" and ")} zebra`;

async function reader(url: string) {
  const client = await connect({ url, token: READER_TOKEN, reconnect: false, scopes: ["operator.read"] });
  cleanup(() => client.close());
  return client;
}

test("I14: a configured token that an agent has read is in no answer to others or to a read-only token", async () => {
  const gateway = await startProcess({ config: CONFIG });
  const admin = await gateway.connect();
  const { runId } = admin.agent({ message: SAID, sessionKey: "agent:main:main", idempotencyKey: "said" });
  await admin.agent({ message: SAID, sessionKey: "agent:main:main", idempotencyKey: "again" }).done;
  await admin.request("sessions.patch", { key: "agent:main:main", label: `of ${HOOK_TOKEN}` });
  const asked: unknown[] = [];
  const low = await reader(gateway.url);
  const key = "agent:main:main";
  asked.push(await low.request("sessions.list", { includeDerivedTitles: true, includeLastMessage: true }));
  asked.push(await low.request("sessions.preview", { keys: [key], maxChars: 4_000 }));
  asked.push(await low.request("chat.history", { sessionKey: key, includeRuns: true }));
  asked.push(await low.request("agent.wait", { runId: await runId }));
  const { chains } = await low.request("chains.list", {});
  for (const { chainId } of chains) asked.push(await low.request("chains.get", { chainId }));
  const tools = [
    ["sessions_list", { messageLimit: 5 }],
    ["sessions_history", { sessionKey: key, includeTools: true }],
    ["sessions_search", { query: "zebra" }],
    ["session_status", { sessionKey: key }],
  ] as const;
  for (const [name, args] of tools) {
    const call = { name, sessionKey: "agent:research:main", arguments: args };
    asked.push(await admin.request("tools.invoke", call));
  }
  const text = JSON.stringify(asked);
  expect(text).toContain("[redacted]");
  expect(text).toContain("zebra");
  for (const secret of SECRETS) expect(text).not.toContain(secret);
});

test("I14: searching for the beginning of a configured token finds nothing", async () => {
  const gateway = await startProcess({ config: CONFIG });
  const admin = await gateway.connect();
  await admin.agent({ message: SAID, sessionKey: "agent:main:main", idempotencyKey: "said" }).done;
  const hits = async (query: string): Promise<number> => {
    const found = await admin.request("tools.invoke", { name: "sessions_search", arguments: { query } });
    return JSON.stringify(found).split("messageId").length - 1;
  };
  expect(await hits("zebra")).toBeGreaterThan(0);
  expect(await hits("hooks")).toBe(0);
});
