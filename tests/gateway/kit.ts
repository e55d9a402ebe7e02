// Helpers for gateway tests: a real gateway with engine and store on a free port, functions in place of
// models, and raw sockets.

import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import type { ModelPort } from "../../src/agent/model/model.ts";
import {
  createWatch,
  featureRunEnded,
  featureTimers,
  isTimerOn,
  openRuntimes,
  startServices,
} from "../../src/app/features.ts";
import { recorderOfRuns } from "../../src/app/records.ts";
import type { Channel } from "../../src/channels/channel.ts";
import { OutboxWorker } from "../../src/channels/outbound.ts";
import { createWebchat } from "../../src/channels/webchat.ts";
import { type ConnectOptions, connect, type GatewayClient } from "../../src/contract/client/node.ts";
import { optional } from "../../src/core/optional.ts";
import { labelOfSession } from "../../src/core/rules/labels/labels.ts";
import { fail, ok, type Result } from "../../src/core/shapes/errors.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import {
  dailyBudgets,
  type Settings,
  type TokenScope,
  type TokenSettings,
} from "../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { Executor } from "../../src/engine/run/executions.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import { createExecutor, type ExecuteParts } from "../../src/execute.ts";
import type { Service, Watch } from "../../src/feature.ts";
import { archiveTemporary, TEMPORARY_DEADLINE } from "../../src/flows/session/client-session.ts";
import { ensureMainSessions } from "../../src/flows/session/lifecycle.ts";
import { createSuccessors } from "../../src/flows/successors.ts";
import type { OpenDemo } from "../../src/gateway/demo.ts";
import { type Gateway, type GatewayDeps, startGateway } from "../../src/gateway/server.ts";
import type { Store } from "../../src/store/sql.ts";
import { Backups } from "../../src/store/transfer/backups.ts";
import { GuidanceFiles } from "../../src/tools/guidance/guidance.ts";
import { type OutsideServers, openOutsideServers } from "../../src/tools/mcp/servers.ts";
import { Passes } from "../../src/tools/passes.ts";
import { createCalendar } from "../../src/world/calendar.ts";
import type { World } from "../../src/world.ts";
import {
  assistantText,
  cleanup,
  endOf,
  openStore,
  quietWorld,
  temporaryFolder,
} from "../kit/engine/engine.ts";
import { checkEvent } from "../kit/event-check.ts";
import { type Choices, settingsWith } from "../tools/app.ts";

export const TOKEN = "main-token-of-all-the-tests";
/** The folder into which tests/setup.ts has built the web page. */
const PAGE_DIR = fileURLToPath(new URL("../../dist/ui", import.meta.url));

/** Plays a run of a session and returns its answer. An exception fails the run. */
export type Play = (handle: LaneHandle) => Promise<string> | string;

const CALENDAR = createCalendar(() => "UTC");

export interface House {
  readonly port: number;
  readonly url: string;
  readonly http: string;
  readonly dir: string;
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
  readonly gateway: Gateway;
  /** Connects a client, which is closed after the test. */
  client(more?: Partial<ConnectOptions>): Promise<GatewayClient>;
  /** Stops gateway, engine and store, as a restart would. */
  stop(): Promise<void>;
}

