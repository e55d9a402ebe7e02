// Adapts names and schemas of outside servers for models. A session starts only the servers that it can use.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import {
  decideTool,
  filtersFor,
  mayHaveToolsUnder,
  outsidePrefix,
} from "../../src/core/rules/tool-policy.ts";
import type { McpServerSettings } from "../../src/core/shapes/settings/settings.ts";
import { readDefinitions } from "../../src/tools/mcp/definitions.ts";
import { outsideName } from "../../src/tools/mcp/names.ts";
import { maskOf, plainWords } from "../../src/tools/mcp/plain-text.ts";
import { LIST_STEPS_MAX, plainSchema } from "../../src/tools/mcp/schema.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "./app.ts";
import { httpServer, mcpWith, nodeServer } from "./mcp-kit.ts";

const serverNames = fc.stringMatching(/^[a-z0-9]([-_]?[a-z0-9]){0,11}$/);

test("every MCP tool gets a valid, unique and stable name", () => {
  fc.assert(
    fc.property(serverNames, fc.array(fc.string({ unit: "grapheme", minLength: 1 })), (server, tools) => {
      const names = [...new Set(tools)].map((tool) => outsideName(server, tool));
      for (const name of names) expect(name).toMatch(/^mcp__[a-z0-9_-]+__[a-zA-Z0-9_-]+$/);
      for (const name of names) expect(name.length).toBeLessThanOrEqual(64);
      expect(new Set(names).size).toBe(names.length);
    }),
  );
  expect(outsideName("files", "read_file")).toBe("mcp__files__read_file");
  expect(outsideName("files", "read.file")).toMatch(/^mcp__files__read_file_[0-9a-f]{8}$/);
});

const made = (schema: unknown) => {
  const result = plainSchema(schema, { steps: LIST_STEPS_MAX });
  return result.ok ? result.value.parameters : result.error;
};
const withProperty = (inner: unknown, more = {}) => ({ type: "object", properties: { a: inner }, ...more });
const property = (inner: unknown, more = {}) =>
  (made(withProperty(inner, more)) as { properties?: { a?: unknown } }).properties?.a;

test("schemas are simplified: they have no references, no null, no alternatives at the top and no unknown keywords", () => {
  const shared = { $defs: { word: { type: "string", pattern: "^(a+)+$", description: "A word." } } };
  const word = { type: "string", description: "A word." };
  expect(property({ $ref: "#/$defs/word" }, shared)).toEqual(word);
  expect(property({ type: ["string", "null"] })).toEqual({ type: "string" });
  expect(property({ anyOf: [{ type: "number" }, { type: "null" }] })).toEqual({ type: "number" });
  expect(property({ oneOf: [{ type: "number" }, { type: "string" }] })).toEqual({
    anyOf: [{ type: "number" }, { type: "string" }],
  });
  expect(property({ type: ["string", "number"] })).toEqual({
    anyOf: [{ type: "string" }, { type: "number" }],
  });
  expect(property({ const: "x" })).toEqual({ type: "string", enum: ["x"] });
  expect(property({ const: 7 })).toEqual({ enum: [7] });
  expect(property({ allOf: [{ $ref: "#/$defs/word" }], default: "a" }, shared)).toEqual(word);
  expect(property({ properties: { b: {} }, anyOf: [{ required: ["b"] }, {}] })).toEqual({
    type: "object",
    properties: { b: {} },
  });
  expect(
    made({ oneOf: ["x", "y"].map((kind) => ({ properties: { kind: { const: kind }, [kind]: {} } })) }),
  ).toEqual({
    type: "object",
    properties: {
      kind: {
        anyOf: [
          { type: "string", enum: ["x"] },
          { type: "string", enum: ["y"] },
        ],
      },
      x: {},
      y: {},
    },
  });
  expect(property(true)).toEqual({});
  expect(property({ type: "array", items: [{ type: "string" }] })).toEqual({ type: "array", items: {} });
  expect(made({ type: "object", anyOf: [{ required: ["a"] }], $schema: "x" })).toEqual({
    type: "object",
    properties: {},
  });
  expect(made({ properties: { a: {} }, required: ["a", "gone"] })).toEqual({
    type: "object",
    properties: { a: {} },
    required: ["a"],
  });
});

