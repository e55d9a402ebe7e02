// The tool `nodes` in a real run on a real gateway, with devices that answer over real sockets.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { answer, asked, joinedNode, NODE_TOKENS, pairedDevice } from "../../gateway/clients/devices.ts";
import { type HouseOptions, openHouse } from "../../gateway/kit.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings, type Choices } from "../../tools/app.ts";

const house = (choices: Choices = {}, more: HouseOptions = {}) =>
  openHouse({ gateway: { tokens: NODE_TOKENS }, choices, ...more });

const call = (client: GatewayClient, args: object) =>
  client.request("tools.invoke", { name: "nodes", arguments: { ...args } });

test("TN1: without a paired device the tool is not offered, and the error of a call says why", async () => {
  const one = await house();
  const client = await one.client();
  const names = async () => (await client.request("tools.catalog", {})).tools.map(({ name }) => name);
  expect(await names()).not.toContain("nodes");
  expect(await call(client, { action: "list" })).toMatchObject({
    status: "error",
    code: "node_not_found",
    error: "no node is paired with this gateway",
  });
  await pairedDevice(one);
  expect(await names()).toContain("nodes");
});

test("TN1: nodes.enabled and a sandbox can deny the tool, and the error names the setting", async () => {
  const off = await house({ features: { nodes: { enabled: false } } });
  const client = await off.client();
  expect(await call(client, { action: "list" })).toMatchObject({
    code: "tool_denied",
    error: expect.stringContaining("nodes.enabled is false"),
  });
  const base = agentSettings("main");
  const agents = [{ ...base, sandbox: { ...base.sandbox, mode: "all" as const } }];
  for (const allowSandboxed of [false, true]) {
    const boxed = await house({ agents, features: { nodes: { allowSandboxed } } });
    await pairedDevice(boxed);
    const within = await boxed.client();
    const result = await call(within, { action: "list" });
    if (allowSandboxed) expect(result).toMatchObject({ count: 1 });
    else
      expect(result).toMatchObject({
        code: "tool_denied",
        error: expect.stringContaining("nodes.allowSandboxed is not true"),
      });
  }
});

test("a run lists nodes, describes one by its name and invokes it, and the transcript contains the answer", async () => {
  const one = await house({}, { model: talkingModel() });
  const key = await pairedDevice(one, undefined, { name: "attic" });
  const raw = await joinedNode(one, key, { commands: ["exec", "camera.snap"] });
  const client = await one.client();
  const params = { command: ["uptime"] };
  const message = doing(
    { name: "nodes", arguments: { action: "list" } },
    { name: "nodes", arguments: { action: "describe", node: "ATTIC" } },
    { name: "nodes", arguments: { action: "invoke", command: "exec", params, timeoutSeconds: 7 } },
    { name: "nodes", arguments: { action: "invoke", node: "attic", command: "camera.snap" } },
  );
  const run = client.agent({ message });
  const request = await asked(raw);
  expect(request).toMatchObject({ command: "exec", timeoutMs: 7_000 });
  expect(request.idempotencyKey).toMatch(/^tool:/);
  expect(JSON.parse(request.paramsJSON)).toEqual(params);
  answer(raw, request, { ok: true, payloadJSON: '{"stdout":"up 3 days"}' });
  expect((await run.done).status).toBe("ok");
  const { messages } = await client.request("chat.history", { sessionKey: "main" });
  const results = messages
    .filter(({ role }) => role === "toolResult")
    .map(({ content }) => JSON.parse((content[0] as { text: string }).text));
  const attic = { id: key.id, name: "attic", connected: true, commands: ["exec"] };
  expect(results).toMatchObject([
    { count: 1, nodes: [attic] },
    { ...attic, notAllowed: ["camera.snap"], sessionKey: `node-${key.id}` },
    { status: "ok", node: "attic", command: "exec", result: { stdout: "up 3 days" } },
    { status: "forbidden", code: "node_command_denied" },
  ]);
});

test("the error of a wrong call names the valid values", async () => {
  const one = await house();
  const [attic, cellar] = [
    await pairedDevice(one, undefined, { name: "attic" }),
    await pairedDevice(one, undefined, { name: "cellar" }),
  ];
  const client = await one.client();
  const wrong: [object, string, RegExp][] = [
    [{ action: "reboot" }, "invalid_argument", /list, describe, invoke/],
    [{ action: "describe" }, "invalid_argument", /several nodes/],
    [{ action: "describe", node: "garage" }, "node_not_found", /no paired node "garage"/],
    [{ action: "describe", node: attic.id.slice(0, 3) }, "node_not_found", /no paired node/],
    [{ action: "invoke", node: "attic" }, "invalid_argument", /command is required/],
    [
      { action: "invoke", node: "attic", command: "exec", timeoutSeconds: 0 },
      "invalid_argument",
      /at least 1/,
    ],
    [{ action: "invoke", node: "attic", command: "exec" }, "node_unavailable", /not connected/],
    [{ action: "invoke", node: "attic", command: "format" }, "node_command_denied", /it offers exec, notify/],
    [{ action: "list", nod: "x" }, "unknown_argument", /did you mean "node"/],
  ];
  for (const [args, code, words] of wrong) {
    const result = await call(client, args);
    expect({ args, code: result.code }).toEqual({ args, code });
    expect(result.error).toMatch(words);
  }
  expect(await call(client, { action: "describe", node: cellar.id.slice(0, 12) })).toMatchObject({
    name: "cellar",
  });
  await client.request("node.rename", { nodeId: cellar.id, displayName: "attic" });
  expect(await call(client, { action: "describe", node: "attic" })).toMatchObject({
    code: "invalid_argument",
    error: expect.stringContaining("matches 2 nodes"),
  });
});

test("if a run is aborted, its call on the node is cancelled", async () => {
  const one = await house({}, { model: talkingModel() });
  const raw = await joinedNode(one, await pairedDevice(one));
  const client = await one.client();
  const message = doing({ name: "nodes", arguments: { action: "invoke", command: "exec" } });
  const run = client.agent({ message });
  const request = await asked(raw);
  await client.request("chat.abort", { sessionKey: "main", runId: run.runId });
  const cancelled = await raw.next(({ event }) => event === "node.invoke.cancel");
  expect(cancelled.payload.id).toBe(request.id);
  expect((await run.done).code).toBe("run_aborted");
});
