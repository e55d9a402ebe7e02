// Executes a claimed run as an agent turn: combines session, agent, model, prompt and tools. Part of the
// composition root: the engine knows runs and the agent knows turns. Rights and settings are read again for
// every run.

import { sessionViewer } from "./access/access.ts";
import { narrowSettings } from "./access/narrowed.ts";
import { spawnChainOf } from "./access/spawn-chain.ts";
import { runTurn, type TurnArgs, type TurnEnd } from "./agent/loop/loop.ts";
import type { ToolEvent } from "./agent/loop/tool-calls.ts";
import { type ModelPort, type ResolvedModel, resolveModel } from "./agent/model/model.ts";
import { optional } from "./core/optional.ts";
import type { Pace } from "./core/pace.ts";
import { withoutContents } from "./core/rules/attachment-rules.ts";
import { isClientTool, withClientTools } from "./core/rules/client-tools.ts";
import { guidanceReach } from "./core/rules/prompt/guidance.ts";
import {
  CONTEXT_TITLE,
  joinPrompt,
  type PromptPart,
  promptParts,
  type Today,
} from "./core/rules/prompt/prompt.ts";
import { hasNetwork, isSandboxed, type SpawnChain } from "./core/rules/sandbox-policy.ts";
import { fail, ok, type Result } from "./core/shapes/errors.ts";
import { type Entry, isCompaction, type Message, toolCallsOf, type Usage } from "./core/shapes/message.ts";
import type { ModelRetry } from "./core/shapes/model-retry.ts";
import { CUT_SHORT, endsWithResult, type Run } from "./core/shapes/run.ts";
import type { Session } from "./core/shapes/session.ts";
import { peerInKey } from "./core/shapes/session-key.ts";
import { checkFormat } from "./core/shapes/settings/answer-format.ts";
import { settingsNow } from "./core/shapes/settings/live.ts";
import {
  type AgentSettings,
  agentOf,
  findAgent,
  modelOf,
  notConfigured,
  outsideKind,
  type Settings,
  thinkingNamed,
} from "./core/shapes/settings/settings.ts";
import type { ToolCallRequest, ToolOutcome, ToolSpec } from "./core/shapes/tool.ts";
import type { Engine } from "./engine/engine.ts";
import { failRun } from "./engine/run/begin.ts";
import type { LaneHandle } from "./engine/run/execution.ts";
import type { Executor } from "./engine/run/executions.ts";
import type { EndFacts } from "./engine/run/finish.ts";
import type { RecordedTurn, Recorder } from "./execute/recorder.ts";
import type { OutsideRuntime, Services } from "./feature.ts";
import type { Threads } from "./flows/delivery/bindings.ts";
import { settleInstructions } from "./flows/instructions.ts";
import { childContext } from "./flows/job/spawn.ts";
import type { SandboxFinder } from "./sandbox/find.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import { permissionOfCall } from "./store/queries/permissions.ts";
import { getSession } from "./store/queries/sessions/sessions.ts";
import { readContext } from "./store/queries/transcripts/transcripts.ts";
import type { Store } from "./store/sql.ts";
import type { RunTrace, Traces } from "./telemetry/traces.ts";
import { invokeTool, readyTools, type ToolContext, toolNames, toolSpecs, toolsFor } from "./tools/catalog.ts";
import type { GuidanceFiles } from "./tools/guidance/guidance.ts";
import { memoryFor } from "./tools/guidance/memory.ts";
import { promptOf } from "./tools/guidance/prompt.ts";
import { sessionsSpawn } from "./tools/sessions/spawn.ts";
import { type OutsideTools, type ToolAnswered, toolResult } from "./tools/tool.ts";
import { type World, withFields } from "./world.ts";

/** Called for every run and every call (I13). `settings`: default are the newest settings. */
export type SandboxFor = (chain: SpawnChain, settings?: Settings) => Promise<Result<Sandbox | undefined>>;

/**
 * Creates a function that returns the sandbox of a session, or a failure if a required sandbox is
 * unavailable.
 */
