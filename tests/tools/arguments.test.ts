// Invalid arguments: each argument of each session tool is made invalid in many ways, and always gives a
// clear error and no exception.

import { afterAll, beforeAll, expect } from "vitest";
import { fail, toolFailure } from "../../src/core/shapes/errors.ts";
import { readArguments } from "../../src/tools/arguments.ts";
import { describeTools } from "../../src/tools/catalog.ts";
import { both as test } from "../kit/deep.ts";
import { type App, MAIN_CHAIN, openApp, settingsWith } from "./app.ts";

let app: App;
const MAIN = "agent:main:main";

beforeAll(async () => {
  app = await openApp();
});
afterAll(() => app.close());

/** A valid call of each tool. A test makes one of its arguments invalid. */
const GOOD: Record<string, Record<string, unknown>> = {
  sessions_list: {},
  sessions_history: { sessionKey: "main" },
  sessions_send: { sessionKey: "agent:research:main", message: "hello", timeoutSeconds: 0 },
  agents_list: {},
  session_status: {},
  sessions_search: { query: "hello" },
};

const settings = settingsWith();
const SPECS = describeTools({ settings, chain: MAIN_CHAIN }).filter(({ name }) => name in GOOD);

type Schema = { properties: Record<string, { type: string }>; required?: string[] };

const WRONG: Record<string, unknown[]> = {
  string: [5, true, ["main"], {}, Number.NaN],
  number: ["five", "5s", "0x10", "Infinity", true, [1], {}, Number.NaN, Number.POSITIVE_INFINITY],
  boolean: ["yes", 1, [true], {}],
  array: ["group", 5, {}, true],
};

const WRONG_CASES = SPECS.flatMap(({ name, parameters }) =>
  Object.entries((parameters as unknown as Schema).properties).flatMap(([argument, { type }]) =>
    (WRONG[type] ?? []).map((value) => ({ name, argument, value })),
  ),
);

test.each(WRONG_CASES)(
  "tool $name refuses $argument = $value, and the error names the argument",
  async ({ name, argument, value }) => {
    const result = await app.call(MAIN, name, { ...GOOD[name], [argument]: value });
    expect(result).toMatchObject({ status: "error", code: "invalid_argument" });
    expect(result.error).toContain(`${argument} must be `);
  },
);

const OPTIONAL = SPECS.flatMap(({ name, parameters }) => {
  const { properties, required = [] } = parameters as unknown as Schema;
  const optional = Object.keys(properties).filter((argument) => !required.includes(argument));
  return optional.map((argument) => ({ name, argument }));
});

test.each(OPTIONAL)("A2: tool $name treats an empty $argument as absent", async ({ name, argument }) => {
  const own = await openApp();
  const { [argument]: _, ...rest } = GOOD[name] ?? {};
  const { status, code, error } = await own.call(MAIN, name, rest);
  for (const nothing of [null, "", "  \n", []]) {
    const result = await own.call(MAIN, name, { ...rest, [argument]: nothing });
    expect(result).toMatchObject(status === undefined ? {} : { status });
    expect({ code: result.code, error: result.error }).toEqual({ code, error });
  }
  await own.close();
});

test("A3: numbers, booleans and enum values are accepted in every spelling that models use", async () => {
  const schema = {
    type: "object",
    properties: {
      limit: { type: "number" },
      deep: { type: "boolean" },
      mode: { type: "string", enum: ["run", "session"] },
      kinds: { type: "array", items: { type: "string", enum: ["main", "group"] } },
      nested: { type: "object", properties: { depth: { type: "number" }, note: { type: "string" } } },
      text: { type: "string" },
    },
    required: ["text"],
  };
  const read = async (args: Record<string, unknown>) => {
    const result = await readArguments(schema, { text: "", ...args });
    return result.ok ? result.value : result.error;
  };
  expect(await read({ limit: " 5 ", deep: " TRUE", mode: " Session " })).toEqual({
    text: "",
    limit: 5,
    deep: true,
    mode: "session",
  });
  expect(await read({ limit: "-1.5e2", deep: "false" })).toEqual({ text: "", limit: -150, deep: false });
  expect(await read({ kinds: ["MAIN", " group"] })).toEqual({ text: "", kinds: ["main", "group"] });
  expect(await read({ nested: { depth: "3", note: null } })).toEqual({ text: "", nested: { depth: 3 } });
  expect(await read({ mode: "both" })).toBe('mode must be one of run, session, got "both"');
  expect(await read({ text: null })).toBe("text is required");
});

