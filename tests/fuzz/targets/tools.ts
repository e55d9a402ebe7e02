// Arguments of tool calls of a model or a client: every tool, any arguments.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc, { type Arbitrary } from "fast-check";
import { CODES } from "../../../src/core/shapes/errors.ts";
import type { JsonSchema } from "../../../src/core/shapes/tool.ts";
import { describeTools } from "../../../src/tools/catalog.ts";
import { type App, agentSettings, MAIN_CHAIN, message, openApp, settingsWith } from "../../tools/app.ts";
import { damagedTree } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { typed } from "../schemas.ts";
import { type FuzzTarget, must, shown } from "../target.ts";
import { filesIn, rowCounts, untilIdle } from "../witness.ts";

const CHILD = "agent:main:subagent:00000000-0000-4000-8000-000000000001";
const GROUP = "agent:main:telegram:group:1";
const ARCHIVED = "agent:main:chat:00000000-0000-4000-8000-000000000002";
const CALLERS = ["agent:main:main", "agent:research:main", CHILD, GROUP];

/** Valid arguments of each tool. They are damaged before use. Sends wait only briefly. */
const VALID: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  sessions_list: [
    {},
    { kinds: ["main", "group"], limit: 5, activeMinutes: 60, messageLimit: 3, search: "a", agentId: "main" },
  ],
  sessions_history: [
    { sessionKey: "main" },
    { sessionKey: GROUP, limit: 3, includeTools: true, before: "m-2" },
  ],
  sessions_send: [
    { sessionKey: "agent:research:main", message: "hello", timeoutSeconds: 0 },
    { label: "news", agentId: "main", message: "hello", timeoutSeconds: 5 },
    { sessionKey: "agent:writer:main", message: "hello", runTimeoutSeconds: 5 },
  ],
  sessions_spawn: [
    { task: "count" },
    {
      task: "count",
      label: "l",
      model: "offline/rehearsal",
      thinking: "low",
      runTimeoutSeconds: 5,
      cleanup: "keep",
      sandbox: "inherit",
    },
    {
      task: "count",
      agentId: "research",
      mode: "run",
      attachments: [{ name: "a.txt", content: "x", encoding: "utf8" }],
    },
  ],
  agents_list: [{}],
  session_status: [{}, { sessionKey: "main" }, { runId: "no-such-run" }],
  sessions_search: [
    { query: "hello" },
    { query: "hello world", sessionKey: GROUP, agentId: "main", limit: 3, cursor: "12" },
  ],
  subagents: [
    {},
    { action: "list" },
    { action: "cancel", sessionKey: CHILD },
    { action: "cancel", sessionKey: "all" },
  ],
  read: [
    { path: "notes.txt" },
    { path: "sub/deep.txt", offset: 1, limit: 5 },
    { path: "link/secret.txt" },
    { path: "../canary.txt" },
  ],
  send_file: [
    { path: "notes.txt" },
    { path: "sub/deep.txt", caption: "**look**" },
    { path: "link/secret.txt" },
    { path: "../canary.txt", caption: "" },
  ],
  write: [
    { path: "new.txt", content: "text" },
    { path: "made/new.txt", content: "text" },
    { path: "link/x", content: "text" },
    { path: "../canary.txt", content: "t" },
  ],
  edit: [
    { path: "notes.txt", edits: [{ oldText: "two", newText: "2" }] },
    { path: "link/secret.txt", edits: [{ oldText: "secret", newText: "x" }] },
  ],
  grep: [{ pattern: "two", path: "sub", glob: "*.txt", ignoreCase: true, limit: 3 }],
  glob: [{ pattern: "**/*.txt", path: "link", limit: 3 }],
  fetch: [{ url: "http://127.0.0.1:1/", offset: 3 }],
  search: [{ query: "hello" }, { query: "hello world", count: 3 }],
  cron: [
    { action: "add", message: "tea", at: "in 20 minutes" },
    { action: "add", message: "tea", cron: "30 7 * * 1-5", timeZone: "Europe/Berlin", name: "Tea" },
    { action: "add", message: "tea", every: "2 hours" },
    { action: "list" },
    { action: "remove", id: "job" },
  ],
  memory: [
    { action: "add", text: "likes tea" },
    { action: "replace", text: "likes coffee", oldText: "likes tea" },
    { action: "remove", oldText: "likes" },
    { action: "read" },
  ],
  exec: [{ command: "true" }, { command: "cat notes.txt", timeoutSeconds: 5 }],
};
const NAMES = [...new Set(Object.values(VALID).flatMap((all) => all.flatMap((args) => Object.keys(args))))];
const HARMLESS = ["true", "cat notes.txt", "exit 3", "echo hi >&2"];

