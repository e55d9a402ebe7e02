// The doctor's finding about params of clients that have no effect.

import { expect, test } from "vitest";
import { makeHome, run, startGateway, TOKEN } from "../../cli/kit.ts";
import { joined } from "../../gateway/kit.ts";

test("doctor lists the params that clients of version 4 sent in vain, and none before", async () => {
  const { home, port } = await makeHome();
  await startGateway(home);
  expect((await run(home, ["doctor"])).out).not.toContain("have no effect here");
  const version = { minProtocol: 4, maxProtocol: 4, auth: { token: TOKEN } };
  const raw = await joined({ url: `ws://127.0.0.1:${port}` }, version);
  const params = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`spare${at}`, true]));
  raw.send({ type: "req", id: "1", method: "sessions.list", params });
  expect((await raw.res("1")).ok).toBe(true);
  raw.socket.close();
  const { code, out } = await run(home, ["doctor"]);
  expect(code).toBe(0);
  expect(out).toMatch(/✓ clients +params of clients that have no effect here: sessions\.list spare0, /);
  expect(out).toContain("sessions.list spare9 and 2 more");
});