test("A4: one error names every wrong argument, including a limit that is too small", async () => {
  const result = await app.call(MAIN, "sessions_list", {
    kinds: ["direct"],
    limit: 0,
    messageLimit: "many",
    activeMinutes: -1,
    agentId: "no such/agent",
    bogus: 1,
  });
  expect(result).toMatchObject({ status: "error", code: "unknown_argument" });
  for (const name of ["kinds[0]", "limit", "messageLimit", "activeMinutes", "agentId", "bogus"]) {
    expect(result.error).toContain(name);
  }
});

test.each(SPECS)(
  "for an unknown argument, tool $name reports the argument and lists the valid ones",
  async ({ name, parameters }) => {
    const result = await app.call(MAIN, name, { ...GOOD[name], bogusOne: 1, zz: null });
    expect(result).toMatchObject({ status: "error", code: "unknown_argument" });
    expect(result.error).toContain('"bogusOne"');
    expect(result.error).toContain('"zz"');
    for (const known of Object.keys((parameters as unknown as Schema).properties)) {
      expect(result.hint).toContain(known);
    }
  },
);

const REQUIRED = SPECS.flatMap(({ name, parameters }) =>
  ((parameters as unknown as Schema).required ?? []).map((argument) => ({ name, argument })),
);

test.each(REQUIRED)(
  "tool $name without $argument reports that the argument is required",
  async ({ name, argument }) => {
    const { [argument]: _, ...rest } = GOOD[name] ?? {};
    const result = await app.call(MAIN, name, rest);
    expect(result).toMatchObject({ status: "error", code: "invalid_argument" });
    expect(result.error).toContain(`${argument} is required`);
  },
);

test.each([null, [], "text", 5])("arguments that are not an object (%j) are refused", async (args) => {
  const result = await app.call(MAIN, "sessions_list", args);
  expect(result).toMatchObject({ status: "error", code: "invalid_argument" });
  expect(result.error).toContain("must be one JSON object");
});

const OUT_OF_BOUNDS: [string, Record<string, unknown>, string][] = [
  ["sessions_list", { limit: 0 }, "limit must be at least 1"],
  ["sessions_list", { limit: -5 }, "limit must be at least 1"],
  ["sessions_list", { limit: 0.4 }, "limit must be at least 1"],
  ["sessions_list", { messageLimit: -1 }, "messageLimit must be at least 0"],
  ["sessions_list", { activeMinutes: 0 }, "activeMinutes must be more than 0"],
  ["sessions_list", { activeMinutes: -1 }, "activeMinutes must be more than 0"],
  [
    "sessions_list",
    { kinds: ["direct"] },
    'kinds[0] must be one of main, group, cron, hook, node, other, got "direct"',
  ],
  ["sessions_list", { kinds: ["main", "x".repeat(1_000)] }, "kinds[1] must be one of"],
  ["sessions_list", { search: "x".repeat(201) }, "search has 201 characters; the maximum is 200"],
  ["sessions_list", { agentId: "no such/agent" }, "agentId must be 1 to 64"],
  ["sessions_list", { cursor: "made up" }, "cursor was not returned by this tool"],
  ["sessions_list", { cursor: "WyIxIiwyXQ" }, "cursor was not returned by this tool"],
  ["sessions_history", { sessionKey: "" }, "sessionKey must not be empty"],
  ["sessions_history", { sessionKey: "   " }, "sessionKey must not be empty"],
  ["sessions_history", { sessionKey: `agent:main:${"x".repeat(600)}` }, "the maximum is 512"],
  ["sessions_history", { sessionKey: "main", limit: 0 }, "limit must be at least 1"],
  ["sessions_send", { sessionKey: "main", message: "" }, "message must not be empty"],
  ["sessions_send", { sessionKey: "main", message: " \n" }, "message must not be empty"],
  [
    "sessions_send",
    { sessionKey: "main", message: "x", timeoutSeconds: -1 },
    "timeoutSeconds must be 0 or more",
  ],
  ["sessions_send", { message: "x" }, "sessionKey or label is required"],
  ["sessions_send", { sessionKey: "main", label: "x", message: "x" }, "not both"],
  [
    "sessions_send",
    { sessionKey: "main", agentId: "research", message: "x" },
    "agentId is valid only with label",
  ],
  ["sessions_send", { label: "x".repeat(201), message: "x" }, "label has 201 characters"],
  ["sessions_send", { label: "x", agentId: "A B", message: "x" }, "agentId must be 1 to 64"],
  ["session_status", { sessionKey: "main", runId: "r" }, "give only one of sessionKey, runId and messageId"],
  ["sessions_search", { query: "  " }, "query must not be empty"],
  ["sessions_search", { query: "x".repeat(501) }, "query has 501 characters"],
  ["sessions_search", { query: "x", limit: -1 }, "limit must be at least 1"],
  ["sessions_search", { query: "x", cursor: "-1" }, "cursor was not returned by this tool"],
  ["sessions_search", { query: "x", cursor: "1 or 1=1" }, "cursor was not returned by this tool"],
];

