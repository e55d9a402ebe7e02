// Builds each part of a gateway once, starts the parts in order, and stops them in reverse. Nothing listens
// before the store is open and recovered, and an invalid configuration starts nothing. After a failure,
// everything that was opened is closed again.

import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { learnedQuirks } from "./agent/model/learned.ts";
import { fullModelName, listModels } from "./agent/model/model.ts";
import { openModelPort } from "./agent/model/port.ts";
import { type ChannelParts, channelParts } from "./app/channels.ts";
import { ClockWatch } from "./app/clock-watch.ts";
import { commandRunner } from "./app/command-runner.ts";
import { deadlineHandlers, optionalDeadlines } from "./app/deadlines.ts";
import { engineSettings } from "./app/engine-settings.ts";
import {
  createWatch,
  featureRunEnded,
  featureWarnings,
  loadFeatures,
  openRuntimes,
  startServices,
} from "./app/features.ts";
import { addressAt, publishAddress } from "./app/gateway-address.ts";
import { openOutboxes, recorderOf } from "./app/news.ts";
import { planOldRows } from "./app/old-rows.ts";
import { outsideOf } from "./app/outside.ts";
import { recorderOfRuns } from "./app/records.ts";
import { type Follower, followConfig } from "./app/reload.ts";
import { logRuns } from "./app/run-log.ts";
import { titlesOf } from "./app/titles.ts";
import { followTranscripts, jsonlCopiesOf } from "./app/transcripts.ts";
import { threadsOf } from "./channels/threads.ts";
import { createWebchat } from "./channels/webchat.ts";
import { secretsOf, secretsOfEnvironment } from "./config/describe.ts";
import type { Reload } from "./config/reload.ts";
import { processEnvironment } from "./config.ts";
import { optional } from "./core/optional.ts";
import { fail, ok, type Result } from "./core/shapes/errors.ts";
import type { LogPart } from "./core/shapes/settings/logging.ts";
import { backupFolder, type Settings } from "./core/shapes/settings/settings.ts";
import type { AgentSources } from "./core/shapes/settings/sources.ts";
import { splitRef } from "./core/text/model-ref.ts";
import { sharedWorld } from "./engine/cluster/shared-world.ts";
import { Engine } from "./engine/engine.ts";
import { createExecutor, createSandboxFor, type SandboxFor } from "./execute.ts";
import type { Service, Services, Watch } from "./feature.ts";
import { lostAttachments } from "./flows/job/archive.ts";
import { removeAttachments } from "./flows/job/attachments.ts";
import { ensureMainSessions } from "./flows/session/lifecycle.ts";
import { createSuccessors } from "./flows/successors.ts";
import { ensureToken } from "./gateway/auth.ts";
import type { OpenDemo } from "./gateway/demo.ts";
import { listenFailure } from "./gateway/http/listen-failure.ts";
import { type Gateway, type GatewayDeps, startGateway } from "./gateway/server.ts";
import type { NetworkPeers } from "./sandbox/peers.ts";
import { fillFirstWords } from "./store/first-words.ts";
import { StoreConflict, StoreProblem } from "./store/problems.ts";
import type { Store } from "./store/sql.ts";
import type { JsonlCopies } from "./store/sqlite/jsonl-copies.ts";
import { openSqlite } from "./store/sqlite/sqlite.ts";
import type { Backups } from "./store/transfer/backups.ts";
import { watchWrites } from "./store/write-watch.ts";
import type { Traces } from "./telemetry/traces.ts";
import { GuidanceFiles } from "./tools/guidance/guidance.ts";
import { Passes } from "./tools/passes.ts";
import type { OutsideTools } from "./tools/tool.ts";
import { createCalendar } from "./world/calendar.ts";
import { logging, type World } from "./world.ts";

const CALENDAR = createCalendar(() => processEnvironment().env.TZ);

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
  /** Applies the configuration file to `settings`. If absent, changes apply at the next start. */
  readonly reload?: Reload;
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
  /** Reads the configuration file at once. Absent if it is not followed. */
  readonly reload?: () => void;
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
    const cacheDir = join(dir, "sandbox-cache");
    return createSandboxFinder({
      world: asPart(world, "sandbox"),
      keepOut,
      get workspaces() {
        return settings.agents.map(({ workspace }) => workspace);
      },
      cacheDir,
      environment,
      peers,
    });
  });
  return { sandboxFor, refusesPeer: (peer) => peers?.refuses(peer) ?? false };
}