test("all parts of a tool's schema are joined: choices beside and inside of each other, and properties with several schemas", () => {
  const kinds = (...names: string[]) => ({ oneOf: names.map((name) => ({ properties: { [name]: true } })) });
  expect(made({ type: "object", allOf: [kinds("a", "b"), kinds("c")], ...kinds("d") })).toEqual({
    type: "object",
    properties: { a: {}, b: {}, c: {}, d: {} },
  });
  expect(
    made({ anyOf: [{ oneOf: [kinds("a"), { $ref: "#/$defs/more" }] }], $defs: { more: kinds("b") } }),
  ).toEqual({
    type: "object",
    properties: { a: {}, b: {} },
  });
  const named = { properties: { name: { type: "string" }, ["__proto__"]: {} } };
  const short = { properties: { name: { maxLength: 9, description: "Its name." }, never: false } };
  expect(made({ allOf: [named, short] })).toEqual({
    type: "object",
    properties: {
      name: { type: "string", maxLength: 9, description: "Its name." },
      ["__proto__"]: {},
    },
  });
  expect(made({ oneOf: [{ properties: { a: false } }, { properties: { a: { type: "string" } } }] })).toEqual({
    type: "object",
    properties: { a: { type: "string" } },
  });
});

const header = (name: unknown, type = "string") => ({ type, "x-mcp-header": name });
test.each<[string, object, RegExp | undefined]>([
  ["a header", { properties: { a: header("Region"), b: { properties: { c: header("b") } } } }, undefined],
  ["an argument of this name", { properties: { "x-mcp-header": { type: "object" } } }, undefined],
  ["this name in data", { properties: { a: { default: header("a b") } } }, undefined],
  ["an empty name", { properties: { a: header("") } }, /name of a header/],
  ["a name with a space", { properties: { a: header("a b") } }, /name of a header/],
  ["a name with a line break", { properties: { a: header("a\r\nb") } }, /name of a header/],
  ["a number as a name", { properties: { a: header(1) } }, /name of a header/],
  ["the type number", { properties: { a: header("a", "number") } }, /plain type/],
  ["the type object", { properties: { a: header("a", "object") } }, /plain type/],
  ["the same name twice", { properties: { a: header("Region"), b: header("region") } }, /two arguments/],
  ["a header in a list", { properties: { a: { items: { properties: { b: header("b") } } } } }, /only an arg/],
  ["a header in a choice", { anyOf: [{ properties: { a: header("a") } }] }, /only an argument/],
  ["a header of the whole", header("a", "object"), /only an argument/],
])(
  "a tool with %s in x-mcp-header is offered only if that is valid, or if nothing is sent as headers",
  (_, schema, why) => {
    const tools = [{ name: "t", inputSchema: { type: "object", ...schema } }];
    const settings = httpServer("web", "http://127.0.0.1/mcp");
    const { leftOut } = readDefinitions(settings, tools, true);
    expect(leftOut).toEqual(why === undefined ? [] : [{ tool: "t", why: expect.stringMatching(why) }]);
    expect(readDefinitions(settings, tools).leftOut).toEqual([]);
  },
);