export function createSandboxFor(newest: Settings, openFinder: () => Promise<SandboxFinder>): SandboxFor {
  let finder: Promise<SandboxFinder> | undefined;
  return async (chain, settings = settingsNow(newest)) => {
    if (!isSandboxed(chain, settings)) return ok(undefined);
    // Loaded by the first sandboxed run, so that it costs nothing if no sandbox is used.
    finder ??= openFinder();
    const { sandbox, workspace } = agentOf(settings, chain[0]);
    return (await finder).find({ ...sandbox, network: hasNetwork(chain, settings) }, workspace);
  };
}

export type ReallyCall = (args?: ToolCallRequest["arguments"]) => Promise<ToolOutcome>;

/** Changes turns, for a replay of a recorded chain. */
export interface TurnHooks {
  /** Returns what the model gets instead of `made`. */
  offer(
    run: Run,
    made: Offer,
    whose: { readonly sessionKey: string; readonly context?: string | undefined },
  ): Offer;
  /** Answers a tool call. `really` runs the tool, with the arguments of the call or with others. */
  call(run: Run, request: ToolCallRequest, really: ReallyCall): Promise<ToolOutcome>;
  /** Returns the usage of a run that failed. Undefined: that of its answers in the replay. */
  spent(run: Run): Usage | undefined;
}

/** The functions that open the runtimes of agents outside, by `runtime.type`. */
export type Runtimes = ReadonlyMap<string, () => Promise<OutsideRuntime>>;

/** The runtime of agents of peers. */
const PEER = "peer";

export interface ExecuteParts {
  readonly settings: Settings;
  readonly store: Store;
  readonly world: World;
  readonly port: ModelPort;
  /** Returns the date at this time for the prompt. If absent, the prompt has no date. */
  readonly today?: (atMs: number) => Today;
  /**
   * Returns the sandbox of a session's tools, or undefined if they run without one. Fails if no backend
   * works.
   */
  readonly sandboxFor: SandboxFor;
  /** Tools of MCP servers. Absent if there are none. */
  readonly outside?: OutsideTools | undefined;
  /** Reads instruction files and skills. Absent: sessions get none. */
  readonly guidance?: GuidanceFiles;
  /** Creates threads for sub-agents. Absent if no channel has threads. */
  readonly threads?: Threads;
  /** The services of features. */
  readonly services?: Services | undefined;
  readonly answered?: ToolAnswered;
  /** Returns the time zone of the gateway. */
  timeZone?(): string;
  /** Records traces. Absent if traces are disabled. */
  readonly traces?: Traces | undefined;
  /** Changes what runs get and what their tool calls do. Absent: nothing is changed. */
  readonly hooks?: TurnHooks;
  /** Records the inputs of runs, if `store.recordDays` is not 0. Absent: they are not recorded. */
  readonly recorder?: Recorder;
  /** Opens the runtimes of agents outside, at their first run. Runs of an absent one are refused. */
  readonly runtimes?: Runtimes;
  /** Returns the engine. A function, because the engine is created later and needs this executor. */
  engine(): Engine;
}

type Arguments = Readonly<Record<string, unknown>>;

/** Returns the arguments of a call to store and show, without the contents of attachments (I14). */
function keptArguments(tool: string, args: Arguments): Arguments {
  return tool === sessionsSpawn.spec.name ? withoutContents(args) : args;
}

function storedEntry(entry: Entry): Entry {
  if (isCompaction(entry) || entry.role !== "assistant") return entry;
  const content = entry.content.map((block) =>
    block.type === "toolCall" ? { ...block, arguments: keptArguments(block.name, block.arguments) } : block,
  );
  return { ...entry, content };
}

/** Returns the additional context for the model: the run's own, or the session's. */
async function contextOf(parts: ExecuteParts, run: Run, session: Session): Promise<string | undefined> {
  return run.input.context ?? childContext(parts.settings, parts.store.db, session);
}