/** The root folder of a checkout or a package. The built program, too, is one folder below it. */
const TOP = join(dirname(fileURLToPath(import.meta.url)), "..");
/** The command that starts this program. */
const LAUNCH = [process.execPath, join(TOP, "bin", "parley.js")];
/** The folder to which `npm run build:page` writes the web page. */
const PAGE_DIR = join(TOP, "dist", "ui");

const guidanceOf = ({ world, environment }: AppOptions, { db }: Store): GuidanceFiles =>
  new GuidanceFiles({ now: () => world.clock.now(), home: environment.HOME, db });

/** Dependencies of runs besides the model and the store. */
interface Helpers {
  readonly token: string;
  readonly watch: Watch;
  readonly traces: Traces | undefined;
  readonly sandboxFor: SandboxFor;
  readonly outside: OutsideTools;
  readonly runtimes: ReturnType<typeof openRuntimes>["runtimes"];
  readonly ways: ChannelParts;
  readonly guidance: GuidanceFiles;
  readonly services: Services;
}

interface Working {
  readonly engine: Engine;
  readonly deadlines: Follower;
}

/** Builds the engine from its parts. */
async function buildEngine(
  options: AppOptions,
  store: Store,
  jsonlCopies: JsonlCopies,
  { token, watch, traces, sandboxFor, outside, runtimes, ways, guidance, services }: Helpers,
): Promise<Working> {
  const { settings, world } = options;
  const { channels } = ways;
  const record = await recorderOf(settings, watch.eventDropped);
  const transcriptPath = (sessionId: string) => store.transcriptPath(sessionId);
  const successors = createSuccessors({ settings, transcriptPath, runEnded: featureRunEnded });
  const asked = { settings, world: asPart(world, "gateway"), engine: () => engine };
  const executor = createExecutor({
    settings,
    store,
    world,
    today: CALENDAR.today,
    port: openModelPort(asPart(world, "agent"), watch.modelCalled, options.offlineThinkMs),
    answered: watch.toolAnswered,
    traces,
    threads: threadsOf(channels, asPart(world, "channels")),
    sandboxFor,
    outside,
    services,
    timeZone: CALENDAR.timeZone,
    guidance,
    recorder: recorderOfRuns(options),
    runtimes,
    engine: () => engine,
  });
  const handlers = deadlineHandlers({ ...asked, world: asPart(world, "flows"), jsonlCopies });
  const engine: Engine = new Engine({
    store,
    world: asPart(world, "engine"),
    successors,
    executor,
    deadlineHandlers: handlers,
    facts: () => ({
      host: hostname(),
      version: options.version,
      ...optional({ configRevision: options.reload?.revision() }),
    }),
    settings: engineSettings(settings),
    record,
    committed: watch.committed,
  });
  traces?.follow(engine.bus, store.db);
  await openOutboxes({ engine, settings, world: asPart(world, "channels"), channels, token });
  const webchat = createWebchat(engine.bus, world.clock);
  channels.set(webchat.id, webchat);
  const deadlines = optionalDeadlines(handlers, { ...asked, burstDue: ways.burstDue });
  return { engine, deadlines };
}

/** Returns the gateway's token. Also teaches the redactor the token and the secrets of the settings (I14). */
async function tokenOf({ settings, world }: AppOptions): Promise<string> {
  const token = settings.gateway.token ?? (await ensureToken(settings.store.dir, world));
  world.redactor.learn([...secretsOf(settings), token]);
  return token;
}

