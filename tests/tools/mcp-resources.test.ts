// Resources and prompts of outside MCP servers, which agents use as tools.

import { expect, test } from "vitest";
import { quietWorld } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import {
  badServer,
  httpServer,
  type More,
  mcpWith,
  nodeServer,
  openOutside,
  openWitness,
  REFERENCE,
  startReference,
} from "./mcp-kit.ts";

const TEXT = "demo://resource/dynamic/text/1";
const IMAGE = Buffer.concat([
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  Buffer.alloc(8),
]).toString("base64");

/** A program of revision 2026-07-28, made with the SDK. It has no tools. */
const MODERN = `
  import { McpServer, ResourceTemplate } from "${import.meta.resolve("@modelcontextprotocol/server")}";
  import { serveStdio } from "${import.meta.resolve("@modelcontextprotocol/server/stdio")}";
  serveStdio(() => {
    const server = new McpServer({ name: "modern", version: "1" });
    const read = (uri) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "of " + uri.href }] });
    server.registerResource("menu", "shop://menu", { description: "Today's menu" }, read);
    server.registerResource("dish", new ResourceTemplate("shop://dish/{id}", { list: undefined }), {}, read);
    server.registerPrompt("order", { description: "Orders a dish" }, () => ({
      messages: [{ role: "user", content: { type: "text", text: "Order a dish." } }],
    }));
    return server;
  });
`;

const announcing = (capabilities: object, more: Record<string, unknown> = {}) => ({
  initialize: { protocolVersion: "2025-06-18", capabilities, serverInfo: { name: "bad", version: "1" } },
  ...more,
});

type Other = More & { readonly env?: Readonly<Record<string, string>> };

/** Opens a server whose answers are these results by method. */
async function openBad(results: Record<string, unknown>, more: Other = {}, deeds = {}, mcp = {}) {
  const witness = await openWitness();
  const bad = badServer("bad", { witness: witness.port, results, ...deeds }, more);
  const outside = openOutside(mcpWith([bad], mcp), quietWorld());
  const names = async () =>
    (await outside.set()).tools.map(({ spec }) => spec.name.replace("mcp__bad__", ""));
  return { outside, names, witness };
}

test.each(["stdio", "http"])("an agent lists and reads resources, and gets prompts, over %s", async (way) => {
  const reference =
    way === "stdio"
      ? nodeServer("every", [REFERENCE, "stdio"])
      : httpServer("every", await startReference(await freePort()));
  const outside = openOutside(mcpWith([reference]), quietWorld());
  const { tools } = await outside.set();
  const specOf = (name: string) => tools.find(({ spec }) => spec.name === `mcp__every__${name}`)?.spec;
  expect(specOf("read_resource")).toMatchObject({ idempotent: true, parameters: { required: ["uri"] } });
  expect(specOf("get_prompt")?.description).toContain(
    "- args-prompt(city: Name of the city; state?) Arguments Prompt: A prompt with",
  );
  const call = (name: string, args = {}) => outside.call(`mcp__every__${name}`, args);

  const listed = String((await call("list_resources")).text);
  expect(listed).toContain("demo://resource/static/document/architecture.md");
  expect(listed).toMatch(/^2 templates:\ndemo:\/\/resource\/dynamic\/text\/{resourceId} Dynamic Text/m);
  const few = String((await call("list_resources", { contains: "STARTUP" })).text);
  expect(few).toMatch(/^1 resources:\ndemo:\/\/resource\/static\/document\/startup.md/);
  expect(few.split("\n").length).toBe(2);

  expect((await call("read_resource", { uri: TEXT })).text).toMatch(
    /^\[resource demo:\/\/resource\/dynamic\/text\/1 \(text\/plain\)\]\nResource 1: /,
  );
  const blob = await call("read_resource", { uri: TEXT.replace("text", "blob") });
  expect(blob).toMatchObject({ status: "ok", notShown: [expect.stringContaining("dynamic/blob/1")] });
  const asked = await call("get_prompt", { name: "args-prompt", arguments: { city: "Rome" } });
  expect(asked).toEqual({ status: "ok", text: "[user]\nWhat's weather in Rome?" });
  // Prompts have only texts: a number becomes one.
  const embedded = await call("get_prompt", {
    name: "resource-prompt",
    arguments: { resourceType: "Text", resourceId: 1 },
  });
  expect(embedded.text).toContain(`[resource ${TEXT} (text/plain)]\nResource 1: `);

  const wrong = [
    [await call("read_resource", { uri: "demo://none" }), "demo://none"],
    [await call("read_resource"), "uri is missing"],
    [await call("get_prompt", { name: "none" }), "none"],
    [await call("get_prompt"), "name is missing"],
    [await call("get_prompt", { name: "args-prompt" }), "args-prompt"],
    [await call("get_prompt", { name: "args-prompt", arguments: "Rome" }), "arguments is not an object"],
  ] as const;
  for (const [result, words] of wrong) {
    expect(result).toMatchObject({ status: "error", code: "mcp_failed" });
    expect(result.error).toContain(words);
    expect(result.hint).toBeUndefined();
  }
});

