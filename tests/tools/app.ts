// Helpers for tests of tools and flows: a real store and engine in a temporary folder. Only the model is
// fake: it answers every message immediately with the same text.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Compile, type Validator } from "typebox/schema";
import { expect } from "vitest";
import { keyRulesOf, sessionViewer } from "../../src/access/access.ts";
import { spawnChainOf } from "../../src/access/spawn-chain.ts";
import { defaultsOf } from "../../src/config/schema/setting.ts";
import { TOOLS, type ToolName } from "../../src/contract/tools.ts";
import type { ChainLink, SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import type { Viewer } from "../../src/core/rules/visibility.ts";
import { type AssistantMessage, type Message, ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { NOT_YET_USED, type Session } from "../../src/core/shapes/session.ts";
import { agentIdInKey, kindOf } from "../../src/core/shapes/session-key.ts";
import { LOGGING } from "../../src/core/shapes/settings/logging.ts";
import {
  type AddedSettings,
  type AgentSettings,
  ANSWER_LIMITS,
  agentOf,
  type Settings,
} from "../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { Executor } from "../../src/engine/run/executions.ts";
import { added } from "../../src/features.ts";
import { ensureMainSessions } from "../../src/flows/session/lifecycle.ts";
import { createSuccessors } from "../../src/flows/successors.ts";
import { getSession, insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../src/store/sql.ts";
import { callTool, type ToolContext, toolNames } from "../../src/tools/catalog.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { realWorld, type World } from "../../src/world.ts";
import { GROUND } from "../kit/cleanup.ts";
import { openEmbedded } from "../kit/engine/engine.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { until } from "../kit/until.ts";

const checkers = new Map<ToolName, Validator>();

/** Returns the parts of a result that violate the tool's entry in the contract. */
function problemsIn(name: ToolName, result: ToolResult): readonly unknown[] {
  const checker = checkers.get(name) ?? (Compile(TOOLS[name].result) as Validator);
  checkers.set(name, checker);
  return checker.Check(result) ? [] : checker.Errors(result)[1];
}

/** The spawn chain of a main session, which nobody spawned, for rules that depend only on settings. */
export const MAIN_CHAIN: SpawnChain = [
  { key: "agent:main:main", agentId: "main", kind: "main", spawnDepth: 0 },
];

export function agentSettings(id: string, more: Partial<AgentSettings> = {}): AgentSettings {
  return {
    id,
    default: id === "main",
    model: "offline/rehearsal",
    thinking: "off",
    workspace: join(GROUND, "parley-no-workspace"),
    tools: { allow: [], deny: [] },
    subagents: { allowAgents: [] },
    sandbox: {
      mode: "off",
      sessionToolsVisibility: "spawned",
      network: false,
      backend: "auto",
      memoryMb: 1_024,
      processesMax: 128,
      diskMb: 1_024,
      git: "read",
    },
    fallbackModels: [],
    instructionFiles: true,
    skills: true,
    memory: true,
    maxModelCalls: 400,
    ...ANSWER_LIMITS,
    ...more,
  };
}

/**
 * Returns three agents: main may spawn itself and research; research may spawn any agent; boxed is sandboxed
 * and may spawn main.
 */
export const spawningAgents = (workspace: string): readonly AgentSettings[] => [
  agentSettings("main", { workspace, subagents: { allowAgents: ["research"] } }),
  agentSettings("research", { workspace, name: "Research", subagents: { allowAgents: ["*"] } }),
  agentSettings("boxed", {
    workspace,
    sandbox: { ...agentSettings("boxed").sandbox, mode: "all" },
    subagents: { allowAgents: ["main"] },
  }),
];

type FeatureChoices = { readonly [K in keyof AddedSettings]?: Partial<AddedSettings[K]> };

/** Returns the settings of features: their defaults, except for what the test chooses. */
function featureSettings(choices: FeatureChoices = {}): AddedSettings {
  const sections = Object.entries<{ readonly properties: object }>(added("settings"));
  const chosen: Readonly<Record<string, object | undefined>> = choices;
  const settings = sections.map(([name, { properties }]) => [
    name,
    { ...defaultsOf({ ...properties }), ...chosen[name] },
  ]);
  return Object.fromEntries(settings) as unknown as AddedSettings;
}

const KEY_RULES = { mainKey: "main", scope: "per-sender", defaultAgentId: "main" } as const;

/** Returns the chain of these sessions of the agent main, each spawned by the next one. */
export function chainOf(...keys: string[]): SpawnChain {
  return keys.map((key, at): ChainLink => {
    const above = keys[at + 1];
    const link = { key, agentId: "main", kind: kindOf(key, KEY_RULES), spawnDepth: keys.length - at - 1 };
    return above === undefined ? link : { ...link, spawnedBy: above };
  }) as unknown as SpawnChain;
}

/** Settings that a test may change. */
export interface Choices {
  readonly agents?: readonly AgentSettings[];
  readonly tools?: Partial<Settings["tools"]>;
  readonly session?: Partial<Settings["session"]>;
  readonly subagents?: Partial<Settings["subagents"]>;
  readonly maxConcurrent?: number;
  /** Settings of features, instead of their defaults. */
  readonly features?: FeatureChoices;
  readonly channels?: Settings["channels"];
  readonly owners?: Settings["owners"];
  readonly recordDays?: number;
  readonly providers?: Settings["providers"];
  readonly labels?: Partial<Settings["labels"]>;
}

const NO_LABEL_SETTINGS: Settings["labels"] = {
  mode: "ask",
  private: [],
  public: [],
  trust: [],
  sinks: { hosts: [], tools: [], places: [] },
};

export function settingsWith(choices: Choices = {}): Settings {
  return {
    gateway: {
      host: "127.0.0.1",
      port: 0,
      tokens: [],
      allowedOrigins: [],
      allowedHosts: [],
      maxBufferedBytes: 1_000_000,
      tickIntervalMs: 15_000,
    },
    store: { dir: "/nowhere", durability: "normal", recordDays: choices.recordDays ?? 30 },
    providers: choices.providers ?? [],
    agents: choices.agents ?? [agentSettings("main"), agentSettings("research"), agentSettings("writer")],
    maxConcurrent: choices.maxConcurrent ?? 4,
    titles: "words",
    subagents: {
      maxConcurrent: 8,
      maxChildren: 20,
      maxSpawnDepth: 1,
      runTimeoutSeconds: 0,
      archiveAfterMinutes: 60,
      announce: "post",
      ...choices.subagents,
    },
    session: {
      scope: "per-sender",
      mainKey: "main",
      dmScope: "main",
      queueMax: 200,
      sendPolicy: { rules: [], default: "allow" },
      agentToAgent: { maxPingPongTurns: 0, maxHops: 16, maxChainRuns: 200 },
      ...choices.session,
    },
    tools: {
      filter: { allow: [], deny: [] },
      visibility: "all",
      agentToAgent: { enabled: true, allow: [] },
      subagents: { allow: [], deny: [] },
      sandbox: { allow: [], deny: [] },
      sessionsSpawn: {
        attachments: {
          enabled: true,
          maxFiles: 50,
          maxFileBytes: 1024 ** 2,
          maxTotalBytes: 5 * 1024 ** 2,
          retainOnSessionKeep: false,
        },
      },
      history: { maxTextChars: 4_000, maxBytes: 80_000 },
      exec: { timeoutSeconds: 10, maxOutputBytes: 10_000, approval: "never", askSeconds: 300 },
      fetch: { allowHosts: [] },
      sendFile: { maxBytes: 10 * 1024 * 1024 },
      mcp: { servers: [], waitSeconds: 10, maxResultBytes: 64 * 1024 },
      ...choices.tools,
    },
    owners: choices.owners ?? [],
    channels: choices.channels ?? [],
    ...featureSettings(choices.features),
    labels: { ...NO_LABEL_SETTINGS, ...choices.labels },
    logging: LOGGING,
  };
}

function assistant(id: string, text: string, timestamp: number): AssistantMessage {
  return {
    id,
    role: "assistant",
    content: [{ type: "text", text }],
    timestamp,
    api: "test",
    provider: "test",
    model: "echo",
    usage: ZERO_USAGE,
    stopReason: "stop",
  };
}

/**
 * Returns an executor that answers each message with its text. If `isHeld` returns true, a run executes until
 * it is aborted.
 */
function echoExecutor(isHeld: () => boolean, held: Map<string, LaneHandle>): Executor {
  return {
    async execute(handle) {
      const { signal, run } = handle;
      if (isHeld()) {
        held.set(run.sessionKey, handle);
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        return { state: "aborted", code: "run_aborted", usage: ZERO_USAGE };
      }
      const reply = `echo: ${run.input.text}`;
      await handle.append(assistant(`${run.runId}-reply`, reply, run.acceptedAt));
      return { state: "ok", reply, usage: ZERO_USAGE };
    },
  };
}

export interface App {
  readonly engine: Engine;
  readonly settings: Settings;
  /** From now on, runs execute until they are aborted. */
  hold(): void;
  /** Starts a run that executes until it is aborted. */
  held(key: string): Promise<Run>;
  /** Starts a run as `held` does, and returns its handle. */
  heldHandle(key: string): Promise<LaneHandle>;
  /** Adds a session, which must not exist yet. */
  add(key: string, more?: Partial<Session>): Promise<Session>;
  session(key: string): Promise<Session>;
  say(session: Session, ...messages: Message[]): Promise<void>;
  /** Calls a tool as the session `caller`, or as `viewer`. */
  call(caller: string, name: string, args: unknown, viewer?: Viewer): Promise<ToolResult>;
  context(caller: Session, viewer?: Viewer): ToolContext;
  close(): Promise<void>;
}

let count = 0;

/** Returns a message of a user or, with `by: "assistant"`, of the model. */
export function message(text: string, by: "user" | "assistant" = "user", id = `message-${count++}`): Message {
  const timestamp = 1_700_000_000_000;
  if (by === "assistant") return assistant(id, text, timestamp);
  return { id, role: "user", content: [{ type: "text", text }], timestamp };
}

/** Returns the row of a session: default values, replaced by the fields of `more`. */
function rowOf(settings: Settings, world: World, key: string, more: Partial<Session>): Session {
  const at = world.clock.now();
  return {
    key,
    sessionId: world.ids.uuid(),
    agentId: agentIdInKey(key) ?? "main",
    kind: kindOf(key, keyRulesOf(settings)),
    createdAt: at,
    updatedAt: at,
    spawnDepth: 0,
    external: false,
    ...NOT_YET_USED,
    ...more,
  };
}

function contextOf(
  engine: Engine,
  settings: Settings,
  chain: readonly [Session, ...ChainLink[]],
  viewer: Viewer = sessionViewer(chain, settings),
): ToolContext {
  const [caller] = chain;
  return {
    settings,
    db: engine.store.db,
    engine,
    viewer,
    session: caller,
    agent: agentOf(settings, caller),
    chain,
    toolNames: toolNames(),
    signal: new AbortController().signal,
  };
}

/** Accepts a run and waits until it executes. */
async function startRun(engine: Engine, sessionKey: string): Promise<Run> {
  const started = Promise.withResolvers<void>();
  const off = engine.bus.subscribe((event) => {
    if (event.kind === "run_started" && event.sessionKey === sessionKey) started.resolve();
  });
  const accepted = await engine.accept({ sessionKey, input: { text: "held" } });
  if (!accepted.ok) throw new Error(accepted.error);
  await started.promise;
  off();
  return accepted.value.run;
}

function openEngine(store: Store, world: World, settings: Settings, executor: Executor): Engine {
  const { queueMax, agentToAgent } = settings.session;
  return new Engine({
    store,
    world,
    settings: { queueMax, maxConcurrent: settings.maxConcurrent, ...agentToAgent },
    successors: createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
    }),
    executor,
  });
}

export async function openApp(choices: Choices = {}): Promise<App> {
  const dir = mkdtempSync(join(GROUND, "parley-tools-"));
  const settings = settingsWith(choices);
  const world = realWorld({ level: "silent" });
  const store = await openEmbedded(dir, world);
  let isHeld = false;
  const handles = new Map<string, LaneHandle>();
  const executor = echoExecutor(() => isHeld, handles);
  const engine = openEngine(store, world, settings, executor);
  await ensureMainSessions({ engine, settings });
  await engine.start();
  const session = async (key: string): Promise<Session> => {
    const found = await getSession(store.db, key);
    if (found === undefined) throw new Error(`no session ${key}`);
    return found;
  };
  return {
    engine,
    settings,
    session,
    context: (caller, viewer) => contextOf(engine, settings, [caller], viewer),
    hold: () => {
      isHeld = true;
    },
    held(key) {
      isHeld = true;
      return startRun(engine, key);
    },
    async heldHandle(key) {
      isHeld = true;
      await startRun(engine, key);
      return until(() => handles.get(key));
    },
    async add(key, more = {}) {
      const row = rowOf(settings, world, key, more);
      await store.transaction((tx) => insertSession(tx, row));
      return row;
    },
    say: ({ key, sessionId }, ...messages) =>
      store.transaction(async (tx) => {
        for (const entry of messages)
          await appendEntry(tx, { sessionKey: key, sessionId, entry }, plainRedactor);
      }),
    async call(caller, name, args, viewer) {
      const found = await session(caller);
      const [, ...above] = await spawnChainOf(store.db, found);
      const ctx = contextOf(engine, settings, [found, ...above], viewer);
      const callId = `call-${count++}`;
      const call = { callId, attempt: 1, name, arguments: args as Record<string, unknown> };
      const result = await callTool(ctx, call);
      if (Object.hasOwn(TOOLS, name) && !("code" in result && "error" in result))
        expect(problemsIn(name as ToolName, result)).toEqual([]);
      return result;
    },
    async close() {
      await engine.stop(0);
      await store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
