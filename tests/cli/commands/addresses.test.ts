// Commands find the gateway of their own store, and ask no other one.

import { createServer } from "node:net";
import { expect, test } from "vitest";
import { cleanup } from "../../kit/cleanup.ts";
import { listenHere } from "../../kit/loopback.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { makeHome, run, runJson, startGateway, TOKEN } from "../kit.ts";

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