/** Writes the same arguments as a careless model: numbers and booleans as text, words in capitals. */
function respelled(args: unknown, which: readonly number[]): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  const entries = Object.entries(args).map(([name, value], index): [string, unknown] => {
    const how = which[index % Math.max(which.length, 1)] ?? 0;
    if (how === 0 || name === "command") return [name, value];
    if (how === 1 && (typeof value === "number" || typeof value === "boolean")) return [name, ` ${value} `];
    const isWord = typeof value === "string" && SPELLED_FREELY.includes(name);
    if (how === 1 && isWord) return [name, value.toUpperCase()];
    return [name, how === 2 ? null : value];
  });
  return Object.fromEntries(entries);
}

const SPELLED_FREELY = ["mode", "cleanup", "sandbox", "action", "thinking"];

/** Turns damaged commands into comments, because commands are really executed. */
function withoutHarm(args: unknown): unknown {
  if (typeof args !== "object" || args === null || !Object.hasOwn(args, "command")) return args;
  const { command } = args as { command: unknown };
  if (
    typeof command !== "string" ||
    command.trim() === "" ||
    command.includes("\0") ||
    HARMLESS.includes(command)
  )
    return args;
  return { ...args, command: `#${command.replaceAll(/[\r\n\v\f\u0085\u2028\u2029]/g, " ")}` };
}

interface ToolInput {
  readonly tool: string;
  readonly caller: string;
  readonly args: unknown;
}

/** Arguments that tools accept although their schema lacks them: spellings of other programs. */
const ACCEPTED: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>> = {
  sessions_spawn: {
    timeoutSeconds: { type: "number" },
    runtime: { type: "string", enum: ["subagent", "acp"] },
  },
};

/** Settings with a search server that does not answer. */
const SEARCHING = { tools: { search: { provider: "searxng", url: "http://127.0.0.1:1/" } } } as const;

const SCHEMAS = new Map(
  describeTools({ settings: settingsWith(SEARCHING), chain: MAIN_CHAIN }).map(({ name, parameters }) => {
    const properties = { ...(parameters.properties as object), ...ACCEPTED[name] };
    return [name, { ...parameters, properties } as JsonSchema];
  }),
);

/** Words that are meaningful to one of the tools. */
const WORDS = [
  ...[
    "main",
    "research",
    "agent:research:main",
    GROUP,
    CHILD,
    ARCHIVED,
    "news",
    "all",
    "list",
    "cancel",
    "keep",
    "delete",
  ],
  ...[
    "run",
    "session",
    "inherit",
    "require",
    "low",
    "offline/rehearsal",
    "utf8",
    "base64",
    "AAAA",
    "a.txt",
    "m-2",
    "hello",
  ],
  ...[
    "notes.txt",
    "sub/../notes.txt",
    "./link/../../canary.txt",
    "loop",
    "loop/x",
    "bytes.bin",
    "/",
    "~",
    "~/x",
    "sub",
  ],
];

/** Values that are usually valid for their argument. */
const VALUES = {
  sessionKey: ["main", GROUP, CHILD, "agent:research:main", "all"],
  agentId: ["main", "research"],
  kinds: [["main"], ["group", "other"]],
  limit: [1, 3, 2_000],
  path: ["notes.txt", "sub/deep.txt", "bytes.bin", "new/file.txt", "link/secret.txt"],
  edits: [[{ oldText: "two", newText: "2" }], [{ oldText: "deep", newText: "" }]],
  model: ["offline/rehearsal"],
  thinking: ["low"],
  mode: ["run"],
  cleanup: ["keep", "delete"],
  sandbox: ["inherit"],
  encoding: ["utf8", "base64"],
  action: ["list", "cancel"],
  timeoutSeconds: [0, 1, 5],
  runTimeoutSeconds: [0, 5],
  thread: [false],
  before: ["m-2"],
  cursor: ["1", "2"],
};

const calls: Arbitrary<ToolInput> = fc.oneof(
  ...Object.entries(VALID).map(([tool, valid]) => ({
    // A lower weight for `exec`, because each command starts a process.
    weight: tool === "exec" ? 1 : 6,
    arbitrary: fc.record({
      tool: fc.oneof({ weight: 60, arbitrary: fc.constant(tool) }, { weight: 1, arbitrary: nastyText(200) }),
      caller: fc.constantFrom(...CALLERS),
      args: fc
        .tuple(
          fc.oneof(
            damagedTree(fc.constantFrom(...valid), NAMES),
            typed(SCHEMAS.get(tool) ?? {}, { names: VALUES, words: WORDS }),
          ),
          fc.array(fc.nat(4), { maxLength: 6 }),
        )
        .map(([args, which]) => respelled(args, which))
        .map(tool === "exec" ? withoutHarm : (args) => args),
    }),
  })),
);

