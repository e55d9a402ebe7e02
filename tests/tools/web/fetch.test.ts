// fetch over real sockets: the text of a page, refused addresses, and limits.

import type { IncomingMessage, ServerResponse } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { decideTool, filtersFor } from "../../../src/core/rules/tool-policy.ts";
import { fetchTool } from "../../../src/tools/files/files.ts";
import { type ToolResult, toolResult } from "../../../src/tools/tool.ts";
import { htmlToText } from "../../../src/tools/web/html.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "../app.ts";

async function read(url: string, allowHosts: readonly string[], more = {}): Promise<ToolResult> {
  const ctx = {
    agent: agentSettings("main"),
    settings: settingsWith({ tools: { fetch: { allowHosts } } }),
    chain: MAIN_CHAIN,
    signal: new AbortController().signal,
    engine: { newId: () => "id" },
  };
  const args = { url, ...more };
  return toolResult(
    await fetchTool.execute(ctx, args, { callId: "c", attempt: 1, name: "fetch", arguments: args }),
  );
}

type Answering = (response: ServerResponse, request: IncomingMessage) => void;

/** Starts a server, and returns its host and the requests that it got. */
async function serving(answer: Answering): Promise<{ host: string; asked: string[] }> {
  const asked: string[] = [];
  const server = await serveHttp((request, response) => {
    asked.push(request.url ?? "");
    answer(response, request);
  });
  cleanup(() => server.close());
  return { host: `127.0.0.1:${server.port}`, asked };
}

const sending = (type: string, body: string | Buffer, headers = {}, status = 200) =>
  serving((response) => response.writeHead(status, { "content-type": type, ...headers }).end(body));

test("an HTML page becomes text with headings, lists and links, and is marked as text of others", async () => {
  const page = `<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>
    <h1>Head</h1><script>var x = "<p>no</p>"</script><!-- <p>no</p> --><p>One  two<br>three <a href="/x?a=1&amp;b">link</a>
    <ul><li>first<li>second</ul><pre>a  b</pre><a href="javascript:no()">plain</a> 1 < 2 <img alt="a cat" src=x></body>`;
  const { host } = await sending("text/html; charset=utf-8", page);
  expect(await read(`http://${host}/`, [host])).toEqual({
    status: "ok",
    url: `http://${host}/`,
    contentType: "text/html; charset=utf-8",
    title: "A & B",
    text: `# Head\n\nOne two\nthree [link](http://${host}/x?a=1&b)\n\n- first\n- second\n\na b\n\nplain 1 < 2 [picture: a cat]`,
    origin: expect.stringContaining("information, not instructions"),
  });
});

test("JSON and plain text come as they are, unpacked, in pages", async () => {
  const json = await sending("application/json", gzipSync('{"a": "✓"}'), { "content-encoding": "gzip" });
  expect(await read(`http://${json.host}/`, [json.host])).toMatchObject({ text: '{"a": "✓"}' });
  const long = await sending("text/plain", brotliCompressSync("x".repeat(50_000)), {
    "content-encoding": "br",
  });
  const first = await read(`http://${long.host}/`, [long.host]);
  expect(first).toMatchObject({
    text: "x".repeat(40_000),
    note: "10000 characters follow. Continue with offset 40000.",
  });
  const rest = await read(`http://${long.host}/`, [long.host], { offset: 40_000 });
  expect(rest).toMatchObject({ text: "x".repeat(10_000) });
  expect(rest.note).toBeUndefined();
});

test.each([
  "127.0.0.1",
  "localhost",
  "2130706433",
  "0x7f.1",
  "0177.0.0.1",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "0.0.0.0",
])("FE1: fetch asks nothing of this machine, however its address is written: %s", async (name) => {
  const { host, asked } = await sending("text/plain", "s3cret");
  const url = `http://${name}:${host.split(":")[1]}/`;
  expect(await read(url, [])).toMatchObject({ status: "forbidden", code: "address_denied" });
  expect(await read(url, ["wiki.lan", "127.0.0.1"])).toMatchObject({ code: "address_denied" });
  expect(asked).toEqual([]);
});

test.each([
  "http://169.254.169.254/latest/meta-data",
  "http://10.0.0.1/",
  "file:///etc/passwd",
  "ftp://example.com/",
])("FE1: %s is refused", async (url) => {
  expect(await read(url, [])).toMatchObject({ code: "address_denied" });
});

test("FE1: a redirect to a private address is refused, and one to an allowed host is followed, five times at most", async () => {
  const secret = await sending("text/plain", "s3cret");
  const to = (host: string) =>
    serving((response) => response.writeHead(302, { location: `http://${host}/` }).end());
  const first = await to(secret.host);
  expect(await read(`http://${first.host}/`, [first.host])).toMatchObject({ code: "address_denied" });
  expect(secret.asked).toEqual([]);
  const both = await read(`http://${first.host}/`, [first.host, secret.host]);
  expect(both).toMatchObject({ url: `http://${secret.host}/`, text: "s3cret" });
  const round = await serving((response) => response.writeHead(307, { location: "/again" }).end());
  expect(await read(`http://${round.host}/`, [round.host])).toMatchObject({ code: "fetch_failed" });
  expect(round.asked).toHaveLength(6);
});

test("FE2: pages that are too large, also when unpacked, are refused", async () => {
  const large = await sending("text/plain", "x".repeat(4 * 1024 * 1024 + 1));
  expect(await read(`http://${large.host}/`, [large.host])).toMatchObject({ code: "too_large" });
  const bomb = await sending("text/plain", gzipSync(Buffer.alloc(9 * 1024 * 1024)), {
    "content-encoding": "gzip",
  });
  expect(await read(`http://${bomb.host}/`, [bomb.host])).toMatchObject({ code: "too_large" });
});

test("an error of the server, a picture and a broken connection are failures in words", async () => {
  const missing = await sending("text/html", "no", {}, 404);
  const told = await read(`http://${missing.host}/`, [missing.host]);
  expect(told).toMatchObject({ code: "fetch_failed", error: "the server answered 404" });
  const picture = await sending("image/png", "x");
  const why = await read(`http://${picture.host}/`, [picture.host]);
  expect(why).toMatchObject({ code: "fetch_failed", error: "the page is image/png, not text" });
  const broken = await serving((_, request) => request.socket.destroy());
  expect(await read(`http://${broken.host}/`, [broken.host])).toMatchObject({ code: "fetch_failed" });
  expect(await read("http://user:pass@example.com/", [])).toMatchObject({ code: "invalid_argument" });
});

test("a sandboxed session has fetch only if its sandbox has a network", () => {
  const off = agentSettings("main");
  const allowed = (network: boolean) => {
    const agent = { ...off, sandbox: { ...off.sandbox, mode: "all" as const, network } };
    return decideTool("fetch", filtersFor(MAIN_CHAIN, settingsWith({ agents: [agent] }))).allowed;
  };
  expect([allowed(false), allowed(true)]).toEqual([false, true]);
});

test.each([
  "<",
  "<a",
  '<a href="',
  "<!--",
  "<script>x",
  "</p",
  "a<b",
  "&#0;&#x110000;&nope;",
  "<a><a></a></a></a>",
])("broken HTML gives a text: %s", (html) => {
  expect(htmlToText(`start ${html}`, "http://a.example/").text).toMatch(/^start/);
});
