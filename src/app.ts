// Builds each part of a gateway once, starts the parts in order, and stops them in reverse. Nothing listens
// before the store is open and recovered, and an invalid configuration starts nothing. After a failure,
// everything that was opened is closed again.

import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fullModelName, listModels } from "./agent/model/model.ts";
import { openModelPort } from "./agent/model/port.ts";
import { type ChannelParts, channelParts } from "./app/channels.ts";
import { ClockWatch } from "./app/clock-watch.ts";
import { deadlineHandlers } from "./app/deadlines.ts";
import { doctorOf } from "./app/doctor.ts";
import { logRuns } from "./app/run-log.ts";
import { followTranscripts, jsonlCopiesOf } from "./app/transcripts.ts";
import { openWatching, type Watching } from "./app/watching.ts";
import { both, type DeliveryWorker, OutboxWorker } from "./channels/outbound.ts";
import { threadsOf } from "./channels/threads.ts";
import { createWebchat } from "./channels/webchat.ts";
import { createWebhooks, forgetSent } from "./channels/webhook.ts";
import { reachableHost } from "./cli/address.ts";
import { secretsOf, secretsOfEnvironment } from "./config/describe.ts";
import { optional } from "./core/optional.ts";
import { fail, ok, type Result } from "./core/shapes/errors.ts";
import { isSubagentKey } from "./core/shapes/session-key.ts";
import type { LogPart } from "./core/shapes/settings/logging.ts";
import { backupFolder, dailyBudgets, notConfigured, type Settings } from "./core/shapes/settings/settings.ts";
import type { AgentSources } from "./core/shapes/settings/sources.ts";
import { splitRef } from "./core/text/model-ref.ts";
import { sharedWorld } from "./engine/cluster/shared-world.ts";
import { Engine } from "./engine/engine.ts";
import type { AcpHost } from "./execute/acp.ts";
import { createExecutor, createSandboxFor, type SandboxFor } from "./execute.ts";
import { createHookRecorder } from "./flows/delivery/outgoing-hooks.ts";
import { lostAttachments } from "./flows/job/archive.ts";
import { removeAttachments } from "./flows/job/attachments.ts";
import { ensureMainSessions } from "./flows/session/lifecycle.ts";
import { createSuccessors } from "./flows/successors.ts";
import { ensureToken } from "./gateway/auth.ts";
import type { OpenDemo } from "./gateway/demo.ts";
import { listenFailure } from "./gateway/http/listen-failure.ts";
import { NodeHub } from "./gateway/nodes/nodes.ts";
import { type GatewayDeps, startGateway } from "./gateway/server.ts";
import type { NetworkPeers } from "./sandbox/peers.ts";
import { StoreProblem } from "./store/problems.ts";
import { jobsOfOthers } from "./store/queries/cron-jobs.ts";
import type { Store } from "./store/sql.ts";
import type { JsonlCopies } from "./store/sqlite/jsonl-copies.ts";
import { openSqlite } from "./store/sqlite/sqlite.ts";
import type { Backups } from "./store/transfer/backups.ts";
import { watchWrites } from "./store/write-watch.ts";
import type { OutsideServers } from "./tools/mcp/servers.ts";
import { Passes } from "./tools/passes.ts";
import { withReplies } from "./triggers/replies.ts";
import { logging, type World } from "./world.ts";

let knownTimeZone: string | undefined;

/** Returns the machine's IANA time zone. Node reads it only once, at its start. */
function timeZone(): string {
  knownTimeZone ??= new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return knownTimeZone;
}

/** Name of the pool of execution slots for sub-agents, whose runs have a separate limit. */
const SUBAGENT_POOL = "subagents";
/** Maximum number of scheduled jobs in the start-up log's list of jobs that will fail. */
const JOB_WARNINGS_MAX = 10;

export interface AppOptions {
  readonly settings: Settings;
  readonly world: World;
  readonly version: string;
  readonly configPath?: string;
  readonly agentSources?: AgentSources;
  /** Reads the configuration file again. */
  readonly checkConfig?: GatewayDeps["checkConfig"];
  /** Reads and writes the configuration file. */
  readonly configFile?: GatewayDeps["configFile"];
  /** The process's environment, for sandbox programs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /**
   * Stops the wait for a database server that is down. If absent, there is no wait: the start fails at once.
   */
  readonly stop?: AbortSignal | undefined;
  /** Opens a separate gateway for a demo. Absent if there is no demo. */
  readonly openDemo?: OpenDemo;
  /** Time before each answer of the offline model. Default 0. */
  readonly offlineThinkMs?: number;
}

