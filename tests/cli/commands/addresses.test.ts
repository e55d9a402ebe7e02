// Commands find the gateway of their own store, and ask no other one.

import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cleanup } from "../../kit/cleanup.ts";
import { listenHere } from "../../kit/loopback.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { configFile, makeHome, run, runJson, startGateway, TOKEN } from "../kit.ts";

const COMMANDS = [
  ["status"],
  ["link"],
  ["agents"],
  ["send", "--session", "main", "hello"],
  ["logs"],
  ["doctor", "--offline"],
  ["config", "get", "gateway.port"],
  ["config", "set", "gateway.port", "0", "--dry-run"],
];

test("GA1: no command asks a program that has taken the configured port", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  cleanup(() => void server.close());
  const home = homeWith({ gateway: { port: await listenHere(server), auth: { token: TOKEN } } });
  for (const argv of COMMANDS) await run(home, argv);
  expect(connections).toBe(0);
});

test("commands beside a gateway with another store say that theirs does not run, and edit their own file", async () => {
  const { home: other, port } = await makeHome();
  await startGateway(other);
  const home = homeWith({ gateway: { port } });
  for (const argv of [["status"], ["link"], ["send", "--session", "main", "hello"]])
    expect(await run(home, argv)).toMatchObject({
      code: 3,
      out: "",
      err: expect.stringContaining(`No gateway is running here with the store ${home}`),
    });
  expect((await run(home, ["doctor", "--offline"])).out).toContain(`another program uses 127.0.0.1:${port}`);
  expect(await run(home, ["config", "set", "gateway.port", "0"])).toMatchObject({ code: 0 });
  expect(await runJson(home, ["config", "get", "gateway.port"])).toMatchObject({ value: 0 });
  expect(await runJson(other, ["config", "get", "gateway.port"])).toMatchObject({ value: port });
});

test("commands still find a running gateway after config set gateway.port", async () => {
  const { home, port } = await makeHome();
  const gateway = await startGateway(home);
  expect(await run(home, ["config", "set", "gateway.port", "1"])).toMatchObject({
    code: 0,
    out: expect.stringContaining("Takes effect after a restart: gateway."),
  });
  expect(await run(home, ["agents"])).toMatchObject({ code: 0, err: "" });
  expect(await run(home, ["link"])).toMatchObject({ out: `http://127.0.0.1:${port}/#token=${TOKEN}\n` });
  expect(await run(home, ["config", "set", "gateway.port", String(port)])).toMatchObject({ code: 0 });
  await gateway.stop();
  expect(await run(home, ["agents"])).toMatchObject({ code: 3 });
});

test("commands that edit the usual file refuse while the gateway of its store uses another one", async () => {
  const { home } = await makeHome();
  const before = readFileSync(configFile(home), "utf8");
  const other = join(home, "other.json5");
  writeFileSync(other, before);
  const gateway = await startGateway(home, {}, other);
  for (const argv of [
    ["config", "get"],
    ["config", "set", "session.queueMax", "7"],
    ["agents", "add", "writer"],
    ["agents", "remove", "ops", "--yes"],
    ["channels", "add", "telegram", "--set", "botToken=1:a", "--no-test"],
    ["init", "--yes", "--provider", "offline"],
  ])
    expect(await run(home, argv), argv.join(" ")).toMatchObject({
      code: expect.toSatisfy((code) => code !== 0),
      out: "",
      err: expect.stringMatching(
        `the running gateway uses ${other}, not ${configFile(home)}\n.*Add --config ${other}, or`,
      ),
    });
  expect(readFileSync(configFile(home), "utf8")).toBe(before);

  const set = ["config", "set", "gateway.port", "1"];
  const running = await run(home, ["--config", other, ...set]);
  expect(running).toMatchObject({ code: 0, out: expect.stringContaining("after a restart") });
  const usual = await run(home, ["--config", configFile(home), ...set]);
  expect(usual).toMatchObject({ code: 0, out: expect.not.stringContaining("after a restart") });
  await gateway.stop();
  expect(await run(home, ["config", "set", "session.queueMax", "7"])).toMatchObject({ code: 0 });
});

test("a missing usual file is not made beside a gateway of its store that uses another one", async () => {
  const { home } = await makeHome();
  const other = join(home, "other.json5");
  renameSync(configFile(home), other);
  await startGateway(home, {}, other);
  const added = await run(home, ["agents", "add", "writer"]);
  expect(added).toMatchObject({ code: 1, err: expect.stringContaining(`--config ${other}`) });
  expect(existsSync(configFile(home))).toBe(false);
});

test("GA2: a gateway removes what gateways of its process namespace left, and leaves the others alone", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  cleanup(() => void server.close());
  const url = `ws://127.0.0.1:${await listenHere(server)}`;
  const { home } = await makeHome();
  const folder = join(home, ".parley/state/running");
  const gateway = await startGateway(home);
  const [own = ""] = readdirSync(folder);
  const entry = JSON.parse(readFileSync(join(folder, own), "utf8"));
  await gateway.stop();
  expect(readdirSync(folder)).toEqual([]);
  const write = (name: string, more: object) =>
    writeFileSync(join(folder, name), JSON.stringify({ ...entry, url, ...more }));
  const ended = `${process.pid} an-earlier-start`;
  write("left.json", { mark: ended });
  write("container.json", { pidNamespace: "pid:[1]" });
  write("machine.json", { mark: ended, host: "elsewhere" });
  writeFileSync(join(folder, "other.json"), "not ours");
  expect(await run(home, ["status"])).toMatchObject({ code: 3 });
  await startGateway(home);
  expect(await run(home, ["agents"])).toMatchObject({ code: 0 });
  expect(connections).toBe(0);
  const there = readdirSync(folder).filter((name) => name !== own);
  expect(there).toEqual(["container.json", "machine.json", "other.json"]);
});
