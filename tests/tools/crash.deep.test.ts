// The process dies during a tool call, which may have had its effect, although its result is not stored. Each
// tool is tested.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { optional } from "../../src/core/optional.ts";
import { textOf, toolCallsOf } from "../../src/core/shapes/message.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { isSubagentKey } from "../../src/core/shapes/session-key.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { listRuns } from "../../src/store/queries/runs/runs.ts";
import { readRun } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { toolsFor } from "../../src/tools/catalog.ts";
import { openOutsideServers } from "../../src/tools/mcp/servers.ts";
import { cleanup, endOf, openStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { dyingStore, startRealEngine } from "../kit/engine/real-engine.ts";
import { type ScriptedAnswer, scriptedModel } from "../kit/scripted-model.ts";
import { agentSettings, type Choices, MAIN_CHAIN, settingsWith } from "./app.ts";
import { badServer, mcpWith, openWitness } from "./mcp-kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const RUN = "the-run";

interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/**
 * A scripted model. It makes the call after `call:`, then reports the result. It never answers `hang`, and
 * answers pong to other messages.
 */
function answerTo(texts: {
  input: string;
  result: string | undefined;
}): ScriptedAnswer | Promise<ScriptedAnswer> {
  const { input, result } = texts;
  if (input.startsWith("hang")) return new Promise<never>(() => {});
  if (!input.startsWith("call:")) return "pong";
  return result ?? { toolCalls: [JSON.parse(input.slice("call:".length)) as Call] };
}

const model = () =>
  scriptedModel(({ entries }) => {
    const messages = entries.filter((entry) => "role" in entry);
    const at = messages.findLastIndex((message) => message.role === "user");
    const result = messages.slice(at + 1).findLast((message) => message.role === "toolResult");
    const input = messages[at];
    return answerTo({ input: input === undefined ? "" : textOf(input), result: result && textOf(result) });
  });

/** Returns whether a transaction writes the run's tool result. */
const hasResult = async (tx: Tx): Promise<boolean> => {
  const results = tx.selectFrom("messages").select("id").where("role", "=", "toolResult");
  return (await results.where("run_id", "=", RUN).executeTakeFirst()) !== undefined;
};

interface Life {
  readonly engine: Engine;
  readonly store: Store;
  /** Resolves when the process has died during the call. */
  readonly died: Promise<void>;
}

/** Starts a process with the store in `dir`. */
async function live(dir: string, how: { dies: boolean; choices?: Choices }): Promise<Life> {
  const world = quietWorld();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const agents = ["main", "research"].map((id) => agentSettings(id, { workspace }));
  const settings = settingsWith({ agents, ...how.choices });
  const disk = await openStore(join(dir, "store"), world);
  const outside = openOutsideServers({ settings, world, version: "0", environment: process.env });
  cleanup(() => outside.close());
  const { store, died } = dyingStore(disk, how.dies ? hasResult : async () => false);
  const engine = await startRealEngine({ settings, store, world, port: model(), outside });
  cleanup(() => engine.stop(0));
  return { engine, store: disk, died };
}

/** Crashes during the call, restarts, and returns the call's result. */
async function crashIn(dir: string, call: Call, later?: Choices, before?: Choices) {
  const first = await live(dir, { dies: true, ...optional({ choices: before }) });
  const accepted = await first.engine.accept({
    sessionKey: MAIN,
    runId: RUN,
    input: { text: `call:${JSON.stringify(call)}` },
  });
  if (!accepted.ok) throw new Error(accepted.error);
  await first.died;
  await first.engine.stop(0);
  await first.store.close();
  const second = await live(dir, { dies: false, ...optional({ choices: later }) });
  const run = await endOf(second.engine, RUN);
  expect(run).toMatchObject({ state: "ok", attempt: 2 });
  return { ...second, run, result: JSON.parse(run.reply ?? "") as Record<string, unknown> };
}

/** Returns the sub-agents and messages that the run's call created. */
async function madeBy(store: Store, key: (run: Run) => boolean): Promise<Run[]> {
  const all = await store.db.selectFrom("sessions").select("key").execute();
  const runs = await Promise.all(
    all.map(({ key: sessionKey }) => listRuns(store.db, { sessionKey, limit: 50 })),
  );
  return runs.flat().filter(key);
}

const READING: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["sessions_list", {}, { count: 2 }],
  ["sessions_history", { sessionKey: RESEARCH }, { messages: [] }],
  ["sessions_search", { query: "call" }, { count: 1, hits: [{ sessionKey: "main" }] }],
  ["session_status", {}, { state: "running" }],
  ["agents_list", {}, { requester: "main" }],
  ["read", { path: "notes.txt" }, { status: "ok", text: "one\n" }],
];

