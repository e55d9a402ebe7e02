// Starts the process: runs the command line, and loads the gateway only when a command needs it.
// A command that only talks to a gateway loads neither the store nor the engine.

import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { reachableHost } from "./cli/address.ts";
import { createCli, EXIT } from "./cli/cli.ts";
import type {
  CliParts,
  DatabaseReport,
  GatewayOptions,
  RunningGateway,
  SandboxReport,
  StoreTools,
  Trial,
} from "./cli/parts.ts";
import { runCli } from "./cli/run.ts";
import { secretsOf, secretsOfEnvironment } from "./config/describe.ts";
import { loadSettings, processEnvironment } from "./config.ts";
import { optional } from "./core/optional.ts";
import { fail, ok, type Result } from "./core/shapes/errors.ts";
import type { HostProgram, HostProgramEnd } from "./core/shapes/host-program.ts";
import { liveSettings } from "./core/shapes/settings/live.ts";
import { LOGGING, type LoggingSettings, loggingFrom } from "./core/shapes/settings/logging.ts";
import {
  OFFLINE_MODEL,
  type ProviderSettings,
  type SandboxSettings,
  type Settings,
} from "./core/shapes/settings/settings.ts";
import { Redactor } from "./core/text/redact/redact.ts";
import { harmlessJson } from "./core/text/safe-text.ts";
import { added } from "./features.ts";
import type { DemoPlace, OpenDemo } from "./gateway/demo.ts";
import { useProxies } from "./world/proxy.ts";
import { logging, realWorld, silenced, type World } from "./world.ts";

/** Root folder of a checkout or a package. */
const TOP = join(dirname(fileURLToPath(import.meta.url)), "..");

function versionOf(): string {
  const text = readFileSync(join(TOP, "package.json"), "utf8");
  return String((JSON.parse(text) as { version: unknown }).version);
}

/** Dependencies of all logs of this process. */
interface LogParts {
  readonly env: CliParts["env"];
  /** Redacts secrets in all lines. */
  readonly hidden: Redactor;
}

/**
 * Returns a world with the requested log, whose levels can change. The formatter for terminals is loaded only
 * if needed.
 */
async function worldOf(
  wanted: () => Omit<LoggingSettings, "format">,
  format: LoggingSettings["format"],
  { env, hidden }: LogParts,
): Promise<World> {
  const isPretty = format === "pretty" || (format === "auto" && process.stderr.isTTY === true);
  const lines = isPretty ? await import("./cli/log-lines.ts") : undefined;
  const colours = process.stderr.isTTY === true && !env.NO_COLOR;
  return realWorld({
    levels: wanted,
    sync: true,
    redactor: hidden,
    tame: harmlessJson,
    ...(lines === undefined ? {} : { format: (line) => lines.logLine(line, colours) }),
  });
}

async function openGateway(
  options: GatewayOptions,
  parts: LogParts & { home: string; openDemo?: OpenDemo },
): Promise<Result<RunningGateway>> {
  const { configPath, port, host } = options;
  const wanted = {
    env: parts.env,
    home: parts.home,
    overrides: { ...optional({ port, host }) },
    ...optional({ configPath }),
  };
  const loaded = loadSettings(wanted);
  if (!loaded.ok) return loaded;
  const { warnings, path, agentSources } = loaded.value;
  const { openApp } = await import("./app.ts");
  const { checkAgain } = await import("./config/check.ts");
  const { createReload } = await import("./config/reload.ts");
  const live = liveSettings(loaded.value.settings);
  const { settings } = live;
  const learn = (secrets: readonly string[]): void => parts.hidden.learn(secrets);
  const hide = (tree: unknown): unknown => parts.hidden.json(tree);
  learn(secretsOf(settings));
  const quiet = { level: "error", parts: {} } as const;
  const levels = () => (options.quiet === true ? quiet : settings.logging);
  const world = await worldOf(levels, settings.logging.format, parts);
  const app = await openApp({
    settings,
    world,
    version: versionOf(),
    configPath: path,
    agentSources,
    checkConfig: () => checkAgain(wanted, settings),
    configFile: async () => (await import("./config/editing/editing.ts")).openConfigFile(wanted, settings),
    reload: createReload({ options: wanted, live, loaded: loaded.value, learn, hide }),
    environment: parts.env,
    stop: options.stop,
    ...optional({ openDemo: parts.openDemo, offlineThinkMs: options.offlineThinkMs }),
  });
  if (!app.ok) return app;
  const address = `${reachableHost(settings.gateway.host)}:${app.value.port}`;
  return ok({
    url: `ws://${address}`,
    httpUrl: `http://${address}`,
    token: app.value.token,
    tokenIsGenerated: app.value.tokenIsGenerated,
    settings,
    configPath: path,
    warnings: [...warnings, ...app.value.warnings],
    ...optional({ reload: app.value.reload }),
    close: (graceMs) => app.value.close(graceMs),
  });
}