test("the size of recursive and growing schemas is limited", () => {
  const tree = { $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } } };
  expect(property({ $ref: "#/$defs/node" }, tree)).toEqual({ type: "object", properties: { next: {} } });
  const itself = { type: "object", properties: { a: { $ref: "#" } } };
  expect(made(itself)).toMatchObject({ type: "object" });
  // Each level is eight times larger than the one before.
  const eightfold = (at: number) =>
    Object.fromEntries([..."abcdefgh"].map((name) => [name, { $ref: `#/$defs/n${at + 1}` }]));
  const growing = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`n${at}`, { type: "object", properties: eightfold(at) }]),
  );
  const large = made(withProperty({ $ref: "#/$defs/n0" }, { $defs: { ...growing, n30: {} } }));
  expect(large).toMatchObject({ properties: { a: { properties: { h: { type: "object" } } } } });
  expect(JSON.stringify(large).length).toBeLessThan(32 * 1024);
  let deep: unknown = { type: "string" };
  for (let depth = 0; depth < 30; depth++) deep = { type: "array", items: deep };
  expect(JSON.stringify(property(deep)).length).toBeLessThan(2_000);
  for (let depth = 0; depth < 5_000; depth++) deep = { type: "array", items: deep };
  expect(made(withProperty(deep))).toBe("its schema is nested too deeply");
  const wide = Object.fromEntries(
    Array.from({ length: 900 }, (_, at) => [`property_number_${at}`, { type: "string" }]),
  );
  expect(made({ type: "object", properties: wide })).toMatch(/^its schema has \d+ bytes/);
});

/** Counts the values that are read from a schema. */
function counted(value: unknown, tally: { reads: number }): unknown {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, name) {
      if (typeof name === "string" && name !== "toJSON") tally.reads += 1;
      return counted(Reflect.get(target, name), tally);
    },
  });
}

const times = <T>(length: number, value: (at: number) => T): T[] =>
  Array.from({ length }, (_, at) => value(at));
const strange = times(60_000, (at) => `no name ${at}`);
const references = times(900, (at): [string, object] => [`p${at}`, { $ref: "#/$defs/a" }]);

test.each<[string, object]>([
  ["many names", { properties: Object.fromEntries(strange.map((name) => [name, {}])) }],
  ["many required names", { properties: { "a b": {} }, required: strange }],
  ["a long enum", withProperty({ enum: strange })],
  ["many choices", withProperty({ anyOf: strange.map(() => ({ type: "string" })) })],
  ["many types", withProperty({ type: strange.map(() => "string") })],
  [
    "many uses of a large part",
    {
      properties: Object.fromEntries(references),
      $defs: { a: { properties: Object.fromEntries(strange.slice(0, 900).map((name) => [name, {}])) } },
    },
  ],
  [
    "long references",
    withProperty({ anyOf: times(100, (at) => ({ $ref: `#/${at}${"a/".repeat(30_000)}` })) }),
  ],
  ["a long text", withProperty({ description: "x".repeat(2_000_000) })],
])("SC1: of a schema with %s only a bounded part is read", (_, schema) => {
  const tally = { reads: 0 };
  expect(made(counted({ type: "object", ...schema }, tally))).toBe("its schema has too many parts");
  expect(tally.reads).toBeLessThan(50_000);
});

test("every schema of a server is simplified, or refused with a reason", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (inner) => {
      for (const schema of [
        inner,
        withProperty(inner),
        { type: "object", required: inner },
        { $ref: inner },
      ]) {
        const result = made(schema);
        if (typeof result === "string") expect(result).toContain("its schema");
        else expect(result).toMatchObject({ type: "object" });
      }
    }),
    { examples: [[{ toString: false }]] },
  );
});

const PATTERNS = [
  "*",
  "mcp__*",
  "mcp__a__*",
  "mcp__a__r*",
  "mcp__b__*",
  "*__read",
  "*a*",
  "read",
  "MCP__A__read",
];
const filters = fc.record({ allow: fc.subarray(PATTERNS), deny: fc.subarray(PATTERNS) });

test("a session starts a server unless all tools of the server are denied", () => {
  fc.assert(
    fc.property(fc.array(filters), fc.constantFrom("read", "write", "r", "a"), (chosen, tool) => {
      const placed = chosen.map((filter) => ({ where: "tools", filter }));
      if (decideTool(`mcp__a__${tool}`, placed).allowed)
        expect(mayHaveToolsUnder("mcp__a__", placed)).toBe(true);
    }),
  );
  const covers = (deny: string[]) =>
    mayHaveToolsUnder("mcp__a__", [{ where: "", filter: { allow: [], deny } }]);
  expect(["*", "mcp__*", "mcp__a__*"].map((pattern) => covers([pattern]))).toEqual([false, false, false]);
});

