// Tests `parley mcp login`: the browser comes back to the command, and the gateway gets the tokens.

import { expect, test } from "vitest";
import { call, makeHome, run, startGateway } from "../../cli/kit.ts";
import { openHouse } from "../../gateway/kit.ts";
import { answered } from "./sign-in-kit.ts";

async function openNear(url: string): Promise<string> {
  const { home } = await makeHome({ tools: { mcp: { servers: { far: { url } } } } });
  await startGateway(home);
  return home;
}

test("a person signs in at a server in the browser, and out again", async () => {
  const far = await openHouse();
  const home = await openNear(`${far.http}/mcp`);
  const login = call(home, ["mcp", "login", "far"]);
  await expect.poll(login.err).toMatch(/oauth\/authorize\S*\n/);
  const [address = ""] = /http\S+\/oauth\/authorize\S*/.exec(login.err()) ?? [];
  const back = (await answered(new URL(address))).headers.get("location") ?? "";
  // A browser asks for other things, too.
  expect((await fetch(new URL("/favicon.ico", back))).status).toBe(404);
  expect(await (await fetch(back)).text()).toMatch(/close this window/);
  expect(await login.code).toBe(0);
  expect(login.out()).toMatch(/^signed in at far: \d+ tools$/m);
  expect((await run(home, ["mcp", "logout", "far"])).out).toBe("signed out of far\n");
  expect((await run(home, ["mcp", "logout", "far"])).out).toBe("nobody was signed in at far\n");
});

test("a refusal, an unknown server, a taken port and Ctrl-C end the command with a reason", async () => {
  const far = await openHouse();
  const home = await openNear(`${far.http}/mcp`);
  const unknown = await run(home, ["mcp", "login", "away"]);
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("configured: far") });
  const taken = await run(home, ["mcp", "login", "far", "--port", String(far.port)]);
  expect(taken).toMatchObject({ code: 1, err: expect.stringContaining("EADDRINUSE") });
  const denied = call(home, ["mcp", "login", "far"]);
  await expect.poll(denied.err).toMatch(/oauth\/authorize\S*\n/);
  const [address = ""] = /http\S+\/oauth\/authorize\S*/.exec(denied.err()) ?? [];
  const back = await answered(new URL(address), { answer: "deny" });
  await fetch(back.headers.get("location") ?? "");
  expect(await denied.code).toBe(1);
  expect(denied.err()).toContain("the sign-in was refused");
  const left = call(home, ["mcp", "login", "far"]);
  await expect.poll(left.err).toMatch(/oauth\/authorize\S*\n/);
  left.interrupt();
  expect(await left.code).toBe(1);
});