/** Returns the parts of a turn that come from outside of the store: MCP tools, parts of features, files. */
async function suppliesOf(
  { settings, store, outside, services, guidance, today, world, engine }: ExecuteParts,
  agent: AgentSettings,
  chain: SpawnChain,
  { run, signal }: LaneHandle,
) {
  const files = await guidance?.forAgent(agent, guidanceReach(chain, settings));
  if (guidance !== undefined && files?.unsettled === true)
    await engine().commit((unit) => settleInstructions(unit, { settings, guidance }));
  return {
    outside: await outside?.forSession(chain, signal),
    ready: await readyTools(services),
    guidance: files,
    skills: files?.skills,
    memory: await memoryFor(store.db, settings, chain, run),
    today: today?.(world.clock.now()),
  };
}

/** Records the inputs of a run, so that it can be repeated. */
function record({ recorder, settings }: ExecuteParts, handle: LaneHandle, turn: () => RecordedTurn): void {
  if (recorder === undefined || (settings.store.recordDays ?? 0) === 0) return;
  handle.record(recorder.revisionOf(turn()));
}

/** The parts of a turn that a session's settings and supplies determine. */
export interface Offer extends Pick<TurnArgs, "tools" | "thinking"> {
  /** The parts of the system prompt. */
  readonly parts: readonly PromptPart[];
}

/** Builds the prompt and the list of tools, and records them. */
async function offerOf(
  parts: ExecuteParts,
  handle: LaneHandle,
  given: {
    readonly session: Session;
    readonly agent: AgentSettings;
    readonly chain: SpawnChain;
    readonly supplies: Awaited<ReturnType<typeof suppliesOf>>;
    readonly model: string;
  },
): Promise<Pick<TurnArgs, "system" | "tools" | "thinking">> {
  const { settings } = parts;
  const { run } = handle;
  const { session, agent, chain, supplies, model } = given;
  const { ready, outside, skills } = supplies;
  const { clientTools } = run.input;
  const offered = toolsFor({ settings, chain, outside, ready, skills }).filter(
    ({ spec }) => !isClientTool(clientTools, spec.name),
  );
  const context = await contextOf(parts, run, session);
  const prompt = promptOf({ settings, session, agent, tools: offered, context, ...supplies });
  const { sessionKey } = prompt;
  const wanted = run.input.thinking ?? session.thinkingLevel ?? agent.thinking;
  const made: Offer = {
    parts: promptParts(prompt),
    tools: withClientTools(
      offered.map((tool) => tool.spec),
      clientTools,
    ),
    thinking: thinkingNamed(wanted) ?? agent.thinking,
  };
  const own = parts.hooks?.offer(run, made, { sessionKey, ...optional({ context }) }) ?? made;
  const { parts: sections, tools, thinking } = own;
  record(parts, handle, () => ({
    ...{ settings, model, thinking, tools, sessionKey },
    prompt: sections.filter(({ title }) => title !== CONTEXT_TITLE),
    ...(context === undefined ? {} : { context: run.input.context === undefined ? "session" : "input" }),
  }));
  return { system: joinPrompt(sections), tools, thinking };
}

function factsOf(end: TurnEnd, model: Pick<ResolvedModel, "ref">): EndFacts {
  switch (end.kind) {
    case "ok":
      return {
        state: "ok",
        reply: end.text,
        usage: end.usage,
        contextTokens: end.contextTokens,
        model: model.ref,
        ...(end.isCut === true ? { error: CUT_SHORT } : {}),
      };
    case "error": {
      const { code, error, usage, contextTokens } = end;
      const reply = end.text === undefined ? {} : { reply: end.text };
      return { state: "error", code, error, usage, contextTokens, model: model.ref, ...reply };
    }
    case "aborted":
      return {
        state: "aborted",
        code: "run_aborted",
        error: "the run was aborted",
        usage: end.usage,
        model: model.ref,
      };
  }
}

/**
 * Runs a turn of an agent outside of this gateway, like a program. None can be contained, so a session that
 * requires a sandbox is refused.
 */
