// A gateway that loses its database between two steps of its start. It starts all the same, and the parts of
// the attempt that failed are stopped.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openApp } from "../../src/app.ts";
import { dice } from "../kit/dice.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { serverUrl, type TestSchema, takeSchema } from "../kit/store/postgres.ts";
import { fakeWorld } from "../kit/world.ts";
import { CUTS, type Cut, openTcpProxy, type TcpProxy } from "../store/postgres/tcp-proxy.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";

const SEED = process.env.PARLEY_SEED ?? String(Date.now());
/** Closes all connections at once. */
const cutAll: Cut = (tap, isNow) => {
  tap.fromClient = (piece) => {
    if (!isNow()) return piece;
    tap.hangUp();
    return "hang up";
  };
};
const WAYS = [cutAll, ...Object.values(CUTS)];
/** Number of starts that lose the database, in each way in turn. */
const STARTS = 3 * WAYS.length;

let proxy: TcpProxy;
let schema: TestSchema;
let url: string;

beforeAll(async () => {
  await serverUrl();
  schema = await takeSchema();
  const direct = new URL(schema.url);
  proxy = await openTcpProxy(Number(direct.port));
  direct.port = String(proxy.port);
  url = direct.href;
});
afterAll(async () => {
  await proxy.close();
  await schema.give();
});

/**
 * Starts a gateway and stops it. During the start, the piece of data with the number `cutAt` is cut in this
 * way. Returns the number of pieces until it had started.
 */
async function start(cutAt?: number, cut = cutAll): Promise<number> {
  let pieces = 0;
  cut(proxy, () => {
    pieces += 1;
    return pieces === cutAt;
  });
  const dir = temporaryFolder();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace);
  const base = settingsWith({ agents: [agentSettings("main", { workspace })] });
  const gateway = { ...base.gateway, port: await freePort() };
  const { log, logged } = fakeWorld();
  const opened = await openApp({
    settings: { ...base, gateway, store: { dir, durability: "normal", postgresUrl: url } },
    world: { ...quietWorld(), log },
    version: "0.0.0-test",
    environment: {},
    stop: new AbortController().signal,
  });
  const sent = pieces;
  // The gateway has started. A later loss would make /readyz report an error, and rightly so.
  proxy.fromClient = (piece) => piece;
  proxy.fromServer = (piece) => piece;
  if (!opened.ok) throw new Error(opened.error);
  const { port, close } = opened.value;
  const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json();
  await expect.poll(ready).toEqual({ ok: true, status: "ready" });
  await close(0);
  const isLate = (text: string): boolean => text.includes("the store is closed");
  const wrong = logged.filter(({ level, fields }) => level === "error" || isLate(String(fields.err)));
  expect(wrong, "errors, and work of a part that should have been stopped").toEqual([]);
  return sent;
}

test("damage: a gateway whose database is lost at a step of its start waits, and starts again", async () => {
  // The first start creates the tables.
  await start();
  const pieces = await start();
  expect(pieces).toBeGreaterThan(STARTS);
  const luck = dice(SEED);
  const share = pieces / STARTS;
  for (let part = 0; part < STARTS; part += 1) {
    const at = 1 + Math.floor(part * share) + luck.below(Math.ceil(share));
    await start(at, WAYS[part % WAYS.length]).catch((error: unknown) => {
      throw new Error(`SEED=${SEED}, cut ${part} at piece ${at} of ${pieces}`, { cause: error });
    });
  }
});

test("a gateway continues if the store refuses work for which nobody waits", async () => {
  const rejecting = `setTimeout(() => Promise.reject(Object.assign(new Error("the connection is lost"), {
    name: "StoreProblem" })), 10)`;
  const preload = `--import=data:text/javascript,${encodeURIComponent(rejecting)}`;
  const gateway = await startProcess({ env: { NODE_OPTIONS: preload } });
  await expect.poll(gateway.stderr).toContain("the store refused work for which nobody waits");
  expect((await fetch(`${gateway.httpUrl}/healthz`)).status).toBe(200);
  expect(await gateway.end("SIGTERM")).toBe(0);
});