function modelRows({ providers }: Settings): ReturnType<GatewayDeps["models"]> {
  return listModels(providers).map((model) => {
    const { id, name = id, contextWindow, maxOutputTokens, reasoning, images, cost } = model.settings;
    const { provider } = splitRef(model.ref);
    const learned = model.kind === "provider" ? learnedQuirks(model.provider, id) : [];
    const corrections = learned.length === 0 ? {} : { corrections: learned };
    return { id, name, provider, contextWindow, maxOutputTokens, reasoning, images, cost, ...corrections };
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
  gatewayUrl: () => string,
  undo: (() => Promise<void>)[],
): Pick<GatewayDeps, "tryModel" | "localServers" | "runCommand" | "backups"> {
  const { world, configPath, environment } = options;
  const runCommand = commandRunner({
    world: asPart(world, "gateway"),
    launcher: LAUNCH,
    folder: TOP,
    configPath,
    environment,
    gatewayUrl,
  });
  const tryModel = modelTester({ ...options, world: asPart(world, "agent") });
  const localServers: GatewayDeps["localServers"] = async () => {
    const { localServers: servers } = await import("./agent/model/local-models.ts");
    return (await servers(environment, world)).filter(({ models }) => models.length > 0);
  };
  return { tryModel, localServers, runCommand, backups: backupsOf(options, undo) };
}

/** Starts the clock watch. */
async function watchClock(
  of: { engine: Engine; settings: Settings; world: World },
  undo: (() => Promise<void>)[],
): Promise<void> {
  const watch = new ClockWatch(of);
  undo.push(() => watch.stop());
  await watch.start();
}

/** Follows the configuration file, if there is one. Returns a function that reads it at once. */
function followOf(
  { world, configPath: path, reload }: AppOptions,
  parts: readonly Follower[],
  gateway: Gateway,
  undo: (() => Promise<void>)[],
): App["reload"] {
  if (reload === undefined || path === undefined) return undefined;
  const tell: Gateway["configChanged"] = (change) => gateway.configChanged(change);
  const { look, stop } = followConfig({ reload, path, world, parts, tell });
  undo.push(stop);
  return look;
}

/** Gives first words to sessions of an earlier version. Returns a function that ends the work. */
function fillTitles(store: Store, world: World): () => Promise<void> {
  const stop = new AbortController();
  const work = fillFirstWords(store, { world, signal: stop.signal }).catch((error: unknown) =>
    world.log.warn({ err: error }, "could not read the first words of all sessions"),
  );
  return () => {
    stop.abort();
    return work;
  };
}

interface Opened {
  readonly store: Store;
  readonly world: World;
  readonly jsonlCopies: JsonlCopies;
}

/** Watches the writes of the store and opens its JSONL copies. */
function openRecords(options: AppOptions, opened: Store, undo: (() => Promise<void>)[]): Opened {
  const store = watchWrites(opened);
  const world = sharedWorld(store, options.world);
  const jsonlCopies = jsonlCopiesOf({ settings: options.settings, world: asPart(world, "store") }, store);
  undo.push(() => jsonlCopies.flush());
  return { store, world, jsonlCopies };
}

/** Copies the transcripts of runs and logs their ends. Removes what no session needs any longer. */
async function followRuns(
  of: Opened & Pick<Working, "engine"> & Pick<AppOptions, "settings">,
): Promise<void> {
  const { engine, store, world, jsonlCopies, settings } = of;
  followTranscripts(engine, store, jsonlCopies, asPart(world, "store").log);
  logRuns(engine, store, world);
  // Attachments that no session needs.
  for (const { workspace, dir } of await lostAttachments(store.db, settings, world.clock.now())) {
    const removed = await removeAttachments(workspace, dir);
    if (!removed.ok) world.log.warn({ dir, why: removed.error }, "lost attachments could not be removed");
  }
}

async function openParts(
  options: AppOptions,
  opened: Store,
  undo: (() => Promise<void>)[],
): Promise<Omit<App, "warnings">> {
  const { settings, version, configPath, openDemo, agentSources, checkConfig, configFile } = options;
  const { store, world, jsonlCopies } = openRecords(options, opened, undo);
  const token = await tokenOf(options);
  const { sandboxFor, refusesPeer } = sandboxing(options);
  const { tools: outside, ...servers } = outsideOf({ ...options, world: asPart(options.world, "tools") });
  undo.push(servers.close);
  // Loaded only if enabled.
  const load = settings.traces && (await import("./telemetry/traces.ts")).openTraces;
  const traces = await load?.(settings, asPart(world, "telemetry"), version);
  undo.push(async () => traces?.close());
  const ways = channelParts({ settings, world: asPart(world, "channels") });
  const guidance = guidanceOf(options, store);
  const services = new Map<string, Service>();
  const watch = createWatch(services);
  let port = 0;
  const gatewayUrl = (): string => addressAt(settings, port);
  const passes = new Passes(() => world.ids.uuid());
  const { runtimes, programs, close } = openRuntimes({
    ...options,
    world,
    passes,
    guidance,
    gatewayUrl,
    launcher: LAUNCH,
    engine: () => engine,
  });
  const helpers = { token, watch, traces, sandboxFor, outside, runtimes, ways, guidance, services };
  const working = await buildEngine({ ...options, world }, store, jsonlCopies, helpers);
  const { engine, deadlines } = working;
  undo.push(() => engine.stop(0));
  undo.push(async () => void (await Promise.all([...services.values()].map((one) => one.close()))));
  const late: { gateway?: Gateway; reload?: App["reload"] } = {};
  const connections = () => late.gateway?.connections() ?? 0;
  const ownWorld = asPart(world, "gateway");
  await startServices({ settings, version, world: ownWorld, engine: () => engine, connections }, services);
  await followRuns({ engine, store, world, jsonlCopies, settings });
  const checkModel = (name: string): Result<string> => fullModelName(settings.providers, name);
  undo.push(ways.close);
  await ways.open({ engine, checkModel, guidance });
  const titles = titlesOf({ settings, world: asPart(world, "agent"), engine, watch });
  undo.push(titles.close);
  // These parts follow the settings in this order.
  const followers: readonly Follower[] = [
    ways.apply,
    deadlines,
    servers.apply,
    async () => engine.lookAtSlots(),
    titles.apply,
    () => ensureMainSessions({ engine, settings }),
  ];
  for (const apply of followers) await apply();
  await watchClock({ engine, settings, world }, undo);
  await planOldRows(engine);
  undo.push(close);
  const gateway = await startGateway({
    settings,
    world: ownWorld,
    engine,
    channels: ways.channels,
    channelStatuses: () => ways.statuses(),
    version,
    token,
    ...CALENDAR,
    hostName: hostname(),
    models: () => modelRows(settings),
    checkModel,
    sandboxFor,
    ...{ outside, services, guidance },
    refusesPeer,
    pageDir: PAGE_DIR,
    passes,
    programs,
    watch,
    dropTranscript: (sessionId) => jsonlCopies.remove(sessionId),
    ...upkeepOf({ ...options, world }, gatewayUrl, undo),
    applyConfig: () => late.reload?.(),
    ...optional({ configPath, openDemo, agentSources, checkConfig, configFile }),
  });
  late.gateway = gateway;
  undo.push(fillTitles(store, asPart(world, "store")), () => gateway.close({ reason: "stopping" }));
  port = gateway.port;
  const unpublish = publishAddress({ ...options, world }, port);
  undo.push(async () => unpublish());
  await loadFeatures(settings);
  // Runs start last: none must have started if the port is in use.
  await engine.start();
  ways.listen();
  late.reload = followOf({ ...options, world }, followers, gateway, undo);
  return {
    ...optional({ reload: late.reload }),
    port: gateway.port,
    token,
    tokenIsGenerated: settings.gateway.token === undefined,
    ...{ engine, store },
    close: (graceMs) => closeParts({ gateway, ways, engine, world }, graceMs, undo),
  };
}

async function closeParts(
  { gateway, ways, engine, world }: { gateway: Gateway; ways: ChannelParts; engine: Engine; world: World },
  graceMs: number,
  undo: (() => Promise<void>)[],
): Promise<void> {
  gateway.announce({ reason: "stopping" });
  // At once, because the supervisor that stops this process may kill it soon.
  await Promise.all([ways.deafen(), engine.notePlannedStop()]);
  await engine.stop(graceMs);
  await unwind(undo, world);
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

/** Starts a gateway on an open store. A failure closes everything again, including the store. */
async function startOn(store: Store, options: AppOptions): Promise<App> {
  const undo: (() => Promise<void>)[] = [() => store.close()];
  try {
    const app = await openParts(options, store, undo);
    const show = (text: string): string => options.world.redactor.mask(text);
    return { ...app, warnings: await featureWarnings(app.store.db, options.settings, show) };
  } catch (error) {
    await unwind(undo, options.world);
    throw error;
  }
}

/** Opens the database that the settings name, and starts a gateway on it. */
async function startOnStore(options: AppOptions): Promise<App> {
  const { settings } = options;
  const { postgresUrl: url } = settings.store;
  const world = asPart(options.world, "store");
  if (url === undefined) return startOn(await openSqlite({ ...settings.store, ...world }), options);
  const { openPostgres } = await import("./store/postgres/postgres.ts");
  const { startWhenThere } = await import("./app/store-wait.ts");
  return startWhenThere(
    () => openPostgres({ url, world }),
    (store) => startOn(store, options),
    { ...options, world },
  );
}

/** Opens a whole gateway. Problems that a person can fix are returned as failures; only bugs are thrown. */
export async function openApp(options: AppOptions): Promise<Result<App>> {
  try {
    return ok(await startOnStore({ ...options, world: asPart(options.world, "app") }));
  } catch (error) {
    if (error instanceof StoreProblem || error instanceof StoreConflict)
      return fail("store_unavailable", error.message);
    const unheard = listenFailure(error, options.settings.gateway);
    if (unheard === undefined) throw error;
    return unheard;
  }
}
