// The gateway processes of a load test. Each agent has its own token, and a separate process streams the
// model's answers.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Fleet } from "../process/fleet.ts";
import type { FreshStore, Ground } from "../process/grounds.ts";

const MODEL = fileURLToPath(new URL("./model.ts", import.meta.url));
/** Duration of a streamed answer. */
export const RUN_MS = 6_000;
/** Number of unread bytes of a client at which it is disconnected. */
const BUFFERED_MAX_BYTES = 1024 * 1024;
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface LoadOptions {
  readonly ground: Ground;
  /** Number of processes. Default: the maximum that the ground allows. */
  readonly processes?: number;
  readonly seed: string;
  readonly seconds: number;
  readonly clients: number;
  readonly sessions: number;
  /** Interval between two pieces of an answer. Each client of the session gets two events for each piece. */
  readonly pieceMs: number;
  /**
   * Heap limit of each process in MB, so that a process that leaks memory crashes. Default: Node's own limit.
   */
  readonly heapMb?: number;
  readonly report?: (line: string) => void;
}

const agentOf = (session: number): string => `a${session}`;
export const keyOf = (session: number): string => `agent:${agentOf(session)}:main`;
export const tokenOf = (session: number): string => `token-of-the-reader-of-${agentOf(session)}`;
export const TOKEN_OF_ALL = "token-of-a-reader-of-all";

function configOf(options: LoadOptions, root: string, store: object, modelUrl: string): object {
  const agents = Array.from({ length: options.sessions }, (_, at) => ({
    id: agentOf(at),
    default: at === 0,
    workspace: join(root, "workspace"),
  }));
  const scopes = ["operator.write"];
  const tokens = agents.map(({ id }, at) => ({ token: tokenOf(at), scopes, sessions: [`agent:${id}:*`] }));
  const model = { id: "test-model", contextWindow: 100_000 };
  return {
    store,
    gateway: {
      maxBufferedBytes: BUFFERED_MAX_BYTES,
      auth: { tokens: [...tokens, { token: TOKEN_OF_ALL, scopes: ["operator.read"] }] },
    },
    models: {
      providers: {
        one: { api: "openai-completions", baseUrl: `${modelUrl}/openai/v1`, apiKey: "key", models: [model] },
      },
    },
    agents: { defaults: { model: "one/test-model", maxConcurrent: options.sessions }, list: agents },
    tools: { allow: ["session_status", "sessions_list"] },
  };
}

async function startModel(pieceMs: number): Promise<{ child: ChildProcess; url: string }> {
  const args = [MODEL, String(Math.round(RUN_MS / pieceMs)), String(pieceMs)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return { child, url: line.toString().trim() };
}

/** Starts the model and the gateways, runs `work`, and removes everything. */
export async function onLoadFleet<T>(options: LoadOptions, work: (fleet: Fleet) => Promise<T>): Promise<T> {
  const root = mkdtempSync(join(tmpdir(), "parley-load-"));
  const model = await startModel(options.pieceMs);
  const store: FreshStore = await options.ground.fresh();
  const fleet = await Fleet.open({
    root,
    processes: options.processes ?? options.ground.processes,
    ...(options.heapMb === undefined ? {} : { flags: [`--max-old-space-size=${options.heapMb}`] }),
    config: () => configOf(options, root, store.config, model.url) as Record<string, unknown>,
  });
  try {
    await fleet.startAll();
    if (fleet.deaths.length > 0 || fleet.up().length < fleet.size) throw new Error(fleet.deaths.join("\n"));
    return await work(fleet);
  } finally {
    await fleet.end();
    model.child.kill();
    await store.remove();
    rmSync(root, { recursive: true, force: true });
  }
}