test("a server of revision 2026-07-28 with resources and prompts only is ready and useful", async () => {
  const args = ["--input-type=module", "-e", MODERN];
  const outside = openOutside(mcpWith([nodeServer("shop", args)]), quietWorld());
  expect(await outside.inspect()).toEqual([{ server: "shop", usable: true, text: "3 tools" }]);
  expect((await outside.call("mcp__shop__list_resources")).text).toBe(
    "1 templates:\nshop://dish/{id} dish\n1 resources:\nshop://menu menu: Today's menu",
  );
  const dish = await outside.call("mcp__shop__read_resource", { uri: "shop://dish/7" });
  expect(dish.text).toBe("[resource shop://dish/7 (text/plain)]\nof shop://dish/7");
  expect((await outside.call("mcp__shop__get_prompt", { name: "order" })).text).toBe("[user]\nOrder a dish.");
  const none = await outside.call("mcp__shop__read_resource", { uri: "shop://none" });
  expect(none.error).toMatch(/^the MCP server "shop" answered with an error: .*shop:\/\/none/);
});

test("a server gets only the tools for what it announces; its own tools and the configuration win", async () => {
  const inputSchema = { type: "object" };
  const own = {
    tools: [{ name: "get_prompt", description: "Its own.", inputSchema }, { name: "read_resource" }],
  };
  const all = announcing({ tools: {}, resources: {}, prompts: {} }, { "prompts/list": { prompts: [] } });
  expect(await (await openBad(announcing({ resources: {} }))).names()).toEqual([
    "list_resources",
    "read_resource",
  ]);
  const { names, outside } = await openBad({ ...all, "tools/list": own });
  expect(await names()).toEqual(["get_prompt", "read_resource", "list_resources"]);
  expect((await outside.call("mcp__bad__get_prompt", { name: "x" })).text).toContain(
    'get_prompt {"name":"x"}',
  );
  expect(await (await openBad(all, { tools: ["read_*"] })).names()).toEqual(["read_resource"]);
});

test("answers are limited, cleaned and redacted like those of tools, and broken entries do no harm", async () => {
  const reach = { env: { API_TOKEN: "sesame-open-7788" } };
  const image = { type: "image", data: IMAGE, mimeType: "image/png" };
  const many = Array.from({ length: 90 }, (_, at) => ({ name: `p${at}`, description: "d".repeat(500) }));
  const { outside } = await openBad(
    announcing(
      { resources: {}, prompts: {} },
      {
        "resources/list": { resources: [7, { uri: "a://1", name: "one\u202e\ntwo" }], nextCursor: "again" },
        "resources/templates/list": { resourceTemplates: "none" },
        "resources/read": {
          contents: [
            { uri: "a://1", text: `sesame-open-7788 ${"x".repeat(5_000)}` },
            { uri: "a://2", mimeType: "image/png", blob: IMAGE },
            null,
          ],
        },
        "prompts/list": {
          prompts: [null, { name: "first", arguments: [3, { name: "a", required: true }] }, ...many],
        },
        "prompts/get": { messages: [{ role: "owner", content: image }, { role: "assistant" }, 5] },
      },
    ),
    reach,
    {},
    { maxResultBytes: 1_000 },
  );
  const description = (await outside.set()).tools.find(({ spec }) => spec.name.endsWith("get_prompt"))?.spec
    .description;
  expect(description?.length).toBeLessThan(2_100);
  expect(description).toContain("- first(a) first");
  expect(description).toMatch(/\nand \d+ more$/);
  expect((await outside.call("mcp__bad__list_resources")).text).toBe(
    "2 resources:\na://1 one two\na://1 one two",
  );
  const read = await outside.call("mcp__bad__read_resource", { uri: "a://1" });
  expect(read).toMatchObject({
    status: "ok",
    truncated: expect.stringMatching(/^the first 1000 of \d+ bytes$/),
    notShown: ["a resource without contents"],
    images: [{ mimeType: "image/png" }],
  });
  expect(JSON.stringify(read)).not.toContain("sesame");
  const prompt = await outside.call("mcp__bad__get_prompt", { name: "first" });
  expect(prompt).toMatchObject({ status: "ok", text: "[user]\n[assistant]\n[user]", images: [{}] });
});

test("an announced change of the prompts is seen, and a server whose list of prompts fails keeps its tools", async () => {
  const capabilities = { prompts: { listChanged: true }, tools: {} };
  const listing = (name: string) => announcing(capabilities, { "prompts/list": { prompts: [{ name }] } });
  const tools = [{ name: "change", inputSchema: { type: "object" } }];
  const { outside } = await openBad(
    listing("old-one"),
    {},
    { tools, toolsLater: tools, resultsLater: listing("new-one") },
  );
  const described = async () =>
    (await outside.set()).tools.find(({ spec }) => spec.name === "mcp__bad__get_prompt")?.spec.description;
  expect(await described()).toContain("- old-one()");
  await outside.call("mcp__bad__change", { list: "prompts" });
  expect(await described()).toContain("- new-one()");
  const failing = await openBad(announcing(capabilities), {}, { tools });
  expect(await failing.names()).toEqual(["change", "get_prompt"]);
});
