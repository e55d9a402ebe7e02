// The traces of whole conversations: each conversation has one trace, with OpenTelemetry's names and without
// the text of messages.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { TRACE_LIBRARIES } from "../../src/telemetry/libraries.ts";
import { test } from "../kit/deep.ts";
import type { ServedRequest } from "../kit/model-server/requests.ts";
import type { Answer } from "../kit/model-server/server.ts";
import { call, stop, usage } from "../kit/model-server/steps.ts";
import { startCollector } from "../kit/otlp-collector.ts";
import { launch } from "../kit/process/fleet.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { fakeWorld } from "../kit/world.ts";
import { openStage } from "./kit.ts";

/** A scripted model: main sends to research and repeats the answer, and research makes an announcement. */
function conversation(request: ServedRequest): Answer {
  const { agentId, step, toolResults } = request;
  if (step === "announce") return "research has an answer";
  if (step === "reply") return agentId === "main" ? "are you sure?" : "yes, quite";
  if (agentId === "research") return "forty-two";
  if (toolResults.length === 0)
    return [
      call("sessions_send", { sessionKey: "agent:research:main", message: "how many?", timeoutSeconds: 30 }),
    ];
  return "it says forty-two";
}

/** A scripted model: main spawns a sub-agent, and the sub-agent lists sessions and finishes. */
function job(request: ServedRequest): Answer {
  const { step, toolResults, sessionKey = "" } = request;
  if (step === "announce" || request.system.includes("announce step")) return "the job is done";
  if (sessionKey.includes("subagent")) {
    return toolResults.length === 0 ? [call("read", { path: "nowhere.txt" })] : "nothing there";
  }
  return toolResults.length === 0
    ? [call("sessions_spawn", { task: "look it up" })]
    : "I have asked somebody";
}

test("TR1: a send, its reply turns and its announcement are one trace, each step below the previous one", async () => {
  const stage = await openStage({ script: conversation });
  // This message from a person gives research a chat for its announcement.
  await stage.says("hello", "agent:research:main");
  await stage.quiet();
  await stage.says("ask them");
  await stage.quiet();
  await stage.stop();
  expect(stage.collector.trees()).toEqual([
    ["invoke_agent research", "  chat test-model"],
    [
      "invoke_agent main",
      "  chat test-model",
      "  execute_tool sessions_send",
      "    invoke_agent research (round1)",
      "      chat test-model",
      "      invoke_agent main (reply)",
      "        chat test-model",
      "        invoke_agent research (reply)",
      "          chat test-model",
      "          invoke_agent research (announce)",
      "            chat test-model",
      "  chat test-model",
    ],
  ]);
});

test("TR1: a spawn, the tool calls of the sub-agent and its announcement are one trace", async () => {
  const stage = await openStage({ script: job });
  await stage.says("have it looked up");
  await stage.quiet();
  await stage.stop();
  const [tree, ...more] = stage.collector.trees();
  expect(more).toEqual([]);
  expect(tree).toEqual([
    "invoke_agent main",
    "  chat test-model",
    "  execute_tool sessions_spawn",
    "    invoke_agent main (task)",
    "      chat test-model",
    "      execute_tool read !file_not_found",
    "      chat test-model",
    "      invoke_agent main (announce)",
    "        chat test-model",
    "  chat test-model",
  ]);
});

test("if a sub-agent's result wakes its requester, the requester's span is below the sub-agent's last run", async () => {
  const config = {
    agents: { defaults: { subagents: { announce: "wake" } }, list: [{ id: "main", default: true }] },
  };
  const stage = await openStage({ script: job, config });
  await stage.says("have it looked up");
  await stage.quiet();
  await stage.stop();
  const [tree = [], ...more] = stage.collector.trees();
  expect(more).toEqual([]);
  const announce = tree.indexOf("      invoke_agent main (announce)");
  expect(announce).toBeGreaterThan(0);
  expect(tree.slice(announce)).toContain("        invoke_agent main");
});