test.each(READING)("tool %s only reads, so after a crash it runs again", async (name, args, expected) => {
  const dir = temporaryFolder();
  mkdirSync(join(dir, "workspace"));
  writeFileSync(join(dir, "workspace", "notes.txt"), "one\n");
  expect((await crashIn(dir, { name, arguments: args })).result).toMatchObject(expected);
});

test("RU2: a refused send is refused again after a crash, and the refusal is recorded once", async () => {
  const session = { agentToAgent: { maxPingPongTurns: 0, maxHops: 0, maxChainRuns: 200 } };
  const call = { name: "sessions_send", arguments: { sessionKey: RESEARCH, message: "ping" } };
  const { result, store, run } = await crashIn(temporaryFolder(), call, { session }, { session });
  expect(result).toMatchObject({ status: "forbidden", code: "chain_limit" });
  const noted = await store.db.selectFrom("refusals").selectAll().execute();
  expect(noted).toMatchObject([
    { run_id: RUN, chain_id: run.chainId, from_key: MAIN, to_key: RESEARCH, code: "chain_limit", hop: 0 },
  ]);
});

test("write runs again after a crash: it writes the same text into the same file", async () => {
  const dir = temporaryFolder();
  const { result } = await crashIn(dir, { name: "write", arguments: { path: "new.txt", content: "text" } });
  expect(result).toMatchObject({ status: "ok", created: false });
  expect(readFileSync(join(dir, "workspace", "new.txt"), "utf8")).toBe("text");
});

test("edit does not run again after a crash: its result says that the outcome is unknown, and the text was replaced once", async () => {
  const dir = temporaryFolder();
  mkdirSync(join(dir, "workspace"));
  writeFileSync(join(dir, "workspace", "a.txt"), "a");
  const args = { path: "a.txt", edits: [{ oldText: "a", newText: "aa " }] };
  const { result } = await crashIn(dir, { name: "edit", arguments: args });
  expect(result).toMatchObject({ status: "error", code: "outcome_unknown" });
  expect(readFileSync(join(dir, "workspace", "a.txt"), "utf8")).toBe("aa ");
});

test("exec does not run again after a crash: its result says that the outcome is unknown, and the command ran once", async () => {
  const dir = temporaryFolder();
  const { result } = await crashIn(dir, { name: "exec", arguments: { command: "echo ran >> log.txt" } });
  expect(result).toMatchObject({ status: "error", code: "outcome_unknown" });
  expect(readFileSync(join(dir, "workspace", "log.txt"), "utf8")).toBe("ran\n");
});

const OUTSIDE: [string, Record<string, unknown>, "there" | "gone", Record<string, unknown>, number][] = [
  ["says that it only reads: it is run again", { readOnlyHint: true }, "there", { status: "ok" }, 2],
  [
    "says that a call may be repeated: it is run again",
    { idempotentHint: true },
    "there",
    { status: "ok" },
    2,
  ],
  ["says nothing: it is not run again", {}, "there", { code: "outcome_unknown" }, 1],
  ["was removed: the outcome is unknown", { readOnlyHint: true }, "gone", { code: "outcome_unknown" }, 1],
];

