// Prompts of MCP clients and the completion of their arguments, with the official clients.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { oldClient } from "../../gateway/clients/mcp.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { agentSettings } from "../../tools/app.ts";

const agents = [agentSettings("main"), agentSettings("research")];
const tools = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };

async function newestClient(house: House, handle: string): Promise<Client> {
  const client = new Client({ name: handle, version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  cleanup(() => client.close());
  const url = new URL(`${house.http}/mcp?handle=${handle}`);
  const headers = { authorization: `Bearer ${TOKEN}` };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

const CLIENTS = { "2025-11-25": oldClient, "2026-07-28": newestClient };

test.each(Object.entries(CLIENTS))(
  "revision %s: the official client lists the prompts, fills them in and completes their arguments",
  async (_, open) => {
    const house = await openHouse({ choices: { agents, tools } });
    const operator = await house.client();
    await operator.request("sessions.patch", { key: "agent:research:main", label: "the library" });
    const client = await open(house, "laptop");
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(["ask", "inbox", "delegate"]);
    expect(prompts[0]?.arguments).toMatchObject([
      { name: "session", required: true },
      { name: "message", required: true },
    ]);
    const filled = await client.getPrompt({
      name: "ask",
      arguments: { session: "the library", message: 'What does "quorum" mean?' },
    });
    expect(filled.messages).toMatchObject([{ role: "user", content: { type: "text" } }]);
    const text = JSON.stringify(filled.messages[0]?.content);
    expect(text).toContain("the library");
    expect(text).toContain("quorum");
    const complete = async (prompt: string, name: string, value: string) => {
      const argument = { name, value };
      return (await client.complete({ ref: { type: "ref/prompt", name: prompt }, argument })).completion;
    };
    expect(await complete("ask", "session", "LIB")).toMatchObject({ values: ["the library"], total: 1 });
    expect((await complete("ask", "session", "agent:")).values).toContain("agent:research:main");
    expect((await complete("delegate", "agent", "M")).values).toEqual(["main"]);
    expect((await complete("ask", "message", "x")).values).toEqual([]);
  },
);

test("a missing argument, an unknown prompt and an unknown argument get a clear error", async () => {
  const house = await openHouse({ choices: { agents } });
  const client = await oldClient(house, "laptop");
  await expect(client.getPrompt({ name: "ask", arguments: { session: "main" } })).rejects.toThrow(
    "the argument message of ask is missing",
  );
  await expect(client.getPrompt({ name: "aks" })).rejects.toThrow("there are: ask, inbox, delegate");
  const argument = { name: "colour", value: "" };
  const ref = { type: "ref/prompt" as const, name: "ask" };
  await expect(client.complete({ ref, argument })).rejects.toThrow('no argument "colour"');
});

test("prompts and completions show nothing that the client may not use or see", async () => {
  const token = "the-token-of-a-narrow-client";
  const scopes = ["operator.write" as const];
  const sessions = ["agent:main:mcp:narrow*", "agent:main:main"];
  const house = await openHouse({
    choices: { agents, tools: { ...tools, filter: { allow: [], deny: ["sessions_spawn"] } } },
    gateway: { tokens: [{ token, role: "operator", scopes, sessions }] },
  });
  const client = await oldClient(house, "narrow", token);
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(["ask", "inbox"]);
  await expect(client.getPrompt({ name: "delegate", arguments: { task: "x" } })).rejects.toThrow("no prompt");
  const ref = { type: "ref/prompt" as const, name: "ask" };
  const { completion } = await client.complete({ ref, argument: { name: "session", value: "" } });
  expect(completion.values).toContain("main");
  expect(completion.values.join()).not.toContain("research");
});