export interface App {
  readonly port: number;
  readonly token: string;
  readonly tokenIsGenerated: boolean;
  /** Warnings about contradictions between settings and stored rows. */
  readonly warnings: readonly string[];
  readonly engine: Engine;
  readonly store: Store;
  /** Waits up to `graceMs` for running work, parks the rest, then closes everything. */
  close(graceMs: number): Promise<void>;
}

/** Returns the world for one part of the gateway, whose log lines name that part. */
const asPart = (world: World, part: LogPart): World => logging(world, { part });

/** Creates the sandboxes for sessions. No sandbox contains the gateway's own files. */
function sandboxing(options: AppOptions): {
  sandboxFor: SandboxFor;
  refusesPeer: NonNullable<GatewayDeps["refusesPeer"]>;
} {
  const { settings, world, configPath, environment } = options;
  const { dir } = settings.store;
  let peers: NetworkPeers | undefined;
  const sandboxFor = createSandboxFor(settings, async () => {
    const { createSandboxFinder } = await import("./sandbox/find.ts");
    const { NetworkPeers } = await import("./sandbox/peers.ts");
    peers = new NetworkPeers();
    const keepOut = [dir, backupFolder(settings.store), ...(configPath === undefined ? [] : [configPath])];
    const workspaces = settings.agents.map(({ workspace }) => workspace);
    const cacheDir = join(dir, "sandbox-cache");
    return createSandboxFinder({
      world: asPart(world, "sandbox"),
      keepOut,
      workspaces,
      cacheDir,
      environment,
      peers,
    });
  });
  return { sandboxFor, refusesPeer: (peer) => peers?.refuses(peer) ?? false };
}

/** Opens MCP servers; each starts when it is first needed. Returns nothing if none is configured. */
async function openOutside(options: AppOptions): Promise<OutsideServers | undefined> {
  if (options.settings.tools.mcp.servers.length === 0) return undefined;
  const { openOutsideServers } = await import("./tools/mcp/servers.ts");
  return openOutsideServers({ ...options, world: asPart(options.world, "tools") });
}

/** Programs of ACP agents. The code that runs them is loaded by the first run of such an agent. */
interface AcpParts {
  readonly passes: Passes;
  readonly open: () => Promise<AcpHost>;
  readonly programs: () => readonly string[];
  /** Set once the gateway listens. Runs start only after that. */
  port: number;
  close(): Promise<void>;
}

/** The root folder of a checkout or a package. */
const TOP = join(dirname(fileURLToPath(import.meta.url)), "..");
/** The command that starts this program. */
const LAUNCH = [process.execPath, join(TOP, "bin", "parley.js")];
/** The folder to which `npm run build:page` writes the web page. */
const PAGE_DIR = join(TOP, "dist", "ui");

/** Returns the address of the gateway for programs on this machine. */
const urlOf = ({ gateway }: Settings, { port }: Pick<AcpParts, "port">): string =>
  `ws://${reachableHost(gateway.host)}:${port}`;

function acpParts({ settings, world, environment, version }: AppOptions): AcpParts {
  const passes = new Passes(() => world.ids.uuid());
  let opened: Promise<AcpHost> | undefined;
  let host: AcpHost | undefined;
  const gatewayUrl = (): string => urlOf(settings, parts);
  const open = async (): Promise<AcpHost> => {
    const { openAcpHost } = await import("./execute/acp.ts");
    const dir = join(settings.store.dir, "acp");
    host = openAcpHost({
      world: asPart(world, "agent"),
      passes,
      environment,
      version,
      dir,
      mcp: { launcher: LAUNCH, gatewayUrl },
    });
    return host;
  };
  const parts: AcpParts = {
    passes,
    port: 0,
    open: () => {
      opened ??= open();
      return opened;
    },
    programs: () => host?.agents.running() ?? [],
    close: async () => {
      await (await opened)?.agents.close();
    },
  };
  return parts;
}

/** Dependencies of runs besides the model and the store. */
interface Helpers {
  readonly watching: Watching;
  readonly sandboxFor: SandboxFor;
  readonly outside: OutsideServers | undefined;
  readonly acp: AcpParts;
  readonly ways: ChannelParts;
}

interface Working {
  readonly engine: Engine;
  readonly outbox: DeliveryWorker;
  readonly nodes: NodeHub | undefined;
}