test.each(OUTSIDE)(
  "a call of an outside server's tool that %s",
  async (_what, annotations, then, expected, calls) => {
    const witness = await openWitness();
    const tools = [{ name: "hello", inputSchema: { type: "object" }, annotations }];
    const mcp = mcpWith([badServer("bad", { witness: witness.port, tools })]);
    const none = mcpWith([]);
    // The lost answer was from outside, so an owner would be asked about the repetition.
    const labels = { mode: "off" } as const;
    const later = { tools: { mcp: then === "there" ? mcp : none }, labels };
    const { result } = await crashIn(temporaryFolder(), { name: "mcp__bad__hello", arguments: {} }, later, {
      tools: { mcp },
      labels,
    });
    expect(result).toMatchObject(expected);
    await witness.saw("call hello", calls);
    const called = witness.lives.flatMap(({ events }) => events).filter((event) => event === "call hello");
    expect(called.length).toBe(calls);
  },
);

/** Returns the call's id as documented: derived from the transcript. */
async function callIdIn(store: Store): Promise<string> {
  const message = (await readRun(store.db, RUN)).find((one) => toolCallsOf(one).length > 0);
  return `${RUN}:${message?.id}:0`;
}

test("sessions_send runs again with its id: the message was sent only once, and the result contains the answer", async () => {
  const args = { sessionKey: RESEARCH, message: "ping", timeoutSeconds: 30 };
  const { result, store } = await crashIn(temporaryFolder(), { name: "sessions_send", arguments: args });
  expect(result).toMatchObject({ status: "ok", reply: "pong", sessionKey: RESEARCH });
  const sent = await madeBy(store, (run) => run.input.text === "ping");
  expect(sent).toMatchObject([{ callId: await callIdIn(store), runId: result.runId }]);
});

test("an accepted sessions_send is not checked again after a crash, even if the settings now forbid it", async () => {
  const args = { sessionKey: RESEARCH, message: "ping", timeoutSeconds: 30 };
  const { tools } = settingsWith();
  const closed: Choices = { tools: { ...tools, visibility: "self" } };
  const { result } = await crashIn(temporaryFolder(), { name: "sessions_send", arguments: args }, closed);
  expect(result).toMatchObject({ status: "ok", reply: "pong" });
});

test("sessions_spawn runs again with its id: there is only one sub-agent, and the result names its run", async () => {
  const call = { name: "sessions_spawn", arguments: { task: "hang", label: "child" } };
  const { result, store } = await crashIn(temporaryFolder(), call);
  const children = await madeBy(store, (run) => isSubagentKey(run.sessionKey));
  expect(children).toMatchObject([{ callId: await callIdIn(store), runId: result.runId }]);
  expect(result).toMatchObject({ status: "accepted", childSessionKey: children[0]?.sessionKey });
});

test("the tool `subagents` runs again after a crash: a job that it cancelled is not listed as cancelled again", async () => {
  const dir = temporaryFolder();
  const before = await live(dir, { dies: false });
  const spawn = { name: "sessions_spawn", arguments: { task: "hang" } };
  await before.engine.accept({
    sessionKey: MAIN,
    runId: "earlier",
    input: { text: `call:${JSON.stringify(spawn)}` },
  });
  await endOf(before.engine, "earlier");
  await before.engine.stop(0);
  await before.store.close();
  const cancel = { name: "subagents", arguments: { action: "cancel", sessionKey: "all" } };
  const { result, store } = await crashIn(dir, cancel);
  expect(result).toEqual({ status: "ok", cancelled: [], runIds: [] });
  const [child] = await madeBy(store, (run) => isSubagentKey(run.sessionKey));
  expect(child).toMatchObject({ state: "aborted" });
});

test("for every tool, the documentation about crashes matches the declaration", () => {
  const text = readFileSync(new URL("../../docs/internals/CRASHES.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| (yes|no) \|/gm)];
  const documented = rows.flatMap(([, names = "", again]) =>
    [...names.matchAll(/\w+/g)].map(([name]) => [name, again === "yes"]),
  );
  const settings = settingsWith({ tools: { search: { provider: "brave", apiKey: "key" } } });
  const tools = toolsFor({ settings, chain: MAIN_CHAIN });
  const declared = tools.map(({ spec }) => [spec.name, spec.idempotent]);
  expect(documented.sort()).toEqual(declared.sort());
});
