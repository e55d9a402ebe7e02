// A question about labels at an MCP client whose token covers only some sessions.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { openHouse } from "../gateway/kit.ts";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { doing, talkingModel } from "../kit/talking-model.ts";
import { agentSettings } from "../tools/app.ts";

const TOKEN = "a-token-of-some-sessions-012345";

test("I13: an MCP client with a token for some sessions sees no payload and no source, and is offered no consent", async () => {
  const workspace = temporaryFolder();
  writeFileSync(join(workspace, "notes.md"), "My secret is secret-4711.");
  const tools = { allow: [], deny: [], exec: { approval: "never" as const } };
  const house = await openHouse({
    model: talkingModel(),
    choices: {
      agents: [agentSettings("main", { workspace, tools })],
      tools: { visibility: "all" },
    },
    gateway: {
      tokens: [
        {
          token: TOKEN,
          role: "operator",
          scopes: ["operator.admin"],
          sessions: ["agent:main:mcp:*", "agent:main:visitor*"],
        },
      ],
    },
  });
  const asked: string[] = [];
  const client = new Client({ name: "desk", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  cleanup(() => client.close());
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    asked.push(JSON.stringify(request));
    return { action: "decline" };
  });
  const url = new URL(`${house.http}/mcp?handle=desk`);
  const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };
  await client.connect(
    new StreamableHTTPClientTransport(url, { requestInit }) as Parameters<Client["connect"]>[0],
  );
  const limited = await house.client({ token: TOKEN });
  const { runId } = await limited.request("chat.send", { sessionKey: "agent:main:visitor", message: "hi" });
  await limited.request("agent.wait", { runId, timeoutMs: 20_000 });
  const message = doing(
    { name: "read", arguments: { path: "notes.md" } },
    { name: "exec", arguments: { command: "echo secret-4711" } },
  );
  await client.callTool({
    name: "sessions_send",
    arguments: { sessionKey: "agent:main:visitor", message, timeoutSeconds: 60 },
  });
  expect(asked.join()).not.toMatch(/secret-4711|notes\.md|allow once|in this chain/);
});