type Plain = Record<string, unknown>;
const isPlain = (value: unknown): value is Plain =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns true if an optional argument is empty, which means that it is absent. */
const isNothing = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) ? value.length === 0 : isBlank(value));

const isBlank = (value: unknown): boolean => typeof value === "string" && /^\s*$/.test(value);

/**
 * A word that is accepted although it is not in the list of thinking levels, because a spawn checks the level
 * itself.
 */
const THINKING_WORD = "xhigh";

/**
 * Returns true if a value can be converted to the type of the schema, in any spelling that a model may use.
 */
function fitsType(schema: JsonSchema, value: unknown): boolean {
  const word = typeof value === "string" ? value.trim().toLowerCase() : undefined;
  if (schema.type === "number") {
    if (word === undefined) return Number.isFinite(value);
    // Accepts only decimal notation, neither hexadecimal numbers nor words.
    return word !== "" && !/[^0-9.e+-]/.test(word) && Number.isFinite(Number(word));
  }
  if (schema.type === "boolean") return typeof value === "boolean" || word === "true" || word === "false";
  const words = schema.enum as readonly string[] | undefined;
  if (word === undefined || words === undefined || words.includes(THINKING_WORD)) return word !== undefined;
  return words.some((one) => one.toLowerCase() === word);
}

/** A second implementation of the check of arguments: unknown names and wrong types. */
function problemsIn(schema: JsonSchema, value: unknown, path: string): { unknown: string[]; wrong: boolean } {
  if (schema.type === "object" && isPlain(schema.properties)) {
    if (!isPlain(value)) return { unknown: [], wrong: true };
    const { properties, required = [] } = schema as {
      properties: Record<string, JsonSchema>;
      required?: readonly string[];
    };
    const isMissing = (name: string): boolean => !Object.hasOwn(value, name) || value[name] === null;
    const inner = Object.keys(value)
      .filter((name) => Object.hasOwn(properties, name) && value[name] !== null)
      .filter((name) => required.includes(name) || !isNothing(value[name]))
      .map((name) => problemsIn(properties[name] as JsonSchema, value[name], `${path}${name}.`));
    const unknown = Object.keys(value).filter((name) => !Object.hasOwn(properties, name));
    return {
      unknown: [...unknown.map((name) => path + name), ...inner.flatMap((one) => one.unknown)],
      wrong: required.some(isMissing) || inner.some((one) => one.wrong),
    };
  }
  if (schema.type === "object") return { unknown: [], wrong: !isPlain(value) };
  if (schema.type === "array") {
    if (!Array.isArray(value)) return { unknown: [], wrong: true };
    const inner = value.map((item, index) =>
      problemsIn(schema.items as JsonSchema, item, `${path.slice(0, -1)}[${index}].`),
    );
    return { unknown: inner.flatMap((one) => one.unknown), wrong: inner.some((one) => one.wrong) };
  }
  return { unknown: [], wrong: !fitsType(schema, value) };
}

/** Checks that the answer is one JSON object. A failure has one of the codes, its fields, and a message. */
function checkShape(result: Plain): void {
  must(isPlain(result), `the result is ${shown(result)}`);
  const text = JSON.stringify(result);
  must(JSON.stringify(JSON.parse(text)) === text, "the result is no JSON");
  if (result.status !== "error" && result.status !== "forbidden") return;
  const { code, error } = result;
  must(typeof code === "string" && Object.hasOwn(CODES, code), `a failure with the code ${shown(code)}`);
  must(CODES[code as keyof typeof CODES].tool === result.status, `${code} has the status ${result.status}`);
  must(typeof error === "string" && error !== "", "a failure without words");
  must(text.length < 100_000, `a failure of ${text.length} characters`);
}

/** Checks that values that the schema forbids are refused, and that unknown arguments are named. */
function checkRefusals(schema: JsonSchema, args: unknown, result: Plain): void {
  const { unknown, wrong } = problemsIn(schema, args, "");
  if (unknown.length === 0 && !wrong) {
    const complains = /must be (?:a string|a number|true or false|an array|an object), got|unknown argument/;
    must(!complains.test(String(result.error)), `readable arguments were refused: ${shown(result)}`);
    return;
  }
  const code = unknown.length > 0 ? "unknown_argument" : "invalid_argument";
  must(result.status === "error" && result.code === code, `${code} expected, got ${shown(result)}`);
  for (const name of unknown.slice(0, 4)) {
    // The error shortens a long name without splitting a character.
    const start = name.length > 60 ? [...name.toWellFormed()].slice(0, 25).join("") : name;
    const quoted = JSON.stringify(start).slice(0, -1);
    must(String(result.error).includes(quoted), `${shown(name)} is not named in ${shown(result.error)}`);
  }
}