test.each(OUT_OF_BOUNDS)("%s %j: %s", async (name, args, text) => {
  const result = await app.call(MAIN, name, args);
  expect(result.status).toBe("error");
  expect(result.error).toContain(text);
});

test("an error lists valid values only if its hint does not name them already", async () => {
  const result = await app.call(MAIN, "sessions_history", { sessionKey: "agent:reserch:main" });
  expect(result).toMatchObject({ status: "error", code: "session_not_found" });
  expect(result.hint).toContain("agent:research:main");
  expect(result).not.toHaveProperty("closest");
  const unnamed = toolFailure(fail("session_not_found", "none", { details: { closest: ["main"] } }));
  expect(unnamed).toMatchObject({ closest: ["main"] });
});

test("a message is too large if it has more than 256 KB, counted in bytes", async () => {
  const message = "é".repeat(131_073);
  const result = await app.call(MAIN, "sessions_send", { sessionKey: "main", message });
  expect(result).toMatchObject({ status: "error", code: "too_large" });
  expect(result.error).toContain("262146 bytes");
});

test.each([
  ["sessions_list", { limit: 1e9, messageLimit: 1e9, activeMinutes: 1e300 }],
  ["sessions_history", { sessionKey: "main", limit: Number.MAX_VALUE }],
  ["sessions_search", { query: "x", limit: 1e9 }],
])("tool %s accepts huge numbers and lowers them to its limits", async (name, args) => {
  expect((await app.call(MAIN, name, args)).status).toBeUndefined();
});

test("many unknown arguments are counted, and suggestions are computed only for those that the error names", async () => {
  const args = Object.fromEntries(Array.from({ length: 300_000 }, (_, at) => [`unknown${at}`, at]));
  const names = Array.from({ length: 20 }, (_, at) => [`aRatherLongArgumentName${at}`, { type: "string" }]);
  const result = await readArguments({ type: "object", properties: Object.fromEntries(names) }, args);
  expect(result).toMatchObject({ ok: false, code: "unknown_argument" });
  expect(result.ok ? "" : result.error).toContain("and 299992 more");
});

test("an error in a nested argument names its path", async () => {
  const item = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const schema = { type: "object", properties: { files: { type: "array", items: item } } };
  const result = await readArguments(schema, { files: [{ name: "a" }, { nam: 1 }] });
  expect(result.ok ? "" : result.error).toBe(
    'unknown argument "files[1].nam" (did you mean "files[1].name"?); files[1].name is required',
  );
});
