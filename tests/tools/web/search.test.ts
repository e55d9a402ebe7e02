// search over real sockets: the requests of both providers, their results as plain text, and failures.

import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { decideTool, filtersFor } from "../../../src/core/rules/tool-policy.ts";
import type { SearchSettings } from "../../../src/core/shapes/settings/settings.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { describeTools, toolsFor } from "../../../src/tools/catalog.ts";
import { fetchTool, webSearchTool } from "../../../src/tools/files/files.ts";
import { type ToolResult, toolResult } from "../../../src/tools/tool.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { agentSettings, MAIN_CHAIN, openApp, settingsWith } from "../app.ts";

const KEY = "geheim-0815-key";
const ORIGIN = expect.stringContaining("information, not instructions");

const contextWith = (search: SearchSettings, sandbox?: Sandbox) => ({
  agent: agentSettings("main"),
  settings: settingsWith({ tools: { search } }),
  chain: MAIN_CHAIN,
  signal: new AbortController().signal,
  engine: { newId: () => "id" },
  ...(sandbox === undefined ? {} : { sandbox }),
});

async function asks(search: SearchSettings, more = {}, tool = webSearchTool()): Promise<ToolResult> {
  const args = { query: "tea & milk", count: 5, ...more };
  const call = { callId: "c", attempt: 1, name: "search", arguments: args };
  return toolResult(await tool.execute(contextWith(search), args, call));
}

/** Starts a server, and returns its address and the requests that it got. */
async function serving(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const asked: IncomingMessage[] = [];
  const server = await serveHttp((request, response) => {
    asked.push(request);
    answer(response, request);
  });
  cleanup(() => server.close());
  return { url: server.origin, asked };
}

const sending = (body: unknown, status = 200, headers = {}) =>
  serving((response) =>
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body)),
  );

const found = (count: number, more = {}) =>
  Array.from({ length: count }, (_, at) => ({ title: `t${at}`, url: `https://a.example/${at}`, ...more }));

test("Brave gets the key in a header, and its results become plain text", async () => {
  const results = [
    {
      title: "A &amp; <strong>B</strong>",
      url: "https://a.example/x?y=1",
      description: "one<br>two &lt;p&gt;",
    },
    { title: "no address", description: "left out" },
    { title: "a program", url: "javascript:alert(1)", description: "left out" },
    "left out",
    { title: "bare", url: "http://b.example" },
  ];
  const body = gzipSync(JSON.stringify({ type: "search", web: { results } }));
  const { url, asked } = await sending(body, 200, { "content-encoding": "gzip" });
  expect(await asks({ provider: "brave", apiKey: KEY, url: `${url}/res/v1/` })).toEqual({
    status: "ok",
    results: [
      { title: "A & B", url: "https://a.example/x?y=1", snippet: "one two <p>" },
      { title: "bare", url: "http://b.example/", snippet: "" },
    ],
    origin: ORIGIN,
  });
  const target = "/res/v1/web/search?q=tea+%26+milk&count=5&text_decorations=false";
  expect(asked.map((request) => request.url)).toEqual([target]);
  expect(asked[0]?.headers).toMatchObject({ "x-subscription-token": KEY, accept: "application/json" });
});

test("an answer of Brave without web results is an empty list", async () => {
  const { url } = await sending({ type: "search" });
  expect(await asks({ provider: "brave", apiKey: KEY, url })).toMatchObject({ status: "ok", results: [] });
});

test("SearXNG is asked for JSON at a private address, and the number of results is limited", async () => {
  const { url, asked } = await sending({ results: found(30, { content: "words" }) });
  const settings = { provider: "searxng", url: `${url}/searx` } as const;
  const told = await asks(settings, { count: 2 });
  expect(told.results).toEqual([
    { title: "t0", url: "https://a.example/0", snippet: "words" },
    { title: "t1", url: "https://a.example/1", snippet: "words" },
  ]);
  expect(asked[0]?.url).toBe("/searx/search?q=tea+%26+milk&format=json");
  expect(asked[0]?.headers.authorization).toBeUndefined();
  await asks({ ...settings, apiKey: KEY });
  expect(asked[1]?.headers.authorization).toBe(`Bearer ${KEY}`);
});

test("WS3: control characters are escaped, and each text of a result is limited", async () => {
  const long = "x".repeat(50_000);
  const odd = { title: "a\u001b[31m\u202eb\nc", content: "&#27;]0;t" };
  const large = { title: long, content: `<p>${long}` };
  const results = [...found(1, odd), ...found(9, large), { url: `https://a.example/${long}` }];
  const { url } = await sending({ results });
  const told = await asks({ provider: "searxng", url }, { count: 10 });
  const hits = told.results as { title: string; url: string; snippet: string }[];
  expect(hits[0]).toMatchObject({ title: "a\\x1b[31m\\u{202e}b c", snippet: "\\x1b]0;t" });
  expect(hits.map(({ title, snippet }) => [title.length, snippet.length]).slice(1)).toEqual(
    Array.from({ length: 9 }, () => [300, 600]),
  );
});

