// Runs the command line in this process, with streams that a test controls and a real gateway.

import { join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { openApp } from "../../src/app.ts";
import { inspectChannels } from "../../src/channels/inspect.ts";
import type {
  CliParts,
  DatabaseReport,
  GatewayOptions,
  Machine,
  RunningGateway,
  SandboxReport,
} from "../../src/cli/parts.ts";
import { runCli } from "../../src/cli/run.ts";
import { checkAgain } from "../../src/config/check.ts";
import { openConfigFile } from "../../src/config/editing/editing.ts";
import { createReload } from "../../src/config/reload.ts";
import { loadSettings } from "../../src/config.ts";
import { optional } from "../../src/core/optional.ts";
import { ok, type Result } from "../../src/core/shapes/errors.ts";
import { liveSettings } from "../../src/core/shapes/settings/live.ts";
import { added } from "../../src/features.ts";
import { inspectDatabase, inspectModel, missingFor, runProgram, storeTools } from "../../src/main.ts";
import type { World } from "../../src/world.ts";
import { cleanup, putEmptyStore, quietWorld } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { homeWith } from "../kit/process/gateway-process.ts";

export const TOKEN = "a-token-that-is-for-tests";

async function openGateway(
  home: string,
  options: GatewayOptions,
  env: Readonly<Record<string, string>> = {},
): Promise<Result<RunningGateway>> {
  const { configPath, port, host } = options;
  const load = { env, home, overrides: { ...optional({ port, host }) }, ...optional({ configPath }) };
  const loaded = loadSettings(load);
  if (!loaded.ok) return loaded;
  const { warnings, path } = loaded.value;
  const live = liveSettings(loaded.value.settings);
  const { settings } = live;
  const world = quietWorld();
  if (settings.store.postgresUrl === undefined) await putEmptyStore(settings.store.dir);
  const app = await openApp({
    settings,
    world,
    version: "0.0.0",
    configPath: path,
    checkConfig: () => checkAgain(load, settings),
    configFile: async () => openConfigFile(load, settings),
    reload: createReload({
      ...{ options: load, live, loaded: loaded.value },
      learn: (found) => world.redactor.learn(found),
      hide: (tree) => world.redactor.json(tree),
    }),
    environment: env,
  });
  if (!app.ok) return app;
  const address = `${settings.gateway.host}:${app.value.port}`;
  const { token, tokenIsGenerated, close } = app.value;
  const all = [...warnings, ...app.value.warnings];
  const more = {
    ...{ token, tokenIsGenerated, settings, configPath: path, warnings: all },
    ...optional({ reload: app.value.reload }),
    close,
  };
  return ok({ url: `ws://${address}`, httpUrl: `http://${address}`, ...more });
}

const AGENTS = [{ id: "main" }, { id: "research" }, { id: "ops" }];
const OPEN_TOOLS = { sessions: { visibility: "all" }, agentToAgent: { enabled: true } };

/** Makes a home with three agents that may reach each other and use the offline model. */
export async function makeHome(more: Record<string, unknown> = {}): Promise<{ home: string; port: number }> {
  const port = await freePort();
  const gateway = { port, auth: { token: TOKEN } };
  return { home: homeWith({ gateway, agents: { list: AGENTS }, tools: OPEN_TOOLS, ...more }), port };
}

export interface Gateway {
  /** Stops the gateway: without a grace time like a crash, otherwise gracefully. */
  stop(graceMs?: number): Promise<void>;
  readonly warnings: readonly string[];
}

/** Starts a gateway. `env`: environment variables for its configuration. `config`: its file. */
export async function startGateway(
  home: string,
  env: Readonly<Record<string, string>> = {},
  config?: string,
): Promise<Gateway> {
  const opened = await openGateway(home, optional({ configPath: config }), env);
  if (!opened.ok) throw new Error(opened.error);
  let stopped = false;
  const stop = async (graceMs = 0): Promise<void> => {
    if (!stopped) await opened.value.close(graceMs);
    stopped = true;
  };
  cleanup(() => stop());
  return { stop, warnings: opened.value.warnings };
}

/** One running call of the command line. */
export interface Call {
  readonly stdin: PassThrough;
  /** Returns the standard output so far. */
  out(): string;
  err(): string;
  /** Resolves when standard output contains this text. */
  shows(text: string): Promise<void>;
  interrupt(name?: "SIGINT" | "SIGTERM"): void;
  /** Exit codes with which the program ended the process immediately. */
  readonly exits: number[];
  readonly code: Promise<number>;
}

const MACHINE: Machine = {
  version: "0.0.0",
  hostName: "test-machine",
  platform: process.platform,
  launcher: {
    node: process.execPath,
    script: fileURLToPath(new URL("../../bin/parley.js", import.meta.url)),
  },
  userId: 1000,
};

export interface CallOptions {
  /** Default: a world without a log. */
  readonly world?: World;
  /** Replaces properties of the machine. */
  readonly machine?: Partial<Machine>;
  readonly env?: Readonly<Record<string, string>>;
  /** Result of the sandbox test. Default: the test is not available. */
  readonly sandbox?: SandboxReport;
  /** Result of the database inspection. Default: the real inspection. */
  readonly database?: DatabaseReport;
  /** Whether a terminal is attached. Default: false. */
  readonly isTTY?: boolean;
  /** The current folder of the program. Default: its home. */
  readonly folder?: string;
}

interface Collected {
  readonly stream: PassThrough;
  text(): string;
  shows(wanted: string): Promise<void>;
}

function collect(): Collected {
  const stream = new PassThrough();
  let text = "";
  let watchers: (() => void)[] = [];
  stream.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    for (const watcher of watchers.splice(0)) watcher();
  });
  const shows = async (wanted: string): Promise<void> => {
    while (!text.includes(wanted)) await new Promise<void>((resolve) => watchers.push(resolve));
    watchers = [];
  };
  return { stream, text: () => text, shows };
}