function chainOf(...agents: string[]): SpawnChain {
  const links = agents.map((agentId, at) => ({
    key: `s${at}`,
    agentId,
    kind: at === agents.length - 1 ? ("main" as const) : ("other" as const),
    spawnDepth: agents.length - 1 - at,
    ...(at === agents.length - 1 ? {} : { spawnedBy: `s${at + 1}` }),
  }));
  const [own, ...above] = links;
  return own === undefined ? MAIN_CHAIN : [own, ...above];
}

test("a sub-agent has no server that its requester lacks, and a sandboxed session has a server only if a setting allows it", () => {
  const box = { ...agentSettings("ops").sandbox, mode: "all" as const };
  const agents = [agentSettings("main"), agentSettings("research"), agentSettings("ops", { sandbox: box })];
  const servers = [
    nodeServer("all", []),
    nodeServer("some", [], { agents: ["re*"] }),
    nodeServer("bold", [], { allowSandboxed: true }),
  ];
  const settings = settingsWith({ agents, tools: { mcp: mcpWith(servers) } });
  const has = (...chain: string[]) =>
    ["all", "some", "bold"].filter((name) => {
      const placed = filtersFor(chainOf(...chain), settings);
      expect(mayHaveToolsUnder(outsidePrefix(name), placed)).toBe(
        decideTool(`mcp__${name}__x`, placed).allowed,
      );
      return decideTool(`mcp__${name}__x`, placed).allowed;
    });
  expect(has("main")).toEqual(["all", "bold"]);
  expect(has("research")).toEqual(["all", "some", "bold"]);
  expect(has("research", "research")).toEqual(["all", "some", "bold"]);
  expect(has("research", "main")).toEqual(["all", "bold"]);
  expect(has("main", "research")).toEqual(["all", "bold"]);
  expect(has("ops")).toEqual(["bold"]);
  expect(has("research", "ops")).toEqual(["bold"]);
});

test("a text is never cut inside a character, and a server's secrets are redacted in everything that the gateway writes", () => {
  expect(plainWords("🙂".repeat(50), 11)).toBe(`${"🙂".repeat(5)}…`);
  const mask = maskOf(
    httpServer("x", "https://x/y?key=sesame-9", { headers: { authorization: "Bearer sesame-1" } }),
    plainRedactor,
  );
  expect(mask("Bearer sesame-1, then sesame-1 at ?key=sesame-9")).not.toContain("sesame");
  const args = maskOf(nodeServer("x", ["--api-key=sesame-2"]), plainRedactor);
  expect(args("--api-key=sesame-2 sesame-2")).not.toContain("sesame");
});

test("SC1: of a list of tools with growing schemas only a bounded part is read", () => {
  const tally = { reads: 0 };
  const part = (at: number): [string, object] => [`b${at}`, { type: "string" }];
  const inputSchema = {
    type: "object",
    properties: Object.fromEntries(references.slice(0, 30)),
    $defs: { a: { type: "object", properties: Object.fromEntries(times(30, part)) } },
  };
  const list = times(2_000, (at) => ({ name: `t${at}`, inputSchema: counted(inputSchema, tally) }));
  const settings = { name: "bad", tools: [], reach: { kind: "stdio" } } as unknown as McpServerSettings;
  const { tools, leftOut } = readDefinitions(settings, list);
  expect(tools.length).toBeGreaterThan(0);
  expect(tools.length + leftOut.length).toBe(2_000);
  expect(leftOut.at(-1)?.why).toBe("the schemas before it in the server's list have too many parts");
  expect(tally.reads).toBeLessThan(LIST_STEPS_MAX * 5);
});