function engineSettings(settings: Settings) {
  const { queueMax, agentToAgent } = settings.session;
  return {
    queueMax,
    ...agentToAgent,
    dailyBudgets: dailyBudgets(settings),
    maxConcurrent: settings.maxConcurrent,
    pools: { [SUBAGENT_POOL]: settings.subagents.maxConcurrent },
  };
}

/** Builds the engine from its parts. */
function buildEngine(
  options: AppOptions,
  store: Store,
  jsonlCopies: JsonlCopies,
  { watching: { metrics, traces }, sandboxFor, outside, acp, ways }: Helpers,
): Working {
  const { settings, world } = options;
  const { channels, burstDue } = ways;
  const hooks = createWebhooks(settings.outgoingHooks, asPart(world, "channels"));
  const told = { deliveryQueued: () => news.deliveryQueued() };
  const record = createHookRecorder(settings.outgoingHooks, told, { dropped: metrics.hookEventDropped });
  const outbound = { deliveryQueued: () => outbox.deliveryQueued() };
  const transcriptPath = (sessionId: string) => store.transcriptPath(sessionId);
  const flows = createSuccessors({ settings, outbound, transcriptPath });
  const successors = withReplies(flows, { settings, outbound });
  const asked = { settings, world: asPart(world, "gateway"), engine: () => engine };
  const nodes = settings.nodes.enabled ? new NodeHub(asked) : undefined;
  const executor = createExecutor({
    settings,
    store,
    world,
    timeZone,
    port: openModelPort(asPart(world, "agent"), metrics.modelCalled, options.offlineThinkMs),
    answered: metrics.toolAnswered,
    traces,
    outbound,
    threads: threadsOf(channels, asPart(world, "channels")),
    sandboxFor,
    outside,
    nodes,
    acp: acp.open,
    engine: () => engine,
  });
  const engine: Engine = new Engine({
    store,
    world: asPart(world, "engine"),
    successors,
    executor,
    deadlineHandlers: deadlineHandlers({
      settings,
      world: asPart(world, "flows"),
      jsonlCopies,
      burstDue,
      outbound,
      engine: () => engine,
    }),
    facts: { host: hostname(), version: options.version },
    settings: engineSettings(settings),
    poolOf: (run) => (isSubagentKey(run.sessionKey) ? SUBAGENT_POOL : undefined),
    record,
    committed: metrics.committed,
  });
  traces?.follow(engine.bus, store.db);
  const whose = { owner: engine.processId, shared: store.shared !== undefined };
  const common = { ...whose, db: store.db, commit: engine.commit, world: asPart(world, "channels") };
  const outbox: OutboxWorker = new OutboxWorker({ ...common, channels, of: "texts" });
  // Separate from the outbox for texts, so that slow receivers of web hooks do not delay texts.
  const news: OutboxWorker = new OutboxWorker({
    ...common,
    channels: new Map([[hooks.id, hooks]]),
    of: "hooks",
  });
  engine.everySweep(() => outbox.sweep());
  engine.everySweep(() => news.sweep());
  const webchat = createWebchat(engine.bus, world.clock);
  channels.set(webchat.id, webchat);
  nodes?.start();
  return { engine, outbox: both(outbox, news), nodes };
}

/** Opens the database that the settings name. */
async function openStore({ settings, world: all, stop }: AppOptions): Promise<Store> {
  const { postgresUrl: url } = settings.store;
  const world = asPart(all, "store");
  if (url === undefined) return openSqlite({ ...settings.store, ...world });
  const { openPostgres } = await import("./store/postgres/postgres.ts");
  const { openWhenThere } = await import("./app/store-wait.ts");
  return openWhenThere(() => openPostgres({ url, world }), { settings, world, stop });
}

/** Returns the gateway's token. Also teaches the redactor the token and the secrets of the settings (I14). */
async function tokenOf({ settings, world }: AppOptions): Promise<string> {
  const token = settings.gateway.token ?? (await ensureToken(settings.store.dir, world));
  world.redactor.learn([...secretsOf(settings), token]);
  return token;
}

function modelRows({ providers }: Settings): ReturnType<GatewayDeps["models"]> {
  return listModels(providers).map(({ ref, settings }) => {
    const { id, name = id, contextWindow, maxOutputTokens, reasoning, images, cost } = settings;
    const { provider } = splitRef(ref);
    return { id, name, provider, contextWindow, maxOutputTokens, reasoning, images, cost };
  });
}