/**
 * Time before each answer of the demo's model, so that people can follow it. The demo then takes about 8 s.
 */
const DEMO_THINK_MS = 200;

/**
 * Opens a separate gateway for the page's demo, with the offline model only. It gets no environment, so that
 * it cannot use the user's API keys, and only tools for its own sessions.
 */
export async function openDemo(world: World): Promise<Result<DemoPlace>> {
  const { DemoGateways, OPEN_TOOLS } = await import("./cli/demo/gateways.ts");
  const ground = await DemoGateways.make({
    world,
    openGateway: (options) => openGateway(options, { env: {}, hidden: new Redactor([]), home: tmpdir() }),
  });
  const close = () => ground.leave(0);
  const tools = { ...OPEN_TOOLS, deny: ["exec", "read", "write", "edit", "grep", "glob", "fetch"] };
  try {
    const opened = await ground.open("page", { tools, model: OFFLINE_MODEL, offlineThinkMs: DEMO_THINK_MS });
    if (!opened.ok) {
      await close();
      return opened;
    }
    const { url, token } = opened.value;
    return ok({ port: Number(new URL(url).port), token, close });
  } catch (error) {
    await close();
    throw error;
  }
}

/** Describes a PostgreSQL store without starting a gateway on it. */
export async function inspectDatabase(url: string, world: World): Promise<Result<DatabaseReport>> {
  const { inspectPostgres } = await import("./store/postgres/inspect.ts");
  const { StoreProblem } = await import("./store/problems.ts");
  try {
    return ok({ ...(await inspectPostgres(url, world, { counted: false })), version: versionOf() });
  } catch (error) {
    if (error instanceof StoreProblem) return fail("store_unavailable", error.message);
    throw error;
  }
}

/** Operations on a whole store, each loaded when it is called. */
export function storeTools(world: World): StoreTools {
  const moves = () => import("./store/transfer/transfer.ts");
  return {
    show: async (settings) => (await import("./store/show.ts")).showStore(settings, world),
    migrate: async (settings, url, watch) => (await moves()).migrateStore({ settings, world, ...watch }, url),
    backup: async (settings, file, watch) => (await moves()).backupStore({ settings, world, ...watch }, file),
    restore: async (settings, file, watch) =>
      (await moves()).restoreStore({ settings, world, ...watch }, file),
    recover: async (settings, keys, watch) =>
      (await import("./store/transfer/recover.ts")).recoverStore({ settings, world, ...watch }, keys),
  };
}

/** Returns a message if the settings need optional libraries that are not installed. */
export async function missingFor({ traces }: Settings): Promise<string | undefined> {
  if (traces === undefined) return undefined;
  return (await import("./telemetry/libraries.ts")).missingLibraries();
}

