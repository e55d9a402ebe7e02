// Run by hand. Measures the resident memory of a real gateway before, during and after floods that one token
// sends: frames that never end, bodies that never end, large frames that are answered, and 40 simultaneous
// previews of large histories.
//
//   node bench/by-hand-flood.ts [SECONDS AFTER EACH FLOOD, default 30]

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { connect } from "../src/contract/client/node.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";

const afterSeconds = Number(process.argv[2] ?? 30);
const MIB = 1024 * 1024;
const LINKS = 20;
const HALF = Buffer.alloc(20 * MIB, "x");

const home = mkdtempSync(join(tmpdir(), "parley-by-hand-"));
writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } } });
const gateway = launch(home, ["gateway"]);
const http = await addressOf(gateway);
const url = http.replace("http", "ws");

/** Returns the resident memory of the gateway in MB. */
function resident(): number {
  const status = readFileSync(`/proc/${gateway.pid}/status`, "utf8");
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024);
}

async function joined(): Promise<WebSocket> {
  const socket = new WebSocket(url);
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("open", resolve));
  const client = { id: "flood", version: "1", platform: "bench", mode: "cli" };
  const params = { minProtocol: 3, maxProtocol: 3, client, auth: { token: TOKEN } };
  socket.send(JSON.stringify({ type: "req", id: "hello", method: "connect", params }));
  await new Promise<void>((resolve) => {
    socket.on("message", (data) => {
      if (data.toString().includes('"hello"')) resolve();
    });
  });
  return socket;
}

/** Opens twenty sockets, each with the first 20 MiB of a frame that never ends. */
async function frames(): Promise<() => void> {
  const sockets = await Promise.all(Array.from({ length: LINKS }, joined));
  for (const socket of sockets) socket.send(HALF, { fin: false });
  return () => {
    for (const socket of sockets) socket.terminate();
  };
}

/** Starts twenty requests, each with the first 20 MiB of a body that never ends. */
async function bodies(): Promise<() => void> {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const requests = Array.from({ length: LINKS }, () => {
    const one = request(`${http}/v1/chat/completions`, { method: "POST", headers });
    one.on("error", () => {});
    one.on("response", (response) => response.resume());
    one.write(HALF);
    return one;
  });
  return () => {
    for (const one of requests) one.destroy();
  };
}

/** Sends a hundred frames of 20 MiB over five sockets. Waits for the error that answers each frame. */
async function answered(): Promise<() => void> {
  const text = JSON.stringify({
    type: "req",
    id: "x",
    method: "health",
    params: { padding: "x".repeat(20 * MIB) },
  });
  const work = Array.from({ length: 5 }, async () => {
    const socket = await joined();
    for (let at = 0; at < 20 && socket.readyState === socket.OPEN; at++) {
      socket.send(text);
      await new Promise((resolve) => {
        socket.once("message", resolve);
        socket.once("close", resolve);
      });
    }
    socket.terminate();
  });
  await Promise.all(work);
  return () => {};
}

/**
 * Requests forty previews at once of a session that has twenty messages of 256 KiB that look like secrets.
 */
async function previews(): Promise<() => void> {
  const client = await connect({ url, token: TOKEN, reconnect: false });
  const message = "eyJhbGciOi".repeat(26_000).slice(0, 256 * 1024);
  for (let at = 0; at < 20; at++) await client.call("chat.inject", { sessionKey: "main", message });
  await Promise.all(
    Array.from({ length: 40 }, () =>
      client.call("sessions.preview", { keys: ["agent:main:main"], limit: 50 }),
    ),
  );
  client.close();
  return () => {};
}

console.log(`before: ${resident()} MB`);
for (const flood of [frames, bodies, answered, previews]) {
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, resident());
  }, 50);
  const end = await flood();
  await sleep(3_000);
  end();
  await sleep(1_000);
  const ended = resident();
  await sleep(afterSeconds * 1_000);
  clearInterval(watch);
  console.log(
    `${flood.name}: peak ${peak} MB, at its end ${ended} MB, ${afterSeconds} s later ${resident()} MB`,
  );
}
gateway.kill("SIGTERM");
await new Promise((resolve) => gateway.once("exit", resolve));
rmSync(home, { recursive: true, force: true });
