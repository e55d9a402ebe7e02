// A real gateway with a sandboxed agent: the files and addresses that its commands can reach, and runs
// without a backend.

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, expect } from "vitest";
import { textOf } from "../../src/core/shapes/message.ts";
import { test } from "../kit/deep.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { call } from "../kit/model-server/steps.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { whyNot } from "../sandbox/kit.ts";

const MODES = { sandbox: { mode: "all", backend: "bubblewrap" } };

let reason: string | undefined;
beforeAll(async () => {
  reason = await whyNot("bubblewrap");
});

/** Starts a gateway whose agent runs one command, and returns the output. */
async function commandIn(config: Record<string, unknown>, command: (home: string, port: number) => string) {
  let script = "true";
  const server = await startModelServer((request) =>
    request.toolResults.length > 0 ? (request.toolResults.at(-1) ?? "") : [call("exec", { command: script })],
  );
  cleanup(() => server.close());
  const { id: _, ...provider } = server.provider("openai-completions");
  const gateway = await startProcess({
    config: {
      ...config,
      models: { providers: { one: provider } },
      agents: { ...(config.agents as object), list: [{ id: "main", model: "one/test-model" }] },
    },
  });
  script = command(gateway.home, Number(new URL(gateway.httpUrl).port));
  const client = await gateway.connect();
  const idempotencyKey = crypto.randomUUID();
  await client.call("chat.send", { sessionKey: "main", message: "go", idempotencyKey });
  const end = await client.request("agent.wait", {
    runId: idempotencyKey,
    timeoutMs: 30_000,
  });
  const { messages } = await client.request("chat.history", { sessionKey: "main" });
  return { gateway, client, end, server, said: messages.map(textOf).join("\n") };
}

test("a sandboxed command works in its workspace, and cannot reach token, store, home or the gateway's port", async (context) => {
  if (reason !== undefined) context.skip(reason);
  const { gateway, end, said } = await commandIn({ agents: { defaults: MODES } }, (home, port) =>
    [
      "echo made > here.txt && cat here.txt",
      `cat ${home}/.parley/parley.json5 || echo no-config`,
      `ls ${home}/.parley/state || echo no-store`,
      `(exec 3<>/dev/tcp/127.0.0.1/${port}) || echo no-port`,
      'echo "token: $PARLEY_TOKEN."',
    ].join("\n"),
  );
  expect(end).toMatchObject({ status: "ok" });
  for (const fact of ["made", "no-config", "no-store", "no-port", "token: ."]) expect(said).toContain(fact);
  expect(said).not.toContain(gateway.token);
  expect(readFileSync(join(gateway.home, ".parley", "workspace", "here.txt"), "utf8")).toBe("made\n");
});

test("if an operator calls a tool for a sandboxed session, the call is sandboxed, too", async (context) => {
  if (reason !== undefined) context.skip(reason);
  const { gateway, client } = await commandIn({ agents: { defaults: MODES } }, () => "true");
  const result = await client.request("tools.invoke", {
    name: "exec",
    arguments: { command: `cat ${gateway.home}/.parley/parley.json5 || echo contained` },
    sessionKey: "main",
  });
  expect(JSON.stringify(result)).toContain("contained");
  expect(JSON.stringify(result)).not.toContain(gateway.token);
});

test("without a usable backend the run is refused with a clear error and never runs outside a sandbox", async () => {
  const sandbox = { mode: "all", backend: "docker", image: "parley-has-no-such-image" };
  const { end, server } = await commandIn({ agents: { defaults: { sandbox } } }, () => "echo bare");
  expect(end).toMatchObject({ status: "error", code: "run_failed" });
  expect(String(end.error)).toMatch(/docker/);
  expect(server.requests).toEqual([]);
});

/** Returns a command that requests /healthz over a raw TCP connection and prints the answer. */
const dial = (port: number, host = "127.0.0.1"): string =>
  [
    `exec 3<>/dev/tcp/${host}/${port} 2>/dev/null || { echo "no connection"; exit 0; }`,
    'printf "GET /healthz HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n" >&3',
    "answer=$(timeout 10 cat <&3)",
    "echo \"answer: <${answer%%$'\\r'*}>\"",
  ].join("\n");

test.deep(
  "network: true gives no access to this machine's loopback addresses or to the gateway's port",
  async (context) => {
    if (reason !== undefined) context.skip(reason);
    const other = createServer((_, response) => response.end("from another server")).listen(0, "127.0.0.1");
    await once(other, "listening");
    cleanup(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const sandbox = { mode: "all", backend: "bubblewrap", network: true };
    const { gateway, client, end, said } = await commandIn({ agents: { defaults: { sandbox } } }, (_, own) =>
      [dial(port), dial(own), dial(own, "127.0.0.2")].map((one) => `(${one})`).join("\n"),
    );
    expect(end).toMatchObject({ status: "ok" });
    expect(said).toContain("no connection");
    expect(said).not.toContain("answer:");
    // Other clients are served while a command runs.
    const slow = client.call("tools.invoke", {
      name: "exec",
      arguments: { command: "touch begun; until [ -e go ]; do sleep 0.02; done" },
      sessionKey: "main",
    });
    const begun = join(gateway.home, ".parley", "workspace", "begun");
    while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 20));
    for (let tries = 0; tries < 5; tries += 1)
      expect((await fetch(`${gateway.httpUrl}/healthz`)).status).toBe(200);
    await client.call("tools.invoke", {
      name: "write",
      arguments: { path: "go", content: "" },
      sessionKey: "main",
    });
    await slow;
  },
  60_000,
);