test("spans have OpenTelemetry's names and attributes, and the resource names the gateway", async () => {
  const stage = await openStage({
    script: (_, index) => [
      ...(index === 0
        ? [call("session_status", {}, "c1")]
        : [{ step: "text", text: "fine", chunks: 1 } as const]),
      usage({ input: 70, output: 9, cacheRead: 30 }),
    ],
    traces: { serviceName: "our-agents", headers: { "x-scope": "team-1" } },
  });
  const runId = await stage.says("how are you");
  await stage.quiet();
  await stage.stop();
  const { spans, headers } = stage.collector;
  const named = (name: string) => spans.find((span) => span.name === name);
  const run = named("invoke_agent main");
  const common = {
    "gen_ai.agent.id": "main",
    "gen_ai.conversation.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    "parley.run_id": runId,
    "parley.chain_id": expect.any(String),
    "parley.hop": 0,
    "parley.attempt": 1,
  };
  const model = { "gen_ai.provider.name": "local", "gen_ai.request.model": "test-model" };
  expect(run?.attributes).toEqual({
    ...common,
    ...model,
    "gen_ai.operation.name": "invoke_agent",
    // A main session is private.
    "parley.private": true,
    "parley.run_state": "ok",
    "parley.queue_ms": expect.any(Number),
    "gen_ai.usage.input_tokens": 200,
    "gen_ai.usage.output_tokens": 18,
    "gen_ai.usage.cache_read.input_tokens": 60,
    "parley.cost_usd": expect.any(Number),
  });
  expect(named("chat test-model")?.attributes).toEqual({
    ...common,
    ...model,
    "gen_ai.operation.name": "chat",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 9,
    "gen_ai.usage.cache_read.input_tokens": 30,
    "gen_ai.response.finish_reasons": ["toolUse"],
    "parley.cost_usd": expect.any(Number),
  });
  expect(named("execute_tool session_status")?.attributes).toEqual({
    ...common,
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "session_status",
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": expect.stringContaining(runId),
  });
  expect([run?.kind, named("chat test-model")?.kind]).toEqual([1, 3]);
  expect(run?.resource).toMatchObject({ "service.name": "our-agents", "service.version": "1.2.3" });
  expect(headers[0]).toMatchObject({ "x-scope": "team-1", "content-type": "application/json" });
  for (const span of spans) {
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(span.startMs).toBeGreaterThanOrEqual(Math.floor(run?.startMs ?? 0));
    expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
  }
});

test("if a run fails, or is aborted during a tool call, its spans end with the reason but without text", async () => {
  const reached = Promise.withResolvers<void>();
  const stage = await openStage({
    script: (request) => {
      if (request.lastUserText === "fail") return [stop("filtered")];
      if (request.agentId === "main" && request.toolResults.length === 0)
        return [
          call("sessions_send", { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 }),
        ];
      reached.resolve();
      return [{ step: "hang" }];
    },
  });
  await stage.says("fail");
  await stage.quiet();
  const runId = await stage.says("wait for them");
  await reached.promise;
  await stage.client.call("chat.abort", { sessionKey: "main", runId });
  await stage.client.call("chat.abort", { sessionKey: "agent:research:main" });
  await stage.quiet();
  await stage.stop();
  const [failed, aborted] = stage.collector.trees();
  expect(failed).toEqual(["invoke_agent main !run_failed", expect.stringMatching(/^ {2}chat test-model/)]);
  expect(aborted).toEqual([
    "invoke_agent main !run_aborted",
    "  chat test-model",
    "  execute_tool sessions_send !run_aborted",
    "    invoke_agent research (round1) !run_aborted",
    "      chat test-model !model_aborted",
  ]);
  const failures = stage.collector.spans.filter(({ attributes }) => "error.type" in attributes);
  expect(failures.map(({ status }) => status)).toEqual(failures.map(() => ({ code: 2 })));
});

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const SAID = "the-plan-is-blue";

/** A scripted model. Question, call, answer and announcement each contain a secret. */
function careless({ toolResults, lastUserText, step }: ServedRequest): Answer {
  if (lastUserText.includes("break"))
    return { status: 400, headers: {}, body: { error: { message: `${SAID} ${KEY}` } } };
  if (step !== undefined) return `${SAID} ${KEY}`;
  if (toolResults.length > 0) return `${SAID} done, password=${KEY}`;
  return [
    call("write", { path: `${SAID}.txt`, content: `${SAID} ${KEY}` }),
    call("read", { path: `${SAID}.txt` }),
    call(`no_${SAID}_tool_${KEY}`, { apiKey: KEY }),
  ];
}

for (const content of [false, true]) {
  test(`I14: no span contains planted secrets, with content ${content ? "on" : "off, which also omits every text"}`, async () => {
    const stage = await openStage({
      script: careless,
      traces: { content, headers: { authorization: `Bearer ${KEY}` } },
    });
    await stage.says(`${SAID}: my key is ${KEY}`);
    await stage.quiet();
    await stage.says(`break ${KEY}`);
    await stage.quiet();
    await stage.stop();
    const told = stage.collector.bodies.join("\n");
    expect(stage.collector.spans.length).toBeGreaterThan(6);
    expect(told).not.toContain(KEY);
    expect(told).not.toContain(KEY.slice(8));
    const { spans, headers } = stage.collector;
    expect(headers[0]?.authorization).toBe(`Bearer ${KEY}`);
    expect(told.includes(SAID)).toBe(content);
    // A tool name that the model invented counts as text of the conversation.
    expect(spans.map(({ name }) => name)).toContain("execute_tool unknown");
    if (!content) return;
    const write = spans.find(({ name }) => name === "execute_tool write");
    expect(write?.attributes["gen_ai.tool.call.arguments"]).toBe(
      JSON.stringify({ path: `${SAID}.txt`, content: `${SAID} [redacted]` }),
    );
    const run = spans.find(({ name }) => name === "invoke_agent main");
    expect(run?.attributes).toMatchObject({ "parley.session_key": "agent:main:main" });
    expect(JSON.parse(String(run?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "user", parts: [{ type: "text", content: `${SAID}: my key is [redacted]` }] },
    ]);
  });
}