export interface HouseOptions {
  readonly play?: Play;
  /** Uses the real agent loop with this model instead of a `play`. */
  readonly model?: ModelPort;
  readonly choices?: Choices;
  /** Default: no session has a sandbox. */
  readonly sandboxFor?: GatewayDeps["sandboxFor"];
  /** Home folder of the user, with skills. Default: none. */
  readonly home?: string;
  readonly gateway?: Partial<Settings["gateway"]>;
  readonly dir?: string;
  readonly world?: World;
  /** The address in the settings of the store. Nothing is opened there: `disk` is the store. */
  readonly postgresUrl?: string;
  /** A store that is already open and may be shared. Default: an embedded one in `dir`. */
  readonly disk?: Store;
  readonly openDemo?: OpenDemo;
  /** Returns the check of the configuration file on disk. */
  readonly checkConfig?: GatewayDeps["checkConfig"];
  /** Reads and writes the configuration file. */
  readonly configFile?: GatewayDeps["configFile"];
  /** The configured models. Default: the offline one. */
  readonly models?: ReturnType<GatewayDeps["models"]>;
  readonly tryModel?: GatewayDeps["tryModel"];
  /** Gives the output of `parley doctor` in place of a process. */
  readonly doctor?: (offline: boolean, signal: AbortSignal) => Promise<Result<readonly object[]>>;
  /** Makes a backup in place of the thread. */
  readonly makeBackup?: ConstructorParameters<typeof Backups>[0]["make"];
  readonly agentSources?: GatewayDeps["agentSources"];
  /** Channels in addition to webchat. */
  readonly channels?: readonly Channel[];
  /** True if the test simulates a killed process. The clean-up then only closes its sockets. */
  readonly dies?: boolean;
}

async function playTurn(handle: LaneHandle, play: Play | undefined): Promise<EndFacts> {
  try {
    const reply = play === undefined ? `echo ${handle.run.input.text}` : await play(handle);
    if (reply !== "")
      await handle.append(assistantText(`reply-${handle.run.runId}-${handle.run.attempt}`, reply));
    return { state: "ok", reply };
  } catch (error) {
    if (handle.signal.aborted) throw error;
    return { state: "error", code: "run_failed", error: (error as Error).message };
  }
}

function executorOf(
  options: HouseOptions,
  settings: Settings,
  store: Store,
  world: World,
  more: Pick<
    ExecuteParts,
    "engine" | "outside" | "answered" | "services" | "guidance" | "today" | "timeZone"
  >,
): Executor {
  const { model: port, play } = options;
  if (port === undefined) return { execute: (handle) => playTurn(handle, play) };
  const recorder = recorderOfRuns({ version: "0.0.0-test", world });
  const { sandboxFor = async () => ok(undefined) } = options;
  const { runtimes } = openRuntimes({
    ...{ settings, world, engine: more.engine, version: "0.0.0-test", environment: {}, launcher: [] },
    ...{ passes: new Passes(() => world.ids.uuid()), gatewayUrl: () => "" },
  });
  return createExecutor({ settings, store, world, port, recorder, sandboxFor, runtimes, ...more });
}

/** Opens engine, flows, outbox and webchat over a store. */
async function openWorkers(
  options: HouseOptions,
  settings: Settings,
  store: Store,
  world: World,
  helpers: {
    services: Map<string, Service>;
    watch: Watch;
    outside: OutsideServers | undefined;
    guidance: GuidanceFiles;
    connections: () => number;
  },
) {
  const { services, watch, outside, guidance, connections } = helpers;
  const channels = new Map<string, Channel>();
  const engine: Engine = new Engine({
    store,
    world,
    settings: {
      ...settings.session,
      ...settings.session.agentToAgent,
      dailyBudgets: dailyBudgets(settings),
      labelOfSession: (session: Session) => labelOfSession(settings, session),
      maxConcurrent: settings.maxConcurrent,
    },
    successors: createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
      runEnded: featureRunEnded,
    }),
    executor: executorOf(options, settings, store, world, {
      engine: () => engine,
      outside,
      services,
      guidance,
      today: CALENDAR.today,
      timeZone: CALENDAR.timeZone,
      answered: watch.toolAnswered,
    }),
    deadlineHandlers: new Map([
      [TEMPORARY_DEADLINE, archiveTemporary],
      ...[...featureTimers({ settings, engine: () => engine })].filter(([kind]) => isTimerOn(kind, settings)),
    ]),
    committed: watch.committed,
  });
  const outbox = new OutboxWorker({
    of: "texts",
    db: store.db,
    commit: engine.commit,
    channels,
    world,
    owner: engine.processId,
    lookAtDates: () => engine.lookAtDates(),
  });
  for (const channel of [createWebchat(engine.bus, world.clock), ...(options.channels ?? [])]) {
    channels.set(channel.id, channel);
  }
  const version = "0.0.0-test";
  await startServices({ settings, world, version, engine: () => engine, connections }, services);
  await ensureMainSessions({ engine, settings });
  engine.attach(outbox);
  await engine.start();
  return { engine, channels };
}

