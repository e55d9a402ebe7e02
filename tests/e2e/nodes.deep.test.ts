// A real gateway process and a real `parley node` process over a real socket: pairing, allowed and refused
// programs, a node that dies during a command and returns, and unpairing.

import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { launch } from "../kit/process/fleet.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { PATIENCE_MS } from "../kit/until.ts";

const NODE_TOKEN = "a-token-that-is-for-nodes";

interface NodeProcess {
  readonly home: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  said(): string;
}

function startNode(url: string, args: readonly string[], home = temporaryFolder()): NodeProcess {
  const child = launch(home, ["--url", url, "node", "run", ...args], [], { PARLEY_TOKEN: NODE_TOKEN });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  cleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
  });
  return { home, child, exited, said: () => said };
}

/** On a busy machine programs start slowly. A node reconnects after ten seconds. */
const patient = { timeout: PATIENCE_MS };

async function letIn(client: GatewayClient, node: NodeProcess): Promise<string> {
  await expect.poll(() => node.said(), patient).toMatch(/npx parley-gateway node approve \S{9}/);
  const [, code = ""] = /npx parley-gateway node approve (\S{9})/.exec(node.said()) ?? [];
  return (await client.request("node.pair.approve", { code })).node.nodeId;
}

async function connected(client: GatewayClient, nodeId: string): Promise<void> {
  const look = async () => (await client.request("node.list", {})).nodes.find((one) => one.nodeId === nodeId);
  await expect.poll(async () => (await look())?.connected, patient).toBe(true);
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: { reason?: string; message: string }) => `${error.reason}: ${error.message}`,
  );
}

test("a paired node runs the programs in its list, and runs nothing after it is unpaired", async () => {
  const tokens = [{ token: NODE_TOKEN, role: "node" }];
  const gateway = await startProcess({
    home: homeWith({ gateway: { port: 0, auth: { token: "a-token-that-is-for-tests", tokens } } }),
  });
  const client = await gateway.connect();
  const folder = temporaryFolder();
  writeFileSync(join(folder, "here.txt"), "it is here\n");
  const list = ["--name", "attic", "--cwd", folder, "--allow-exec", "cat *", "env", "bash -c *"];
  const node = startNode(gateway.url, list);
  const nodeId = await letIn(client, node);
  await connected(client, nodeId);
  const exec = (command: readonly string[], more: object = {}) =>
    client.request("node.invoke", { nodeId, command: "exec", params: { command, ...more } });

  expect((await exec(["cat", "here.txt"])).payload).toMatchObject({ exitCode: 0, stdout: "it is here\n" });
  // A command's environment contains only the variables that a program needs.
  const environment = (await exec(["env"])).payload as { stdout: string };
  expect(environment.stdout).not.toContain(NODE_TOKEN);
  expect(environment.stdout.split("\n").map((line) => line.split("=")[0])).not.toContain("PARLEY_LAUNCHED");
  expect(await refusal(exec(["rm", "here.txt"]))).toMatch(/node_failed.*does not run "rm here.txt"/);
  expect(await refusal(exec(["env", "rm", "here.txt"]))).toMatch(/does not run/);
  expect(await refusal(exec(["cat", "x"], { cwd: ".." }))).toMatch(/cwd must be an existing folder below/);
  expect(await refusal(exec(["cat", "/etc/hostname; rm here.txt"]))).toBe("done");
  expect(existsSync(join(folder, "here.txt"))).toBe(true);
  const notice = { title: "hello", body: "out of\u001b[2J the blue" };
  const shown = await client.request("node.invoke", { nodeId, command: "notify", params: notice });
  expect(shown.payload).toEqual({ shown: "terminal" });
  await expect.poll(() => node.said(), patient).toContain("hello: out of\\x1b[2J the blue");

  // When a command is cancelled, all processes that it has started end.
  const script = "sleep 600 & echo $$ $! > pids; wait";
  let pids: number[] = [];
  // If a busy machine has not started the command within the timeout, the command gets more time.
  for (let timeoutMs = 500; pids.length === 0 && timeoutMs < 20_000; timeoutMs *= 3) {
    const late = (await exec(["bash", "-c", script], { timeoutMs })).payload;
    expect(late).toMatchObject({ timedOut: true, exitCode: null });
    pids = existsSync(join(folder, "pids"))
      ? [...readFileSync(join(folder, "pids"), "utf8").matchAll(/\d+/g)].map(Number)
      : [];
  }
  expect(pids).toHaveLength(2);
  for (const pid of pids) {
    await expect.poll(() => existsSync(`/proc/${pid}`) && aliveIn(pid), patient).toBe(false);
  }

  // The node dies during a command, then returns with the same key and needs no new pairing.
  const lost = refusal(exec(["bash", "-c", "echo $$ > orphan; exec sleep 600"]));
  const orphan = join(folder, "orphan");
  await expect.poll(() => existsSync(orphan) && readFileSync(orphan, "utf8") !== "", patient).toBe(true);
  node.child.kill("SIGKILL");
  await node.exited;
  // A killed node cannot end its commands, so the test does.
  process.kill(Number(readFileSync(orphan, "utf8")), "SIGKILL");
  expect(await lost).toMatch(/outcome_unknown.*attic/);
  expect(await refusal(exec(["env"]))).toMatch(/node_unavailable.*not connected/);
  const keyFile = join(node.home, ".parley", "node.json");
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  const again = startNode(gateway.url, list, node.home);
  await connected(client, nodeId);
  expect((await exec(["cat", "here.txt"])).payload).toMatchObject({ exitCode: 0 });

  await client.request("node.pair.remove", { nodeId });
  await expect.poll(() => again.said(), patient).toMatch(/npx parley-gateway node approve/);
  expect((await client.request("node.list", {})).nodes).toEqual([]);
  again.child.kill("SIGTERM");
  expect(await again.exited).toBe(0);
});

/** Returns true if a process runs. A zombie does not run. */
function aliveIn(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

test("if the gateway is killed, a node reconnects to the next one, and its command runs once", async () => {
  const tokens = [{ token: NODE_TOKEN, role: "node" }];
  const port = await freePort();
  const config = { gateway: { port, auth: { token: "a-token-that-is-for-tests", tokens } } };
  const gateway = await startProcess({ home: homeWith(config) });
  const client = await gateway.connect();
  const folder = temporaryFolder();
  const node = startNode(gateway.url, ["--cwd", folder, "--allow-exec", "bash -c *"]);
  const nodeId = await letIn(client, node);
  await connected(client, nodeId);
  const script = "echo once >> log; until [ -e go ]; do sleep 0.05; done; echo done";
  const params = {
    nodeId,
    command: "exec",
    params: { command: ["bash", "-c", script] },
    idempotencyKey: "k",
  };
  const lost = refusal(client.request("node.invoke", params));
  await expect.poll(() => existsSync(join(folder, "log")), patient).toBe(true);
  await gateway.end("SIGKILL");
  expect(await lost).not.toBe("done");
  const after = await startProcess({ home: gateway.home });
  const later = await after.connect();
  await connected(later, nodeId);
  writeFileSync(join(folder, "go"), "");
  const answer = await later.request("node.invoke", params);
  expect(answer.payload).toMatchObject({ exitCode: 0, stdout: "done\n" });
  expect(readFileSync(join(folder, "log"), "utf8")).toBe("once\n");
});