async function executeOutside(
  parts: ExecuteParts,
  handle: LaneHandle,
  given: { session: Session; entries: readonly Entry[]; agent: AgentSettings; trace: RunTrace | undefined },
): Promise<EndFacts> {
  const { settings, store, world } = parts;
  const { session, agent } = given;
  const { runtime } = agent;
  const outside = runtime && (await parts.runtimes?.get(runtime.type)?.());
  if (runtime === undefined || outside === undefined) return failRun(`agent "${agent.id}" can't run here`);
  const chain = await spawnChainOf(store.db, session);
  if (isSandboxed(chain, settings)) {
    const kind = outsideKind(runtime);
    const text = `agent "${agent.id}" is ${kind}, which can't be contained, and this session has to be`;
    return failRun(`${text}: see agents.list[${agent.id}].sandbox.mode, and who spawned the session`);
  }
  const context = await contextOf(parts, handle.run, session);
  const { model, thinking } = agent;
  const { key: sessionKey } = session;
  record(parts, handle, () => ({ settings, model, thinking, sessionKey, prompt: [], tools: [] }));
  await handle.confirm();
  const end = await outside.turn({ ...given, handle, context, settings, world });
  return "kind" in end ? factsOf(end, { ref: agent.model }) : end;
}

function publishRetry({ run, publish }: LaneHandle, retry: ModelRetry, atMs: number): void {
  publish({ kind: "retry", runId: run.runId, sessionKey: run.sessionKey, retry, atMs });
}

/** Reports a tool call to live listeners, the log and the trace. */
function publishTool(
  { run, log, publish }: LaneHandle,
  everyTool: readonly ToolSpec[],
  event: ToolEvent,
  trace: RunTrace | undefined,
): void {
  const { runId, sessionKey } = run;
  const { callId, isError } = event;
  // A name that the model invented could be any text.
  const name = everyTool.some((tool) => tool.name === event.name) ? event.name : "unknown";
  const shown =
    event.arguments === undefined ? {} : { arguments: keptArguments(event.name, event.arguments) };
  if (isError === true) log.debug({ part: "tools", callId, tool: name }, "a tool call failed");
  trace?.tool({ ...event, ...shown, name });
  publish({ kind: "tool", runId, sessionKey, ...event, ...shown });
}

/** A run that pauses for longer than this before it asks a model again gives back its slot. */
const SLOT_KEPT_MS = 1_000;

/**
 * Wraps a port: before each request to a model, checks that this process still owns the run. Before each
 * call, begins a new step if the current one was long.
 */
function confirmedPort(port: ModelPort, { confirm, elsewhere }: LaneHandle, pace: Pace): ModelPort {
  return {
    async call(request, ...how) {
      await confirm();
      await pace();
      const pauseRetry = async (pause: () => Promise<unknown>, ms: number): Promise<void> => {
        await (ms > SLOT_KEPT_MS ? elsewhere(pause) : pause());
        await confirm();
      };
      return port.call({ ...request, pauseRetry }, ...how);
    },
  };
}

/** Returns the dependencies of tools that are the same in every run. */
function toolPartsOf(parts: ExecuteParts) {
  const { settings, store, outside, answered, threads, guidance } = parts;
  const shared = {
    settings,
    answered,
    threads,
    guidance,
    ...(parts.timeZone && { timeZone: parts.timeZone }),
  };
  return { ...shared, db: store.db, engine: parts.engine(), toolNames: toolNames(outside) };
}

/** Returns the callbacks that report the steps of a turn to its lane. */
function callbacksOf(
  { world: { clock }, store: { db } }: ExecuteParts,
  handle: LaneHandle,
  everyTool: readonly ToolSpec[],
  trace: RunTrace | undefined,
): Pick<
  TurnArgs,
  "append" | "takeSteered" | "pass" | "onText" | "onThinking" | "onTool" | "onRetry" | "awaitsApproval"