/** Checks the limits that the tools document. */
function checkLimits(tool: string, result: Plain): void {
  if (tool === "sessions_list" && Array.isArray(result.sessions)) {
    const rows = result.sessions as { key: string; messages?: unknown }[];
    must(rows.length === result.count && rows.length <= 200, `${rows.length} rows`);
    must(
      rows.every(({ key }) => ![ARCHIVED, "global", "unknown"].includes(key)),
      "an unseen session is listed",
    );
    const bytes = rows.reduce((sum, row) => sum + Buffer.byteLength(JSON.stringify(row.messages ?? [])), 0);
    must(bytes <= 80_000 + rows.length * 2, `${bytes} bytes of messages`);
  }
  if (tool === "sessions_history" && Array.isArray(result.messages)) {
    must(result.messages.length <= 1_000 && Number(result.bytes) <= 80_000, "a history over its limits");
  }
  if (tool === "sessions_search" && Array.isArray(result.hits))
    must(result.hits.length <= 100, `${result.hits.length} hits`);
}

/** Creates files outside the workspace, which must stay unchanged. */
function fillOutside(base: string): void {
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "canary.txt"), "canary");
  writeFileSync(join(base, "outside", "secret.txt"), "secret");
}

/** Creates a workspace with files, a symbolic link out of it and a cyclic link. */
function fill(base: string): void {
  rmSync(join(base, "workspace"), { recursive: true, force: true });
  mkdirSync(join(base, "workspace", "sub"), { recursive: true });
  writeFileSync(join(base, "workspace", "notes.txt"), "one\ntwo\nthree\n");
  writeFileSync(join(base, "workspace", "sub", "deep.txt"), "deep");
  writeFileSync(join(base, "workspace", "bytes.bin"), Buffer.from([0, 1, 2, 0xff]));
  symlinkSync("../outside", join(base, "workspace", "link"));
  symlinkSync("loop", join(base, "workspace", "loop"));
  chmodSync(join(base, "workspace", "bytes.bin"), 0o600);
}

async function openAgents(base: string): Promise<App> {
  const workspace = join(base, "workspace");
  const agents = ["main", "research", "writer"].map((id) =>
    agentSettings(id, { workspace, subagents: { allowAgents: ["*"] } }),
  );
  const subagents = { allow: ["*"], deny: [] };
  const app = await openApp({ agents, tools: { ...settingsWith(SEARCHING).tools, subagents } });
  await app.add(GROUP, { label: "news", lastRoute: { channel: "telegram", to: "1" } });
  await app.add(CHILD, { spawnedBy: "agent:main:main", spawnDepth: 1 });
  await app.add(ARCHIVED, { archivedAt: 1, label: "news" });
  const group = await app.session(GROUP);
  await app.say(
    group,
    message("hello world", "user", "m-1"),
    message("hello you", "assistant", "m-2"),
    message("bye", "user", "m-3"),
  );
  return app;
}

export const toolArguments: FuzzTarget<ToolInput> = {
  name: "tool-arguments",
  proves:
    "one JSON object whatever the arguments; what is unknown is named; a refused call writes nothing anywhere",
  inputs: calls,
  roundRuns: 300,
  ciRuns: 800,
  async open() {
    const base = mkdtempSync(join(tmpdir(), "parley-fuzz-tools-"));
    fillOutside(base);
    fill(base);
    const app = await openAgents(base);
    const { store } = app.engine;
    must(
      [...SCHEMAS.keys()].every((name) => name in VALID),
      `a tool without valid arguments here: ${[...SCHEMAS.keys()]}`,
    );
    const outside = () =>
      filesIn(base).filter((line) => !line.startsWith("workspace/") && !line.startsWith("workspace:"));
    const beside = outside().join("\n");
    return {
      async check({ tool, caller, args }) {
        const [rows, files] = [await rowCounts(store), filesIn(base).join("\n")];
        const result = await app.call(caller, tool, args);
        checkShape(result);
        const schema = SCHEMAS.get(tool);
        if (schema === undefined) must(result.code === "unknown_tool", `${shown(tool)} is taken for a tool`);
        else if (result.code !== "tool_denied") checkRefusals(schema, args, result);
        checkLimits(tool, result);
        const refused =
          (result.status === "error" || result.status === "forbidden") && result.runId === undefined;
        const now = filesIn(base).join("\n");
        if (refused)
          must((await rowCounts(store)) === rows, `refused with ${result.code}, and rows were written`);
        // A command that failed was executed, so it may have changed files.
        if (refused && tool !== "exec")
          must(now === files, `refused with ${result.code}, and files were written: ${now}`);
        must(outside().join("\n") === beside, "something outside the workspace was changed");
        if (now !== files) fill(base);
        await untilIdle(store);
      },
      async close() {
        await app.close();
        rmSync(base, { recursive: true, force: true });
      },
    };
  },
};