/** Runs a harmless program in the sandbox to check that it works here. */
async function inspectSandbox(
  wanted: SandboxSettings,
  parts: { world: World; env: CliParts["env"] },
): Promise<SandboxReport> {
  const { createSandboxFinder } = await import("./sandbox/find.ts");
  const finder = createSandboxFinder({ world: parts.world, keepOut: [], environment: parts.env });
  const workspace = await mkdtemp(join(tmpdir(), "parley-doctor-"));
  try {
    const found = await finder.find(wanted, workspace);
    if (found.ok) {
      const { kind, carrier } = found.value;
      const network = carrier === undefined ? "" : `, with a separate network (${carrier})`;
      return { usable: true, text: `${kind} works as a sandbox here${network}` };
    }
    const mend = found.hint === undefined ? {} : { mend: found.hint };
    return { usable: false, text: found.error, ...mend };
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

/** Time limit of a model's test call; a model that needs longer counts as too slow. */
const MODEL_TRIAL_MS = 30_000;

/** Asks a model for one word. The first call loads the provider's code. */
export async function inspectModel(
  world: World,
  providers: readonly ProviderSettings[],
  ref: string,
): Promise<Trial> {
  const { tryModel } = await import("./agent/model/try-model.ts");
  return tryModel(world, providers, ref, MODEL_TRIAL_MS);
}

/** Runs a program for a gateway that uses this machine as a node. */
export async function runProgram(program: HostProgram, world: World): Promise<HostProgramEnd> {
  const { runHostProgram } = await import("./sandbox/host-program.ts");
  return runHostProgram(program, world);
}

function exitForBug(world: World, error: unknown, origin?: string): never {
  const how = origin === "unhandledRejection" ? { origin } : {};
  world.log.error({ err: error, ...how }, "the process exits because of a bug");
  process.exit(1);
}

/** Runs the command line. Resolves to the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const { env, home } = processEnvironment();
  useProxies(env);
  const hidden = new Redactor(secretsOfEnvironment(env));
  const wanted = loggingFrom(LOGGING, env);
  const log = wanted.ok ? wanted.value : LOGGING;
  const base = await worldOf(() => log, log.format, { env, hidden });
  const world = logging(base, { part: "cli" });
  // The process continues if the store only refused work for which nobody waits.
  process.on("uncaughtException", (error, origin) => {
    if (origin === "unhandledRejection" && /^Store(Problem|Conflict)$/.test(error?.name)) {
      world.log.error({ err: error }, "the store refused work for which nobody waits");
      return;
    }
    exitForBug(world, error, origin);
  });
  const parts = partsOf({ env, home, hidden, world });
  if (wanted.ok) return runCli(argv, parts).catch((error: unknown) => exitForBug(world, error));
  return createCli(parts, { json: argv.includes("--json") }).fail(wanted, EXIT.usage);
}

function partsOf(house: LogParts & { home: string; world: World }): CliParts {
  const { env, home, world } = house;
  const silent = silenced(world);
  const userId = process.getuid?.();
  return {
    commandFor: added("commandFor"),
    world,
    env,
    home,
    nodeVersion: process.versions.node,
    folder: process.cwd(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    isTTY: process.stdin.isTTY === true && process.stdout.isTTY === true,
    onSignal(name, fire) {
      process.on(name, fire);
      return () => process.off(name, fire);
    },
    exitNow: (code) => process.exit(code),
    openGateway: (options) => openGateway(options, { ...house, openDemo: () => openDemo(world) }),
    runProgram: (program) => runProgram(program, world),
    machine: {
      version: versionOf(),
      hostName: hostname(),
      platform: process.platform,
      launcher: { node: process.execPath, script: join(TOP, "bin", "parley.js") },
      ...optional({ userId }),
    },
    inspectDatabase: (url) => inspectDatabase(url, world),
    store: storeTools(logging(world, { part: "store" })),
    inspectSandbox: (wanted) => inspectSandbox(wanted, { world, env }),
    inspectModel: (providers, ref) => inspectModel(silent, providers, ref),
    // No log lines, because the doctor prints these problems itself.
    inspectChannels: async (accounts) =>
      (await import("./channels/inspect.ts")).inspectChannels(accounts, silent),
    missingFor,
  };
}
