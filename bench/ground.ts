// Starts a real gateway process over its own store, and a model server in another process that answers at
// once, for the benchmarks of runs and conversations. Stops both when the work is done.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type GatewayClient } from "../src/contract/client/node.ts";
import { optional } from "../src/core/optional.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";

const MODEL = fileURLToPath(new URL("./quick-model.ts", import.meta.url));

/** A running gateway. */
export interface Ground {
  readonly url: string;
  readonly pid: number;
  /** The address of the model server, as the provider's configuration needs it. */
  readonly modelUrl: string;
  readonly home: string;
  /** Connects a client that receives the events of all sessions. */
  all(): Promise<GatewayClient>;
  /** Connects a client that receives only the events of the session with this number. */
  of(session: number): Promise<GatewayClient>;
  /** Sends SIGKILL to the gateway, as the system does when memory runs out. */
  kill(): Promise<void>;
  /** Stops the gateway gracefully. */
  stop(): Promise<void>;
  /** Restarts the gateway on the same store; resolves when it accepts connections. */
  start(): Promise<void>;
  /** Returns the gateway's memory in MB after a garbage collection. Needs `MEMORY_FLAGS`. */
  memory(): Promise<Memory>;
}

export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
  /** Longest time in ms that the event loop was blocked since the last call of `memory`. */
  readonly worstDelayMs: number;
  /** Processor time in ms of the longest uninterrupted work since the last call of `memory`. */
  readonly worstStepMs: number;
}

const PROBE = fileURLToPath(new URL("./memory-probe.ts", import.meta.url));
export const MEMORY_FLAGS: readonly string[] = ["--expose-gc", `--import=${PROBE}`];

interface Options {
  /** Number of agents, each with a main session. */
  readonly sessions: number;
  /** Maximum number of runs that execute at once. Default: the number of sessions. */
  readonly maxConcurrent?: number;
  readonly session?: object;
  /** Additional settings of tools. */
  readonly tools?: object;
  readonly hooks?: object;
  /** Flags for the gateway's Node. Default: only those of the launcher. */
  readonly flags?: readonly string[];
}

export const keyOf = (session: number): string => `agent:a${session}:main`;
const tokenOf = (session: number): string => `token-of-the-session-of-a${session}`;

function configOf(options: Options, root: string, modelUrl: string): Record<string, unknown> {
  const { sessions, maxConcurrent = sessions, session = {}, tools = {} } = options;
  const agents = Array.from({ length: sessions }, (_, at) => ({
    id: `a${at}`,
    default: at === 0,
    workspace: join(root, "workspace"),
  }));
  const tokens = agents.map(({ id }, at) => ({
    token: tokenOf(at),
    scopes: ["operator.write"],
    sessions: [`agent:${id}:*`],
  }));
  const model = { id: "quick", contextWindow: 1_000_000 };
  return {
    gateway: { port: 0, auth: { token: TOKEN, tokens } },
    models: {
      providers: {
        one: { api: "openai-completions", baseUrl: modelUrl, apiKey: "a-key", models: [model] },
      },
    },
    session,
    agents: { defaults: { model: "one/quick", maxConcurrent }, list: agents },
    tools: { agentToAgent: { enabled: true, allow: ["*"] }, sessions: { visibility: "all" }, ...tools },
    ...optional({ hooks: options.hooks }),
  };
}

/** Starts the gateway with the same arguments as `npm start`, but with fewer log lines. */
async function startGateway(home: string, flags: readonly string[]): Promise<[ChildProcess, string]> {
  const child = launch(home, ["gateway"], flags, { PARLEY_LOG: "warn" });
  child.stderr?.pipe(process.stderr);
  const url = await addressOf(child);
  return [child, url];
}

async function ended(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

export async function onGround<T>(options: Options, work: (ground: Ground) => Promise<T>): Promise<T> {
  const home = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const model = spawn(process.execPath, [MODEL], { stdio: ["pipe", "pipe", "inherit"] });
  const { flags = [] } = options;
  let gateway: ChildProcess | undefined;
  try {
    const [line] = (await once(model.stdout, "data")) as [Buffer];
    const modelUrl = line.toString().trim();
    writeHome(home, configOf(options, home, modelUrl));
    let url = "";
    const start = async (): Promise<void> => {
      [gateway, url] = await startGateway(home, flags);
    };
    await start();
    const dial = (token: string): Promise<GatewayClient> => connect({ url, token, reconnect: false });
    return await work({
      get url() {
        return url;
      },
      get pid() {
        return gateway?.pid ?? 0;
      },
      modelUrl,
      home,
      all: () => dial(TOKEN),
      of: (session) => dial(tokenOf(session)),
      kill: async () => {
        if (gateway !== undefined) await ended(gateway, "SIGKILL");
      },
      stop: async () => {
        if (gateway !== undefined) await ended(gateway, "SIGTERM");
      },
      start,
      memory: async () => {
        if (gateway === undefined) throw new Error("there is no gateway");
        const told = once(gateway, "message");
        gateway.kill("SIGUSR2");
        const [{ rss, heapUsed, ...worst }] = (await told) as [Memory];
        return { rss: rss / 2 ** 20, heapUsed: heapUsed / 2 ** 20, ...worst };
      },
    });
  } finally {
    if (gateway !== undefined) await ended(gateway, "SIGTERM");
    await ended(model, "SIGTERM");
    rmSync(home, { recursive: true, force: true });
  }
}