/** The configuration of the only model. */
const ONE_MODEL: Pick<GatewayDeps, "models" | "checkModel"> = {
  models: () => [
    {
      ...{ id: "rehearsal", name: "Rehearsal", provider: "offline", contextWindow: 1000, reasoning: false },
      ...{ maxOutputTokens: 100, images: false, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } },
    },
  ],
  checkModel: (name) =>
    name === "offline/rehearsal" ? ok(name) : fail("invalid_model", `unknown model "${name}"`),
};

function modelsOf({ models }: HouseOptions): typeof ONE_MODEL {
  if (models === undefined) return ONE_MODEL;
  const names = models.map(({ provider, id }) => `${provider}/${id}`);
  const checkModel = (name: string) =>
    names.includes(name) ? ok(name) : fail("invalid_model", `unknown model "${name}"`);
  return { models: () => models, checkModel };
}

function backupsOf({ makeBackup: make }: HouseOptions, { store }: Settings, world: World): Backups {
  return new Backups({ settings: store, world, secrets: [], ...optional({ make }) });
}

const builtIn: GatewayDeps["tryModel"] = async () => ok({ usable: true, text: "built in", durationMs: 0 });

/** Returns the end of the doctor's process. */
const commandOf =
  (doctor: NonNullable<HouseOptions["doctor"]>): NonNullable<GatewayDeps["runCommand"]> =>
  async (words, { signal }) => {
    const stopped = new Promise<undefined>((resolve) =>
      signal.addEventListener("abort", () => resolve(undefined)),
    );
    const found = await Promise.race([doctor(words.includes("--offline"), signal), stopped]);
    const stdout = found?.ok === true ? JSON.stringify({ findings: found.value }) : "";
    const stderr = found?.ok === false ? found.error : "";
    const ending = found === undefined ? "aborted" : "ended";
    return {
      ending,
      exitCode: 0,
      signal: null,
      stdout,
      stdoutBytes: stdout.length,
      truncated: false,
      stderr,
    };
  };

export async function openHouse(options: HouseOptions = {}): Promise<House> {
  const { world = quietWorld(), agentSources, doctor, openDemo, home } = options;
  const dir = options.dir ?? temporaryFolder();
  const base = settingsWith(options.choices ?? {});
  const settings: Settings = {
    ...base,
    store: { ...base.store, dir, ...optional({ postgresUrl: options.postgresUrl }) },
    gateway: { ...base.gateway, ...options.gateway },
  };
  const store = options.disk ?? (await openStore(dir, world));
  const outside =
    settings.tools.mcp.servers.length === 0
      ? undefined
      : openOutsideServers({ settings, world, version: "0.0.0-test", environment: process.env });
  const services = new Map<string, Service>();
  const watch = createWatch(services);
  const late: { gateway?: Gateway } = {};
  const guidance = new GuidanceFiles({ now: () => world.clock.now(), home, db: store.db });
  const connections = () => late.gateway?.connections() ?? 0;
  const helpers = { services, watch, outside, guidance, connections };
  const { engine, channels } = await openWorkers(options, settings, store, world, helpers);
  const backups = backupsOf(options, settings, world);
  const gateway = await startGateway({
    settings,
    world,
    engine,
    channels,
    version: "0.0.0-test",
    token: TOKEN,
    ...CALENDAR,
    ...modelsOf(options),
    ...optional({ agentSources, runCommand: doctor && commandOf(doctor), openDemo }),
    ...{ localServers: async () => [], tryModel: options.tryModel ?? builtIn },
    sandboxFor: options.sandboxFor ?? (async () => ok(undefined)),
    ...{ outside, services, backups, guidance: helpers.guidance },
    pageDir: PAGE_DIR,
    watch,
    dropTranscript: async () => {},
    checkConfig: options.checkConfig,
    configFile: options.configFile,
  });
  late.gateway = gateway;
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await gateway.close();
    for (const service of services.values()) await service.close();
    await engine.stop(0);
    await outside?.close();
    await backups.close();
    await store.close();
  };
  cleanup(options.dies === true ? () => gateway.close() : stop);
  const url = `ws://127.0.0.1:${gateway.port}`;
  return {
    port: gateway.port,
    url,
    http: `http://127.0.0.1:${gateway.port}`,
    dir,
    engine,
    store,
    settings,
    gateway,
    stop,
    async client(more = {}) {
      const client = await connect({ url, token: TOKEN, reconnect: false, ...more });
      cleanup(() => client.close());
      client.onEvent(checkEvent);
      return client;
    },
  };
}

export interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly ok?: boolean;
  readonly event?: string;
  readonly seq?: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of every shape.
  readonly payload?: any;
  readonly error?: {
    code: string;
    message: string;
    details?: Record<string, unknown>;
    retryAfterMs?: number;
  };
}

/** A socket that sends exactly the given bytes. */
export interface Raw {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  /** Waits for the first matching frame, past or future. */
  next(fits: (frame: Frame) => boolean): Promise<Frame>;
  res(id: string): Promise<Frame>;
  send(frame: unknown): void;
  text(text: string): void;
  closed(): Promise<{ code: number; reason: string }>;
}

export async function openRaw(
  url: string,
  options: ConstructorParameters<typeof WebSocket>[2] = {},
): Promise<Raw> {
  const socket = new WebSocket(url, options);
  const frames: Frame[] = [];
  const watchers = new Set<() => void>();
  const end = Promise.withResolvers<{ code: number; reason: string }>();
  let over = false;
  socket.on("message", (data) => {
    const frame: Frame = JSON.parse(data.toString());
    frames.push(frame);
    if (frame.type === "event" && frame.event !== "connect.challenge") checkEvent(frame);
    for (const watcher of [...watchers]) watcher();
  });
  socket.on("close", (code, reason) => {
    over = true;
    end.resolve({ code, reason: reason.toString() });
    for (const watcher of [...watchers]) watcher();
  });
  socket.on("error", () => {});
  cleanup(() => socket.terminate());
  await once(socket, "open");
  const next = (fits: (frame: Frame) => boolean): Promise<Frame> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = frames.find(fits);
        if (found === undefined && !over) return;
        watchers.delete(look);
        if (found === undefined) reject(new Error("the socket closed first"));
        else resolve(found);
      };
      watchers.add(look);
      look();
    });
  return {
    socket,
    frames,
    next,
    res: (id) => next((frame) => frame.type === "res" && frame.id === id),
    send: (frame) => socket.send(JSON.stringify(frame)),
    text: (text) => socket.send(text),
    closed: () => end.promise,
  };
}

/** Returns the settings of an operator's token with one scope, for sessions that match these patterns. */
export function operatorToken(token: string, scope: TokenScope, sessions: readonly string[]): TokenSettings {
  return { token, role: "operator", scopes: [scope], sessions };
}

export function connectParams(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "test", version: "1", platform: "test", mode: "test" },
    auth: { token: TOKEN },
    ...more,
  };
}

/** Opens a socket and sends `connect`. */
export async function joined(house: Pick<House, "url">, more: Record<string, unknown> = {}): Promise<Raw> {
  const raw = await openRaw(house.url);
  raw.send({ type: "req", id: "hello", method: "connect", params: connectParams(more) });
  const hello = await raw.res("hello");
  if (hello.ok !== true) throw new Error(hello.error?.message);
  return raw;
}

/** Returns the texts of the messages to a session, without those of the agent. */
export async function textsTo(client: GatewayClient, sessionKey: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey });
  return messages.filter(({ role }) => role === "user").map(textOf);
}

/** Resolves when all runs have ended. */
export async function quiet({ store, engine }: House): Promise<void> {
  for (;;) {
    const open = await store.db
      .selectFrom("runs")
      .select("run_id")
      .where("state", "in", ["queued", "running", "waiting"])
      .executeTakeFirst();
    if (open === undefined) return;
    await endOf(engine, open.run_id);
  }
}