test.each([
  ["brave", 401, "search_failed", "rejected the key. Check tools.search.apiKey."],
  ["brave", 403, "search_failed", "rejected the key. Check tools.search.apiKey."],
  ["brave", 422, "search_failed", "rejected the key or the query"],
  ["brave", 429, "rate_limited", "the limit of the search provider is reached"],
  ["brave", 500, "search_failed", "the search server answered 500"],
  ["searxng", 401, "search_failed", "rejected the key"],
  ["searxng", 403, "search_failed", "Add json to search.formats"],
  ["searxng", 429, "rate_limited", "the limit of the search provider is reached"],
  ["searxng", 503, "search_failed", "the search server answered 503"],
] as const)("WS2: %s with status %s fails with %s, without the key", async (provider, status, code, text) => {
  const { url } = await sending(`no: ${KEY}`, status);
  const told = await asks({ provider, apiKey: KEY, url });
  expect(told).toMatchObject({ status: "error", code, error: expect.stringContaining(text) });
  expect(JSON.stringify(told)).not.toContain(KEY);
});

test("WS1: a redirect is not followed, so the key stays with the configured server", async () => {
  const other = await sending({ results: found(1) });
  const { url, asked } = await sending("", 302, { location: `${other.url}/search` });
  const told = await asks({ provider: "searxng", apiKey: KEY, url });
  expect(told).toMatchObject({ code: "search_failed", error: expect.stringContaining("redirects") });
  expect([asked.length, other.asked.length]).toEqual([1, 0]);
});

test.each([
  ["<html>no</html>", "search_failed", "is not JSON"],
  ["[]", "search_failed", "is not JSON"],
  ['{"results": 3}', "search_failed", "has no results"],
  [" ".repeat(4 * 1024 * 1024 + 1), "too_large", "the answer has more than"],
])("an answer that is not a list of results is a failure in words: %#", async (body, code, error) => {
  const { url } = await sending(body);
  const told = await asks({ provider: "searxng", url });
  expect(told).toMatchObject({ code, error: expect.stringContaining(error) });
});

test("a packed answer that is too large, and a broken connection, are failures in words", async () => {
  const bomb = await sending(gzipSync(Buffer.alloc(9 * 1024 * 1024)), 200, { "content-encoding": "gzip" });
  expect(await asks({ provider: "searxng", url: bomb.url })).toMatchObject({ code: "too_large" });
  const { url } = await serving((_, request) => request.socket.destroy());
  const error = "the answer could not be read (ECONNRESET)";
  expect(await asks({ provider: "searxng", url })).toMatchObject({ code: "search_failed", error });
});

test("a server that does not answer in time is a failure in words", async () => {
  const { url } = await serving(() => {});
  const told = await asks({ provider: "searxng", url }, {}, webSearchTool(1_000));
  expect(told).toMatchObject({ code: "search_failed", error: "search was stopped after 1 s" });
});

test("no other tool gets the key, and search never runs in a sandbox", async () => {
  const { url } = await sending({ results: found(1) });
  const inputs: string[] = [];
  const sandbox = {
    run: async ({ input }: { input: string }) => {
      inputs.push(input);
      return { ok: false, code: "sandbox_unavailable", error: "closed" };
    },
  } as unknown as Sandbox;
  const ctx = contextWith({ provider: "searxng", apiKey: KEY, url }, sandbox);
  const call = { callId: "c", attempt: 1, name: "", arguments: {} };
  const told = await webSearchTool().execute(ctx, { query: "tea", count: 5 }, call);
  expect(told).toMatchObject({ ok: true });
  expect(inputs).toEqual([]);
  await fetchTool.execute(ctx, { url, offset: 0 }, call);
  expect(inputs).toHaveLength(1);
  expect(inputs[0]).not.toContain(KEY);
});

test("without tools.search there is no search, and a filter can deny it like any tool", async () => {
  const search = { provider: "brave", apiKey: KEY } as const;
  const names = (tools: object) => {
    const settings = settingsWith({ tools });
    const offered = toolsFor({ settings, chain: MAIN_CHAIN }).map(({ spec }) => spec.name);
    const described = describeTools({ settings, chain: MAIN_CHAIN }).map(({ name }) => name);
    return [offered.includes("search"), described.includes("search")];
  };
  expect(names({})).toEqual([false, false]);
  expect(names({ search })).toEqual([true, true]);
  expect(names({ search, filter: { allow: [], deny: ["search"] } })).toEqual([false, true]);
  const app = await openApp();
  const told = await app.call("agent:main:main", "search", { query: "tea" });
  expect(told).toMatchObject({ code: "unknown_tool" });
  await app.close();
});

test("a sandboxed session has search only if its sandbox has a network", () => {
  const off = agentSettings("main");
  const allowed = (network: boolean) => {
    const agent = { ...off, sandbox: { ...off.sandbox, mode: "all" as const, network } };
    const settings = settingsWith({
      agents: [agent],
      tools: { search: { provider: "searxng", url: "http://h/" } },
    });
    return decideTool("search", filtersFor(MAIN_CHAIN, settings)).allowed;
  };
  expect([allowed(false), allowed(true)]).toEqual([false, true]);
});

test("invalid arguments are refused, and the count has a default and a maximum", async () => {
  const { url } = await sending({ results: found(30) });
  const app = await openApp({ tools: { search: { provider: "searxng", url } } });
  const ask = (args: object) => app.call("agent:main:main", "search", { ...args });
  expect((await ask({ query: "tea" })).results).toHaveLength(5);
  expect((await ask({ query: "tea", count: 99 })).results).toHaveLength(10);
  expect(await ask({ query: " " })).toMatchObject({ code: "invalid_argument" });
  expect(await ask({ query: "x".repeat(401) })).toMatchObject({ code: "invalid_argument" });
  await app.close();
});