> {
  return {
    append: (entry) => handle.append(storedEntry(entry)),
    takeSteered: () => handle.takeSteered(),
    pass: (...call) => handle.pass(...call),
    onText: (delta) => handle.text(delta),
    onThinking: (delta) => handle.thinking(delta),
    onTool: (event) => publishTool(handle, everyTool, event, trace),
    onRetry: (retry) => publishRetry(handle, retry, clock.now()),
    awaitsApproval: async (callId) => (await permissionOfCall(db, callId)) !== undefined,
  };
}

/**
 * Returns the context of a tool call. After a change of the settings, a right must be given by the settings
 * with which the run began and by the newest ones (I13).
 */
async function contextNow(newest: ExecuteParts, ctx: ToolContext): Promise<Result<ToolContext>> {
  const { chain, session } = ctx;
  const now = settingsNow(newest.settings);
  if (now === ctx.settings) return ok(ctx);
  // Without an agent of the chain its stricter rules would be unknown.
  const gone = chain.find(({ agentId }) => findAgent(now, agentId) === undefined);
  if (gone !== undefined) return fail("tool_denied", notConfigured(gone.agentId));
  const settings = narrowSettings(ctx.settings, now);
  const sandbox = await newest.sandboxFor(chain, settings);
  if (!sandbox.ok) return sandbox;
  const { sandbox: _, ...rest } = ctx;
  const agent = agentOf(settings, session);
  const viewer = sessionViewer(chain, settings);
  return ok({ ...rest, ...optional({ sandbox: sandbox.value }), settings, agent, viewer });
}

async function callNow(
  newest: ExecuteParts,
  ctx: ToolContext,
  request: ToolCallRequest,
): Promise<ToolOutcome> {
  const found = await contextNow(newest, ctx);
  const renewContext = () => contextNow(newest, ctx);
  if (found.ok) return invokeTool({ ...found.value, renewed: renewContext }, request);
  return { text: JSON.stringify(toolResult(found)), isError: true };
}

/** Answers a tool call: by the hooks if there are any, else by the tool. */
function answer(newest: ExecuteParts, ctx: ToolContext, request: ToolCallRequest): Promise<ToolOutcome> {
  const really: ReallyCall = (args) =>
    callNow(newest, ctx, args === undefined ? request : { ...request, arguments: args });
  const { hooks } = newest;
  return hooks === undefined || ctx.run === undefined ? really() : hooks.call(ctx.run, request, really);
}