/** A test call that takes longer fails. */
const MODEL_TEST_MAX_MS = 20_000;
/** Maximum number of test calls in progress. */
const MODEL_TESTS_MAX = 4;

function modelTester({ settings, world }: Pick<AppOptions, "settings" | "world">): GatewayDeps["tryModel"] {
  let testing = 0;
  return async (ref, signal) => {
    if (testing >= MODEL_TESTS_MAX)
      return fail("rate_limited", `${MODEL_TESTS_MAX} models are being tested; wait for their answers`);
    testing += 1;
    try {
      const { tryModel } = await import("./agent/model/try-model.ts");
      return ok(await tryModel(world, settings.providers, ref, MODEL_TEST_MAX_MS, signal));
    } finally {
      testing -= 1;
    }
  };
}

/** Returns the backups of this gateway. The first call loads their code. */
function backupsOf(
  { settings, world, environment }: AppOptions,
  undo: (() => Promise<void>)[],
): GatewayDeps["backups"] {
  let opened: Promise<Backups> | undefined;
  const open = async (): Promise<Backups> => {
    const { Backups: Opened } = await import("./store/transfer/backups.ts");
    const secrets = [...secretsOf(settings), ...secretsOfEnvironment(environment)];
    return new Opened({ settings: settings.store, world: asPart(world, "store"), secrets });
  };
  const theirs = (): Promise<Backups> => {
    opened ??= open();
    return opened;
  };
  undo.push(async () => (await opened)?.close());
  return { list: async () => (await theirs()).list(), begin: async () => (await theirs()).begin() };
}

/** Returns the functions that test and maintain this installation. */
function upkeepOf(
  options: AppOptions,
  acp: AcpParts,
  undo: (() => Promise<void>)[],
): Pick<GatewayDeps, "tryModel" | "doctor" | "backups"> {
  const { settings, world, configPath, environment } = options;
  const doctor = doctorOf({
    world: asPart(world, "gateway"),
    launcher: LAUNCH,
    folder: TOP,
    configPath,
    environment,
    gatewayUrl: () => urlOf(settings, acp),
  });
  const tryModel = modelTester({ ...options, world: asPart(world, "agent") });
  return { tryModel, doctor, backups: backupsOf(options, undo) };
}

/** Removes attachments that no session needs any longer. */
async function removeLost({ db }: Store, settings: Settings, { clock, log }: World): Promise<void> {
  for (const { workspace, dir } of await lostAttachments(db, settings, clock.now())) {
    const removed = await removeAttachments(workspace, dir);
    if (!removed.ok) log.warn({ dir, why: removed.error }, "lost attachments could not be removed");
  }
}

/**
 * Returns warnings about scheduled jobs that will fail because their agent was removed from the
 * configuration.
 */
async function jobWarnings({ db }: Store, { agents }: Settings, { redactor }: World): Promise<string[]> {
  const ids = agents.map(({ id }) => id);
  return (await jobsOfOthers(db, ids, JOB_WARNINGS_MAX)).map(({ id, name = id, agentId }) => {
    const job = JSON.stringify(redactor.mask(name));
    return `the scheduled job ${job} fails: ${notConfigured(agentId)}; see parley cron list`;
  });
}

/** Starts delivery, and the clock watch that wakes it. Returns a function that stops the watch. */
async function startOutbox(of: {
  engine: Engine;
  outbox: DeliveryWorker;
  settings: Settings;
  world: World;
}): Promise<() => Promise<void>> {
  const { engine, outbox, settings, world } = of;
  const lookAgain = (): void => outbox.deliveryQueued();
  const watch = new ClockWatch({ engine, world, cron: settings.cron.enabled, lookAgain });
  await watch.start();
  await outbox.start();
  return () => watch.stop();
}

/** Lets models write the titles of conversations, if the settings request this. */
async function writeTitles(
  { settings, world: all }: AppOptions,
  { db }: Store,
  { commit, bus }: Engine,
  { metrics }: Watching,
  undo: (() => Promise<void>)[],
): Promise<void> {
  if (settings.titles !== "model") return;
  const { Titles } = await import("./execute/titles.ts");
  const world = asPart(all, "agent");
  const port = openModelPort(world, metrics.modelCalled);
  const titles = new Titles({ settings, db, world, port, commit, limits: engineSettings(settings) });
  undo.push(titles.follow(bus));
}