/** Starts the program with these arguments. Its input stays open until `stdin.end()`. */
export function call(home: string, argv: readonly string[], options: CallOptions = {}): Call {
  const { sandbox, database } = options;
  const stdin = new PassThrough();
  const stdout = collect();
  const stderr = collect();
  const exits: number[] = [];
  const handlers = new Map<string, Set<() => void>>();
  const parts: CliParts = {
    commandFor: added("commandFor"),
    world: options.world ?? quietWorld(),
    env: options.env ?? {},
    home,
    folder: options.folder ?? home,
    nodeVersion: process.versions.node,
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    isTTY: options.isTTY === true,
    onSignal(name, fire) {
      const known = handlers.get(name) ?? new Set();
      handlers.set(name, known.add(fire));
      return () => known.delete(fire);
    },
    exitNow: (code) => exits.push(code),
    openGateway: (gatewayOptions) => openGateway(home, gatewayOptions, options.env),
    runProgram: (program) => runProgram(program, quietWorld()),
    machine: { ...MACHINE, ...options.machine },
    inspectDatabase: async (url) =>
      database === undefined ? inspectDatabase(url, quietWorld()) : ok(database),
    store: storeTools(quietWorld()),
    ...(sandbox === undefined ? {} : { inspectSandbox: async () => sandbox }),
    inspectChannels: (accounts) => inspectChannels(accounts, quietWorld()),
    inspectModel: (providers, ref) => inspectModel(quietWorld(), providers, ref),
    missingFor,
  };
  return {
    stdin,
    out: stdout.text,
    err: stderr.text,
    shows: stdout.shows,
    interrupt(name = "SIGINT") {
      for (const fire of handlers.get(name) ?? []) fire();
    },
    exits,
    code: runCli(argv, parts),
  };
}

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the program with this input until it exits. */
export async function run(
  home: string,
  argv: readonly string[],
  options: CallOptions & { readonly input?: string } = {},
): Promise<Finished> {
  const started = call(home, argv, options);
  started.stdin.end(options.input ?? "");
  const code = await started.code;
  return { code, out: started.out(), err: started.err() };
}

/** Runs the program and parses the only JSON document that it prints. */
export async function runJson(home: string, argv: readonly string[]): Promise<Record<string, unknown>> {
  const { out } = await run(home, ["--json", ...argv]);
  return JSON.parse(out) as Record<string, unknown>;
}

export function configFile(home: string): string {
  return join(home, ".parley", "parley.json5");
}
