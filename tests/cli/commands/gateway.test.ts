import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { test } from "../../kit/deep.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { freePort } from "../../kit/loopback.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { call, makeHome, run, runJson, startGateway, TOKEN } from "../kit.ts";

test("the start prints four lines: agents, page, store, and the next command to try", async () => {
  const { home, port } = await makeHome();
  const gateway = call(home, []);
  await gateway.shows("Or, in");
  const lines = gateway.out().trim().split("\n");
  expect(lines).toHaveLength(4);
  expect(lines[0]).toContain("3 agents (main, research, ops) on the offline model");
  expect(lines[1]).toBe(`Page: http://127.0.0.1:${port} (the link that signs in: npx parley-gateway link)`);
  expect(lines[3]).toBe("Or, in another terminal: npx parley-gateway chat");
  expect(gateway.out() + gateway.err()).not.toContain(TOKEN);
  gateway.interrupt("SIGTERM");
  expect(await gateway.code).toBe(0);
  expect(gateway.exits).toEqual([]);
});

test("GW2: on a terminal the start prints the link that signs in, but not with --json", async () => {
  const { home, port } = await makeHome({
    gateway: { port: await freePort(), auth: { token: "a&token #1, long enough now" } },
  });
  const gateway = call(home, ["gateway", "--port", String(port)], { isTTY: true });
  await gateway.shows("Or, in");
  expect(gateway.out()).toContain(
    `Page: http://127.0.0.1:${port}/#token=a%26token%20%231%2C%20long%20enough%20now\n`,
  );
  gateway.interrupt();
  expect(await gateway.code).toBe(0);
  const silent = call(home, ["gateway", "--port", "0", "--json"], { isTTY: true });
  await silent.shows("}");
  silent.interrupt();
  await silent.code;
  expect(silent.out() + silent.err()).not.toMatch(/token[=%]|a&token/);
});

test("parley link prints the link of the running gateway, or of the one at --url", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  const link = `http://127.0.0.1:${port}/#token=${TOKEN}`;
  expect(await run(home, ["link"])).toMatchObject({ code: 0, out: `${link}\n` });
  expect(await runJson(home, ["link"])).toEqual({ ok: true, link });
  const elsewhere = await run(home, ["--url", "wss://parley.example", "--token", "other", "link"]);
  expect(elsewhere.out).toBe("https://parley.example/#token=other\n");
  const fresh = await run(homeWith({ gateway: { auth: {} } }), ["link"]);
  expect(fresh).toMatchObject({ code: 3, out: "" });
});

test("the second Ctrl-C exits at once", async () => {
  const { home } = await makeHome();
  const gateway = call(home, ["gateway"]);
  await gateway.shows("Or, in");
  gateway.interrupt();
  expect(gateway.exits).toEqual([]);
  gateway.interrupt();
  expect(gateway.exits).toEqual([130]);
  await gateway.code;
});

test("a second gateway on the same store refuses to start and names the process that uses the store", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { code, out, err } = await run(home, ["gateway", "--port", "0"]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("belongs to a gateway that is running");
  expect(err).toContain(String(process.pid));
});

test("a used port is reported with a solution", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  const other = homeWith({});
  const { code, err } = await run(other, ["gateway", "--port", String(port)]);
  expect(code).toBe(1);
  expect(err).toContain(`port ${port}`);
  expect(err).toContain("--port");
});

test("an invalid configuration starts nothing and creates no store", async () => {
  const { home } = await makeHome({ sesion: {} });
  const { code, err } = await run(home, []);
  expect(code).toBe(1);
  expect(err).toContain("sesion");
  expect(readdirSync(join(home, ".parley"))).toEqual(["parley.json5"]);
});

test.deep(
  "SIGTERM stops a real process with exit code 0, and the next start continues unfinished work",
  async () => {
    const first = await startProcess();
    const client = await first.connect();
    await client.call("chat.send", {
      sessionKey: "main",
      message: "wait 1 seconds, then say late",
      idempotencyKey: "r",
    });
    expect(await first.end("SIGTERM")).toBe(0);
    const second = await startProcess({ home: first.home });
    const again = await second.connect();
    expect(await again.call("agent.wait", { runId: "r", timeoutMs: PATIENCE_MS })).toMatchObject({
      status: "ok",
    });
    expect(await second.end("SIGTERM")).toBe(0);
  },
);

test("npm run demo: a real process shows every step and leaves nothing behind", async () => {
  const home = temporaryFolder();
  const launcher = fileURLToPath(new URL("../../../bin/parley.js", import.meta.url));
  const child = spawn(process.execPath, [launcher, "demo", "--json"], {
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
    stdio: ["ignore", "pipe", "pipe"],
  });
  cleanup(() => void child.kill("SIGKILL"));
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    err += chunk.toString();
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(out)).toMatchObject({ ok: true, steps: Array(7).fill({ ok: true }) });
  expect(readdirSync(home).filter((name) => name.includes("parley"))).toEqual([]);
});
