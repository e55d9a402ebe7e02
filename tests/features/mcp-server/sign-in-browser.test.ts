// The consent page in a real browser.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { register, requestAt } from "./sign-in-kit.ts";

/** Starts a program that waits for the browser. Returns the address to which the browser should come back. */
async function program(): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>Done</title>You may close this window.");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
}

describeInBrowser("the consent page", () => {
  for (const [name, viewport] of [
    ["a desktop", undefined],
    ["a phone", PHONE],
  ] as const)
    test(`a person allows a sign-in on ${name}, and the browser goes back to the program with a code`, async () => {
      const house = await openHouse();
      const redirect_uri = await program();
      const { client_id } = await register(house, { client_name: "Editor", redirect_uris: [redirect_uri] });
      const { page } = await visit(house.http, {
        allow: /^request to http:\/\/127\.0\.0\.1:\d+\/callback\?|status of 401/,
        ...(viewport === undefined ? {} : { viewport }),
      });
      await page.goto(requestAt(house, { client_id, redirect_uri }).href);
      await page.getByRole("heading", { name: "Allow this sign-in?" }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      const token = page.getByLabel(/^Your token/);
      await token.fill("a-token-that-is-wrong");
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByRole("alert").waitFor();
      await token.fill(TOKEN);
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("You may close this window.").waitFor();
      const back = new URL(page.url());
      expect([back.origin, back.pathname]).toEqual([new URL(redirect_uri).origin, "/callback"]);
      expect([...back.searchParams.keys()].sort()).toEqual(["code", "iss", "state"]);
      expect(page.url()).not.toContain(TOKEN);
    });
});
