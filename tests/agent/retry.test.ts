// Retries of failed requests, and the pauses that providers ask for.

import { expect, test } from "vitest";
import { judge, type RequestFailure } from "../../src/agent/model/retry.ts";
import { made, modelOf, providerAt, rawServer, requestFor, WIRE_APIS } from "./clients-kit.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const LATER = "Thu, 01 Jan 2026 00:00:10 GMT";

function failure(headers: Record<string, string>, more: Partial<RequestFailure> = {}): RequestFailure {
  return {
    error: "busy",
    status: 429,
    headers: new Headers(headers),
    begun: false,
    passing: true,
    ...more,
  };
}

const BACKOFF_MS = 250;
const FIRST = { tries: 1, triesMax: 5 };

test.each([
  [{ "retry-after": "7" }, 7_000],
  [{ "retry-after": "1.5" }, 1_500],
  [{ "retry-after": LATER }, 10_000],
  [{ "retry-after-ms": "40", "retry-after": "7" }, 40],
  [{ "retry-after": "300" }, 300_000],
])("R2: the retry waits as long as %j asks for", (headers, afterMs) => {
  expect(judge(failure(headers), FIRST, 0, NOW)).toEqual({ kind: "retry", afterMs });
});

test.each([
  {},
  { "retry-after": "0" },
  { "retry-after-ms": "0" },
  { "retry-after": "Wed, 31 Dec 2025 23:59:59 GMT" },
  { "retry-after": "-5" },
  { "retry-after": "soon" },
  { "retry-after": "1e9" },
  { "retry-after": "2001-01-01" },
  { "retry-after-ms": "-1" },
])("R2: %j asks for no valid pause, so the retry waits for the default backoff", (headers) => {
  expect(judge(failure(headers), FIRST, 0, NOW)).toEqual({ kind: "retry", afterMs: BACKOFF_MS });
});

test.each([
  { "retry-after": "301" },
  { "retry-after": "Fri, 02 Jan 2026 00:00:00 GMT" },
  { "retry-after-ms": "Infinity" },
])("R2: %j asks for a pause that is too long, so the request is not retried", (headers) => {
  expect(judge(failure(headers), FIRST, 0, NOW)).toMatchObject({ kind: "final" });
});

test("R1: a request is never retried after its answer has begun, whatever the provider returns", () => {
  const begun = failure({ "retry-after": "1", "x-should-retry": "true" }, { begun: true, refusal: "length" });
  expect(judge(begun, FIRST, 0, NOW)).toEqual({ kind: "final", error: "busy" });
});

test("the backoff doubles, beginning with half a second, and the fifth failure is final", () => {
  const delays = [1, 2, 3, 4].map((tries) => judge(failure({}), { ...FIRST, tries }, 0.999, NOW));
  expect(delays.map((one) => (one.kind === "retry" ? one.afterMs : 0))).toEqual([500, 1_000, 1_999, 3_998]);
  expect(judge(failure({ "retry-after": "1" }), { ...FIRST, tries: 5 }, 0, NOW)).toMatchObject({
    kind: "final",
  });
});

test.each(WIRE_APIS)(
  "%s: a web page in place of an answer is explained, and not asked for again",
  async (api) => {
    const server = await rawServer((response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><h1>It works</h1>");
    });
    const provider = providerAt(server.url, api);
    const { outcome } = await made(requestFor(modelOf(provider)));
    if (outcome.kind !== "failed") throw new Error(outcome.kind);
    const { error } = outcome.failure;
    expect(error).toContain('The address answered with "It works" instead of a model\'s answer.');
    expect(error).toContain(`Check models.providers.${provider.id}.baseUrl`);
    expect(judge(outcome.failure, FIRST, 0, NOW).kind).not.toBe("retry");
  },
);
