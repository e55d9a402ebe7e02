// The methods `servers.list` and `servers.test`: MCP servers and the programs of ACP agents.

import { expect, test } from "vitest";
import { agentSettings } from "../../tools/app.ts";
import { badServer, httpServer, mcpWith, openWitness } from "../../tools/mcp-kit.ts";
import { openHouse } from "../kit.ts";

const SECRET = "sesame-open-7788";
const HELLO = { name: "hello", inputSchema: { type: "object" } };
const TOKENS = [
  { token: "partial-token-of-a-test", role: "operator", scopes: ["operator.admin"], sessions: ["agent:*"] },
  { token: "reader-token-of-a-test", role: "operator", scopes: ["operator.read"] },
] as const;
const [PARTIAL, READER] = TOKENS;

/** Opens a gateway with three MCP servers: one works, one fails, one is never reached. */
async function openServers() {
  const witness = await openWitness();
  const tools = [HELLO, { name: "broken", inputSchema: { type: "string" } }];
  const good = badServer("good", { witness: witness.port, tools }, { agents: ["main"] });
  const bad = badServer("bad", { witness: witness.port, lastWords: `the key ${SECRET} is refused` });
  const far = httpServer("far", `http://u:${SECRET}@127.0.0.1:1/${SECRET}?key=${SECRET}`, {
    headers: { authorization: `Bearer ${SECRET}` },
  });
  const house = await openHouse({
    choices: {
      tools: {
        mcp: mcpWith([good, { ...bad, reach: { ...bad.reach, env: { KEY: SECRET } } as never }, far]),
      },
    },
    gateway: { tokens: [...TOKENS] },
  });
  return { house, witness, client: await house.client() };
}

test("SV1: the list starts nothing and shows no argument, header or part of an address that may be a secret", async () => {
  const { client, witness } = await openServers();
  const { servers } = await client.request("servers.list", {});
  expect(servers[0]).toMatchObject({
    transport: "stdio",
    place: process.execPath,
    agents: ["main"],
    state: "idle",
  });
  expect(servers[2]).toMatchObject({
    transport: "http",
    place: "http://127.0.0.1:1",
    state: "idle",
    tools: [],
  });
  expect(JSON.stringify(servers)).not.toContain(SECRET);
  expect(JSON.stringify(servers)).not.toContain("witness");
  expect(witness.lives).toHaveLength(0);
});

test("servers.test starts a server that is not running, and lists the server's tools by name", async () => {
  const { client, witness } = await openServers();
  const row = await client.request("servers.test", { name: "good" });
  expect(row).toMatchObject({
    name: "good",
    state: "ready",
    tools: ["hello"],
    leftOut: [{ tool: "broken" }],
  });
  expect(await client.request("servers.test", { name: "good" })).toMatchObject({ state: "ready" });
  expect((await client.request("servers.list", {})).servers[0]).toEqual(row);
  expect(witness.lives).toHaveLength(1);
  await expect(client.request("servers.test", { name: "god" })).rejects.toMatchObject({
    message: expect.stringContaining("configured: good, bad, far"),
  });
});

test("a server that fails is tested again at once, and its reason is shown without its secrets", async () => {
  const { client, witness } = await openServers();
  for (const _ of ["first", "during the pause"]) {
    const before = witness.lives.length;
    await expect(client.request("servers.test", { name: "bad" })).rejects.toMatchObject({
      details: { code: "mcp_unavailable" },
      message: expect.stringMatching(/did not start: .*it said: the key \[redacted\] is refused/),
    });
    expect(witness.lives.length).toBeGreaterThan(before);
  }
  const { servers } = await client.request("servers.list", {});
  expect(servers[1]).toMatchObject({
    state: "down",
    lastError: expect.any(String),
    backoffUntil: expect.any(Number),
  });
  expect(JSON.stringify(servers)).not.toContain(SECRET);
});

test("I9: channels.status shows the state and the errors of servers only to a token that covers every session", async () => {
  const { house, client } = await openServers();
  await client.request("servers.test", { name: "good" });
  await client.request("servers.test", { name: "bad" }).catch(() => {});
  const stateSeenBy = async (token: string) => {
    const { channels } = await (await house.client({ token })).request("channels.status", {});
    return channels.filter(({ kind }) => kind === "mcp");
  };
  expect(await stateSeenBy(READER.token)).toMatchObject([
    { id: "mcp:good", state: "ready", tools: 1 },
    { id: "mcp:bad", state: "down", lastError: expect.any(String) },
    { id: "mcp:far", state: "idle" },
  ]);
  const hidden = { kind: "mcp", configured: true, ok: true, state: "configured" };
  expect(await stateSeenBy(PARTIAL.token)).toEqual(
    ["good", "bad", "far"].map((name) => ({ id: `mcp:${name}`, ...hidden })),
  );
});

test("an ACP agent is listed with its program and its newest failure", async () => {
  const runtime = {
    ...{ type: "acp", command: ["/opt/coder", "--key", SECRET], env: {}, permissions: "deny" },
    ...{ askSeconds: 60, sessionTools: true, idleSeconds: 60 },
  } as const;
  const house = await openHouse({
    choices: { agents: [agentSettings("main"), agentSettings("coder", { runtime: runtime as never })] },
    play: ({ run }) => {
      throw new Error(`no ${run.input.text}`);
    },
  });
  const client = await house.client();
  for (const [agentId, message] of [
    ["coder", "first"],
    ["coder", "second"],
    ["main", "third"],
  ] as const)
    await client.agent({ agentId, message, idempotencyKey: message }).done.catch(() => {});
  const { agents } = await client.request("servers.list", {});
  const sessionKey = "agent:coder:main";
  expect(agents).toEqual([
    {
      ...{ agentId: "coder", program: "/opt/coder", sessions: [] },
      lastFailure: { sessionKey, atMs: expect.any(Number), error: "no second" },
    },
  ]);
});
