// The addresses that each kind of outgoing HTTP request may reach, and the redirects that it follows.

import { expect, test } from "vitest";
import { follow, type Purpose, reachOf } from "../../../src/core/rules/outgoing.ts";

const HERE = "http://127.0.0.1:11434/v1";
const ALL: readonly Purpose[] = ["model", "mcp", "channel", "media", "webhook", "gateway"];

const REACH: readonly [Purpose, string, string, string][] = [
  ...ALL.map((purpose): [Purpose, string, string, string] => [purpose, `${HERE}/x`, HERE, "any address"]),
  ...ALL.filter((purpose) => purpose !== "media").map((purpose): [Purpose, string, string, string] => [
    purpose,
    "https://other.example/x",
    HERE,
    "refused",
  ]),
  ["media", "https://other.example/x", HERE, "public addresses"],
  ["media", "https://127.0.0.1:11434/v1", HERE, "public addresses"],
  ["media", "https://127.0.0.1:1/x", "https://127.0.0.1:2", "public addresses"],
  ["media", "http://other.example/x", "https://graph.example", "refused"],
  ["media", "ftp://other.example/x", "https://graph.example", "refused"],
  ["media", "file:///etc/passwd", "https://graph.example", "refused"],
  ["media", "nonsense", "https://graph.example", "refused"],
  ["client", "https://127.0.0.1:1/x", HERE, "public addresses"],
  ["client", "http://other.example/x", HERE, "refused"],
  ["page", "http://other.example/x", HERE, "public addresses"],
  ["page", "http://127.0.0.1:1/x", HERE, "public addresses"],
  ["page", "file:///etc/passwd", HERE, "refused"],
  ["model", "http://127.0.0.1:11435/v1", HERE, "refused"],
  ["model", "http://localhost:11434/v1", HERE, "refused"],
  ["model", "http://graph.example/", "https://graph.example", "refused"],
];

test.each(REACH)("OG1, OG2: %s: %s with %s configured: %s", (purpose, url, configured, kind) => {
  expect(reachOf(purpose, url, configured)).toMatchObject({ kind });
});

test("an error does not contain the address, because an address may contain a token", () => {
  const refused = reachOf("channel", "https://other.example/bot123:secret", "https://api.telegram.org");
  expect(refused).toMatchObject({ kind: "refused" });
  expect(JSON.stringify(refused)).not.toMatch(/secret|example|telegram/);
});

const FROM = "https://mcp.example/mcp";
const REDIRECTS: readonly [Purpose, string, number, string | null, string | undefined][] = [
  ["mcp", "POST", 307, "/mcp/", "https://mcp.example/mcp/"],
  ["mcp", "POST", 308, "https://mcp.example/v2", "https://mcp.example/v2"],
  ["mcp", "GET", 302, "/mcp/", "https://mcp.example/mcp/"],
  ["mcp", "POST", 302, "/mcp/", undefined],
  ["mcp", "GET", 303, "/mcp/", undefined],
  ["mcp", "GET", 200, "/mcp/", undefined],
  ["mcp", "POST", 307, null, undefined],
  ["mcp", "POST", 307, "https://other.example/mcp", undefined],
  ["mcp", "POST", 307, "http://mcp.example/mcp", undefined],
  ["mcp", "POST", 307, "https://mcp.example:444/mcp", undefined],
  ["mcp", "POST", 307, "//other.example/mcp", undefined],
  ["mcp", "POST", 307, "https://user:word@mcp.example/mcp", undefined],
  ["mcp", "POST", 307, "http://169.254.169.254/latest", undefined],
  ["page", "GET", 302, "http://other.example/", "http://other.example/"],
  ["page", "GET", 302, "https://user:word@other.example/", undefined],
  ...ALL.filter((purpose) => purpose !== "mcp").flatMap((purpose) =>
    ["GET", "POST"].map((method): [Purpose, string, number, string, undefined] => [
      purpose,
      method,
      307,
      "/mcp/",
      undefined,
    ]),
  ),
];

test.each(REDIRECTS)(
  "OG3: purpose %s: the redirect of %s with status %i to %s is followed to %s",
  (purpose, method, status, location, to) => {
    expect(follow(purpose, { method, url: FROM, status, location })).toBe(to);
  },
);
