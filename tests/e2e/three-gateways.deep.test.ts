// The story of deploy/three.yaml with real processes: its variables, its proxy and the image's health check
// serve three gateways over one PostgreSQL. Only addresses are replaced, because here all of them are on
// loopback.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { connect } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { ROOT, readDockerfile, resolveCompose } from "../deploy/compose.ts";
import { cleanup, temporaryFolder } from "../kit/cleanup.ts";
import { freePort } from "../kit/loopback.ts";
import { addressOf, launch } from "../kit/process/fleet.ts";
import { lacks } from "../kit/process/lacks.ts";
import { runSql } from "../kit/store/postgres.ts";
import { startPostgres } from "../kit/store/postgres-server.ts";
import { PATIENCE_MS, until } from "../kit/until.ts";

const SECRETS = { PGPASSWORD: "one-for-the-database", PARLEY_TOKEN: "a-token-that-all-of-them-have" };
const wordsOf = (instruction: string): string[] => {
  const rest = readDockerfile().find(({ name }) => name === instruction)?.rest ?? "";
  return JSON.parse(/\[.*\]/.exec(rest)?.[0] ?? "[]") as string[];
};

function endAfterTest(child: ChildProcess): ChildProcess {
  const exited = once(child, "exit");
  cleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
  });
  return child;
}

/** Starts one service of the file, with the image's command and the variables that the file gives it. */
async function startService(home: string, environment: Readonly<Record<string, string>>, database: number) {
  const port = await freePort();
  const env = { ...environment };
  env.PARLEY_DATABASE_URL =
    env.PARLEY_DATABASE_URL?.replace("@database:5432", `@127.0.0.1:${database}`) ?? "";
  const args = wordsOf("CMD").map((word) =>
    word.replace("7275", String(port)).replace("0.0.0.0", "127.0.0.1"),
  );
  const child = endAfterTest(launch(home, args, [], env));
  await addressOf(child);
  const [, ...check] = wordsOf("HEALTHCHECK").map((word) => word.replace("7275", String(port)));
  return { child, port, isHealthy: () => promisify(execFile)(process.execPath, check) };
}

/** Starts the proxy of the file in front of these gateways. */
async function startProxy(gateways: Readonly<Record<string, number>>): Promise<number> {
  const port = await freePort();
  let config = readFileSync(join(ROOT, "deploy/haproxy.cfg"), "utf8").replace(
    ":7275\n",
    `127.0.0.1:${port}\n`,
  );
  for (const [name, at] of Object.entries(gateways))
    config = config.replace(`${name}:7275`, `127.0.0.1:${at}`);
  const file = join(temporaryFolder(), "haproxy.cfg");
  writeFileSync(file, config);
  endAfterTest(spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" }));
  await until(() =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return port;
}

// Skipped on machines without docker-compose and haproxy.
test.skipIf(lacks("docker-compose") || lacks("haproxy"))(
  "a run outlives two of the three gateways, and clients behind the one port notice only a reconnection",
  async () => {
    const server = await startPostgres();
    cleanup(() => server.end());
    await runSql(server.url, `create role parley login password '${SECRETS.PGPASSWORD}'`);
    await runSql(server.url, "create database parley owner parley");
    const secrets = Object.entries(SECRETS).map(([name, value]) => `${name}=${value}\n`);
    const { services } = resolveCompose("deploy/three.yaml", secrets.join(""));
    const names = Object.keys(services).filter((name) => name.startsWith("gateway"));
    // The services share one volume.
    const home = temporaryFolder();
    const gateways = await Promise.all(
      names.map((name) => startService(home, services[name]?.environment ?? {}, server.port)),
    );
    for (const { isHealthy } of gateways) await isHealthy();
    const port = await startProxy(
      Object.fromEntries(names.map((name, at) => [name, gateways[at]?.port ?? 0])),
    );
    const open = async () => {
      const url = `ws://127.0.0.1:${port}`;
      const client = await connect({ url, token: SECRETS.PARLEY_TOKEN, connectTimeoutMs: PATIENCE_MS });
      cleanup(() => client.close());
      return client;
    };
    const client = await open();
    const message = "wait 5 seconds, then say nobody noticed";
    const { runId } = await client.request("agent", { message, idempotencyKey: "one" });
    // One gateway stops as planned, and one dies.
    const [stopped, killed] = gateways;
    stopped?.child.kill("SIGTERM");
    killed?.child.kill("SIGKILL");
    if (stopped?.child.exitCode === null) await once(stopped.child, "exit");
    expect(stopped?.child.exitCode).toBe(0);
    // A busy machine may answer a check too late, and then no gateway counts as ready for two seconds.
    const other = await until(() => open().catch(() => undefined));
    await other.request("agent.wait", { runId, timeoutMs: PATIENCE_MS });
    const { messages } = await other.request("chat.history", { sessionKey: "main" });
    const texts = messages.filter(({ role }) => role === "assistant").map(textOf);
    expect(texts).toEqual(["nobody noticed"]);
    // The first client is on the surviving gateway, too, by itself.
    await client.request("status", {});
    await expect(killed?.isHealthy()).rejects.toThrow();
  },
);
