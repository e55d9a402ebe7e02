// A gateway that is started before its database.

import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { cleanup } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { addressOf, launch } from "../kit/process/fleet.ts";
import { homeWith } from "../kit/process/gateway-process.ts";
import { type PostgresServer, startPostgres } from "../kit/store/postgres-server.ts";
import { PATIENCE_MS } from "../kit/until.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
  await server.stop();
});
afterAll(() => server.end());

/** Starts a gateway process whose database is not reachable, and waits until it answers HTTP. */
async function waiting() {
  const port = await freePort();
  const store = { postgresUrl: `${server.url}?schema=away` };
  const home = homeWith({ store, gateway: { port, auth: { token: "a-token-that-is-for-tests" } } });
  const child = launch(home, ["gateway"]);
  const exited = once(child, "exit");
  cleanup(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let log = "";
  child.stderr?.on("data", (piece: Buffer) => {
    log += piece.toString();
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, body: await answer.json() };
  };
  await vi.waitFor(() => ask("/healthz"), { timeout: PATIENCE_MS, interval: 20 });
  return { child, exited, home, ask, log: () => log };
}

test("damage: a gateway waits for its database, reports that, and starts when the database answers", async () => {
  const { child, ask, log } = await waiting();
  expect(await ask("/healthz")).toEqual({ status: 200, body: { ok: true, status: "live" } });
  const reason = "waiting for the store, which cannot be reached";
  expect(await ask("/readyz")).toEqual({ status: 503, body: { ok: false, status: "not ready", reason } });
  expect((await ask("/tools/invoke")).status).toBe(503);
  const listening = addressOf(child);
  await server.start();
  await listening;
  expect(await ask("/readyz")).toEqual({ status: 200, body: { ok: true, status: "ready" } });
  expect(log().match(/waiting for/g)).toHaveLength(1);
  child.kill("SIGTERM");
  await once(child, "exit");
  await server.stop();
});

test("damage: a command finds a gateway that waits for its database, and says what it waits for", async () => {
  const { home } = await waiting();
  const command = launch(home, ["status"]);
  let said = "";
  for (const stream of [command.stdout, command.stderr])
    stream?.on("data", (piece: Buffer) => {
      said += piece.toString();
    });
  expect(await once(command, "exit")).toEqual([1, null]);
  expect(said).toContain("the gateway is waiting for the store, which cannot be reached");
});

test("damage: SIGTERM stops the wait for the database", async () => {
  const { child, exited } = await waiting();
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});
