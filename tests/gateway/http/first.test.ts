// The page's first request over HTTP.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { PayloadOf } from "../../../src/contract/client/node.ts";
import { manySessions, NEWEST, seedSessions } from "../../ui/sessions/seed.ts";
import { openHouse, TOKEN } from "../kit.ts";

interface First {
  readonly script: string;
  readonly sessions: PayloadOf<"sessions.list">;
  readonly attention: PayloadOf<"attention.list">;
}

const firstOf = (http: string, token: string) =>
  fetch(`${http}/page/first`, { headers: { authorization: `Bearer ${token}` } });

test("the first rows come compressed, with counts, groups and the script of the built page", async () => {
  const { http, store } = await openHouse();
  await seedSessions(store, manySessions(300, NEWEST));
  const answer = await firstOf(http, TOKEN);
  expect(answer.headers.get("content-encoding")).toBe("gzip");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  const { script, sessions, attention } = (await answer.json()) as First;
  expect(sessions.sessions).toHaveLength(30);
  expect(sessions.sessions.some(({ spawnedBy }) => spawnedBy !== undefined)).toBe(false);
  expect(sessions.counts).toBeDefined();
  expect(attention.groups).toHaveLength(5);
  const html = readFileSync(fileURLToPath(new URL("../../../dist/ui/index.html", import.meta.url)), "utf8");
  expect(html).toContain(` data-src="${script}"`);
});

test("I9: a token gets only rows that it covers; without operator.read, and without a token, there are none", async () => {
  const scopes = ["operator.read" as const];
  const tokens = [
    { token: "some", role: "operator" as const, scopes, sessions: ["agent:research:*"] },
    { token: "none", role: "node" as const, scopes: [] },
  ];
  const { http } = await openHouse({ gateway: { tokens } });
  const { sessions } = (await (await firstOf(http, "some")).json()) as First;
  expect(sessions.sessions.map(({ key }) => key)).toEqual(["agent:research:main"]);
  expect((await firstOf(http, "none")).status).toBe(403);
  expect((await firstOf(http, "guess")).status).toBe(401);
  expect((await fetch(`${http}/page/first`)).status).toBe(401);
  expect((await fetch(`${http}/page/first`, { headers: { origin: "https://evil.example" } })).status).toBe(
    403,
  );
});