test("TR1: if only a share of the chains is sampled, each chain is traced completely or not at all", async () => {
  // The ids are fixed, because with random ids it could happen that all chains or none are sampled.
  const world = fakeWorld({ clock: "real" });
  const stage = await openStage({ script: conversation, traces: { sampleRatio: 0.5 }, world });
  for (let at = 0; at < 12; at += 1) {
    await stage.says("ask them");
    await stage.quiet();
  }
  await stage.stop();
  const trees = stage.collector.trees();
  expect(trees.length).toBeGreaterThan(0);
  expect(trees.length).toBeLessThan(12);
  for (const tree of trees) expect(tree).toHaveLength(10);
});

test("TR4: without a collector every run still ends, and the losses give one log line", async () => {
  const world = fakeWorld({ clock: "real" });
  const stage = await openStage({ script: () => "yes", traces: { headers: { "x-key": KEY } }, world });
  await stage.collector.close();
  for (let at = 0; at < 20; at += 1) await stage.says(`message ${at}`);
  await stage.quiet();
  const ended = await stage.app.store.db.selectFrom("runs").select("state").execute();
  expect(ended.map(({ state }) => state)).toEqual(Array.from({ length: 20 }, () => "ok"));
  await stage.stop();
  const lines = world.logged.filter(({ text }) => text.startsWith("spans were dropped"));
  // At most two log lines: one at the first loss, one at the stop.
  expect(lines.length).toBeLessThanOrEqual(2);
  expect(lines.reduce((sum, { fields }) => sum + Number(fields.count), 0)).toBe(40);
  expect(JSON.stringify(world.logged)).not.toContain(KEY);
});

/** A module that prints which telemetry modules, libraries and our own, a process loads. */
const WATCH_LOADS = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      if (/opentelemetry|src.telemetry|dist.parts.traces/.test(url)) process.stderr.write("loads " + url + "\\n");
      return next(url, context);
    },
  });
`)}`;

for (const enabled of [false, true]) {
  test(`${enabled ? "enabled traces load the libraries" : "disabled traces send nothing and load no library"}`, async () => {
    const collector = await startCollector();
    const config = { telemetry: { traces: { enabled, endpoint: collector.url } } };
    const gateway = await startProcess({ config, env: { NODE_OPTIONS: `--import=${WATCH_LOADS}` } });
    const client = await gateway.connect();
    await client.agent({ message: "list sessions", idempotencyKey: "run" }).done;
    await gateway.end("SIGTERM");
    // The path is that of the module in src or in the built program.
    expect(/telemetry\/traces\.ts|parts\/traces\.js/.test(gateway.stderr())).toBe(enabled);
    expect(gateway.stderr().includes("@opentelemetry")).toBe(enabled);
    expect(collector.spans.length > 0).toBe(enabled);
  });
}

/** A module that makes the OpenTelemetry libraries look missing. */
const WITHOUT_LIBRARIES = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({
    resolve(name, context, next) {
      if (!name.startsWith("@opentelemetry/")) return next(name, context);
      throw Object.assign(new Error("there is no " + name), { code: "MODULE_NOT_FOUND" });
    },
  });
`)}`;

test.deep(
  "TE1: if the OpenTelemetry libraries are missing, the gateway starts; it and `parley doctor` print the install command",
  async () => {
    const root = new URL("../../package.json", import.meta.url);
    const { peerDependencies, devDependencies, peerDependenciesMeta } = JSON.parse(
      readFileSync(root, "utf8"),
    );
    expect(peerDependencies).toEqual(TRACE_LIBRARIES);
    expect(devDependencies).toMatchObject(TRACE_LIBRARIES);
    const optional = Object.keys(TRACE_LIBRARIES).map((name) => [name, { optional: true }]);
    expect(peerDependenciesMeta).toEqual(Object.fromEntries(optional));
    const named = Object.entries(TRACE_LIBRARIES).map((one) => one.join("@"));
    const command = `npm install ${named.join(" ")}`;
    const env = { NODE_OPTIONS: `--import=${WITHOUT_LIBRARIES}` };
    const gateway = await startProcess({ config: { telemetry: { traces: { enabled: true } } }, env });
    const client = await gateway.connect();
    expect(await client.agent({ message: "list sessions", idempotencyKey: "run" }).done).toMatchObject({
      status: "ok",
    });
    expect(gateway.stderr()).toContain(command);
    const check = launch(gateway.home, ["config", "check"], [], env);
    let told = "";
    check.stderr?.on("data", (piece: Buffer) => {
      told += piece.toString();
    });
    await once(check, "close");
    expect(told).toContain(command);
    await gateway.end("SIGTERM");
  },
);