async function executeTurn(
  newest: ExecuteParts,
  parts: ExecuteParts,
  handle: LaneHandle,
  trace: RunTrace | undefined,
): Promise<EndFacts> {
  const { settings, store, port } = parts;
  const { run, signal } = handle;
  const world = { ...parts.world, log: withFields(handle.log, { part: "agent" }) };
  const pace = world.redactor.pace();
  const [session, entries] = await Promise.all([
    getSession(store.db, run.sessionKey),
    readContext(store.db, run.sessionId),
  ]);
  if (session === undefined || session.sessionId !== run.sessionId)
    return failRun("the session was reset or deleted");
  const agent = findAgent(settings, session.agentId);
  if (agent === undefined) return failRun(notConfigured(session.agentId));
  const able = checkFormat(settings, modelOf(settings, session), run.input.format);
  if (!able.ok) return failRun(able.error);
  if (agent.runtime !== undefined)
    return executeOutside({ ...parts, world }, handle, { session, entries, agent, trace });
  const model = resolveModel(settings.providers, session.model ?? agent.model);
  if (!model.ok) return failRun(model.error, "invalid_model");
  const chain = await spawnChainOf(store.db, session);
  const sandbox = await parts.sandboxFor(chain, settings);
  // Without a backend, the run is refused before the first model call. It never runs without the sandbox.
  if (!sandbox.ok) return failRun([sandbox.error, sandbox.hint ?? ""].join(" ").trim());
  const supplies = await suppliesOf(parts, agent, chain, handle);
  const offer = await offerOf(parts, handle, { session, agent, chain, supplies, model: model.value.ref });
  const { ready, outside, skills } = supplies;
  const ctx: ToolContext = {
    ...optional({ outside, sandbox: sandbox.value }),
    ...{ session, agent, chain, ready, skills },
    ...toolPartsOf(parts),
    viewer: sessionViewer(chain, settings),
    run,
    signal,
    wait: handle.wait,
  };
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const every = toolSpecs(
    outside,
    messages.flatMap((message) =>
      message.role === "assistant" ? toolCallsOf(message).map(({ name }) => name) : [],
    ),
  );
  // A record may offer tools that this gateway does not have.
  const names = new Set(every.map(({ name }) => name));
  const everyTool = [...every, ...offer.tools.filter(({ name }) => !names.has(name))];
  let answering = model.value;
  const end = await runTurn({
    runId: run.runId,
    sessionId: session.sessionId,
    ...offer,
    model: model.value,
    fallbackModels: agent.fallbackModels.flatMap((ref) => {
      const found = resolveModel(settings.providers, ref);
      return found.ok && checkFormat(settings, ref, run.input.format).ok ? [found.value] : [];
    }),
    onFallback: (next) => {
      answering = next;
    },
    ...optional({
      format: run.input.format,
      compactOnly: run.input.compact,
      clientTools: run.input.clientTools,
      startsAfter: endsWithResult(run.input) ? run.input.results?.at(-1)?.id : undefined,
    }),
    entries,
    everyTool,
    ...callbacksOf(parts, handle, everyTool, trace),
    callTool: (request, cut, askAside) =>
      handle.duringCall(() => answer(newest, { ...ctx, signal: cut, askAside }, request)),
    signal,
    attempt: run.attempt,
    maxModelCalls: agent.maxModelCalls,
    limits: agent,
    budget: handle.budget,
    port: confirmedPort(trace?.port(port) ?? port, handle, pace),
    isReplay: parts.hooks !== undefined,
    maySayNothing: run.flow?.step === "reply" || run.flow?.step === "announce",
    world,
  });
  const spent = end.kind === "error" ? parts.hooks?.spent(run) : undefined;
  return factsOf(spent === undefined ? end : { ...end, usage: spent }, answering);
}

/** Takes the message of a run to a peer. */
async function executeAtPeer(parts: ExecuteParts, handle: LaneHandle): Promise<EndFacts> {
  const { sessionKey, sessionId } = handle.run;
  const session = await getSession(parts.store.db, sessionKey);
  if (session?.sessionId !== sessionId) return failRun("the session was reset or deleted");
  const peers = await parts.runtimes?.get(PEER)?.();
  const entries = await readContext(parts.store.db, sessionId);
  const run = { handle, session, entries, settings: settingsNow(parts.settings), world: parts.world };
  const end = (await peers?.turn(run)) ?? failRun("peers can't be reached from here");
  return "kind" in end ? factsOf(end, { ref: PEER }) : end;
}

export function createExecutor(parts: ExecuteParts): Executor {
  const { traces } = parts;
  // The run keeps the settings with which it begins (LS1 of core/shapes/settings/live.ts).
  const turn = (handle: LaneHandle, trace?: RunTrace): Promise<EndFacts> =>
    peerInKey(handle.run.sessionKey) === undefined
      ? executeTurn(parts, { ...parts, settings: settingsNow(parts.settings) }, handle, trace)
      : executeAtPeer(parts, handle);
  const { settings, world } = parts;
  const noteAborted = (run: Run): void => {
    const { runId, agentId, sessionKey } = run;
    const own = findAgent(settingsNow(settings), agentId)?.runtime?.type ?? "";
    const outside = parts.runtimes?.get(peerInKey(sessionKey) === undefined ? own : PEER);
    outside?.()
      .then((opened) => opened.noteAborted?.(run))
      .catch((error: unknown) =>
        world.log.debug({ err: error, runId }, "could not cancel the task of an aborted run"),
      );
  };
  if (traces === undefined) return { execute: (handle) => turn(handle), noteAborted: noteAborted };
  return {
    noteAborted: noteAborted,
    async execute(handle) {
      const trace = traces.forRun(handle.run);
      try {
        return await turn(handle, trace);
      } finally {
        trace?.left();
      }
    },
  };
}