/** Opens the store and its JSONL copies. */
async function openRecords(options: AppOptions, undo: (() => Promise<void>)[]) {
  const store = watchWrites(await openStore(options));
  undo.push(() => store.close());
  const world = sharedWorld(store, options.world);
  const jsonlCopies = jsonlCopiesOf({ settings: options.settings, world: asPart(world, "store") }, store);
  undo.push(() => jsonlCopies.close());
  return { store, world, jsonlCopies };
}

async function openParts(options: AppOptions, undo: (() => Promise<void>)[]): Promise<Omit<App, "warnings">> {
  const { settings, version, configPath, openDemo, agentSources } = options;
  const { store, world, jsonlCopies } = await openRecords(options, undo);
  const token = await tokenOf(options);
  const { sandboxFor, refusesPeer } = sandboxing(options);
  const outside = await openOutside(options);
  if (outside !== undefined) undo.push(() => outside.close());
  const acp = acpParts({ ...options, world });
  const watching = await openWatching(options, world);
  undo.push(() => watching.close());
  const ways = channelParts({ settings, world: asPart(world, "channels") });
  const helpers = { watching, sandboxFor, outside, acp, ways };
  const { engine, outbox, nodes } = buildEngine({ ...options, world }, store, jsonlCopies, helpers);
  followTranscripts(engine, store, jsonlCopies, asPart(world, "store").log);
  logRuns(engine, store, world);
  await writeTitles({ ...options, world }, store, engine, watching, undo);
  await ensureMainSessions({ engine, settings });
  await removeLost(store, settings, world);
  const checkModel = (name: string): Result<string> => fullModelName(settings.providers, name);
  undo.push(() => ways.close());
  await ways.open({ engine, outbound: outbox, checkModel });
  undo.push(await startOutbox({ engine, outbox, settings, world }));
  undo.push(() => outbox.stop(), forgetSent(engine.commit, asPart(world, "channels")), acp.close);
  undo.push(async () => nodes?.close());
  const gateway = await startGateway({
    settings,
    world: asPart(world, "gateway"),
    engine,
    outbound: outbox,
    channels: ways.channels,
    channelStatuses: () => ways.statuses(),
    version,
    token,
    timeZone,
    hostName: hostname(),
    models: () => modelRows(settings),
    checkModel,
    sandboxFor,
    outside,
    nodes,
    refusesPeer,
    pageDir: PAGE_DIR,
    passes: acp.passes,
    programs: acp.programs,
    metrics: watching.metrics,
    dropTranscript: (sessionId) => jsonlCopies.remove(sessionId),
    ...upkeepOf({ ...options, world }, acp, undo),
    ...optional({ configPath, openDemo, agentSources }),
    checkConfig: options.checkConfig,
    configFile: options.configFile,
  });
  undo.push(() => gateway.close({ reason: "stopping" }));
  acp.port = gateway.port;
  // Runs start last: none must have started if the port is in use.
  await engine.start();
  ways.listen();
  return {
    port: gateway.port,
    token,
    tokenIsGenerated: settings.gateway.token === undefined,
    engine,
    store,
    close: async (graceMs) => {
      gateway.announce({ reason: "stopping" });
      await ways.deafen();
      await engine.stop(graceMs);
      await unwind(undo, world);
    },
  };
}

/** Runs the clean-up steps in reverse order. If a step fails, the others still run. */
async function unwind(undo: (() => Promise<void>)[], world: World): Promise<void> {
  for (const step of undo.splice(0).reverse()) {
    try {
      await step();
    } catch (error) {
      world.log.error({ err: error }, "a part of the gateway did not stop cleanly");
    }
  }
}

function failureOf(error: unknown, settings: Settings): Result<App> {
  if (error instanceof StoreProblem) return fail("store_unavailable", error.message);
  const unheard = listenFailure(error, settings.gateway);
  if (unheard === undefined) throw error;
  return unheard;
}

/** Opens a whole gateway. Problems that a person can fix are returned as failures; only bugs are thrown. */
export async function openApp(options: AppOptions): Promise<Result<App>> {
  const undo: (() => Promise<void>)[] = [];
  const world = asPart(options.world, "app");
  try {
    const app = await openParts({ ...options, world }, undo);
    return ok({ ...app, warnings: await jobWarnings(app.store, options.settings, world) });
  } catch (error) {
    await unwind(undo, world);
    return failureOf(error, options.settings);
  }
}
