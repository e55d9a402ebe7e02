// Starts a whole gateway in this process. Its agent `main` is a program that speaks ACP, and its agent
// `other` uses the offline model.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type App, openApp } from "../../../src/app.ts";
import { loadSettings } from "../../../src/config.ts";
import { connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import type { AgentEvent, ChatEvent } from "../../../src/contract/events.ts";
import type { Message } from "../../../src/core/shapes/message.ts";
import type { World } from "../../../src/world.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { cleanup, putEmptyStore, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { writeHome } from "../../kit/process/fleet.ts";
import { PATIENCE_MS } from "../../kit/until.ts";

export const TOKEN = "a-token-that-is-for-tests";

const LATE_TEXT_MS = 1_000;

export interface Stage {
  readonly home: string;
  readonly app: App;
  readonly client: GatewayClient;
  readonly url: string;
  readonly chats: ChatEvent[];
  readonly agents: AgentEvent[];
  /** Returns the lines that the program wrote to its log. */
  log(): string[];
  /** Resolves when the program has written a matching line. */
  logged(line: string): Promise<void>;
  /** Sends a message and waits for the end of the run. Returns the answer or the error. */
  say(text: string, sessionKey?: string): Promise<string>;
  /** Sends a message without waiting. Returns the id of the run. */
  begin(text: string, sessionKey?: string): Promise<string>;
  end(runId: string): Promise<{ status: string; runStatus: string; error?: string; code?: string }>;
  messages(sessionKey?: string): Promise<readonly Message[]>;
  stop(graceMs?: number): Promise<void>;
}

export interface StageOptions {
  /** Settings in `runtime` of `main`, in addition to the usual ones. */
  readonly runtime?: Record<string, unknown>;
  /** Settings of the agent `main`, in addition to the usual ones. */
  readonly main?: Record<string, unknown>;
  readonly env?: Record<string, string>;
  readonly config?: Record<string, unknown>;
  readonly home?: string;
  readonly world?: World;
  readonly environment?: Record<string, string>;
}

export function acpConfig(home: string, options: StageOptions = {}): Record<string, unknown> {
  const env = { ACP_LOG: join(home, "log"), ACP_STATE: home, ...options.env };
  const runtime = { type: "acp", command: ACP_AGENT, env, ...options.runtime };
  return {
    gateway: { port: 0, auth: { token: TOKEN } },
    agents: {
      defaults: { subagents: { allowAgents: ["*"] } },
      list: [{ id: "main", runtime, ...options.main }, { id: "other" }],
    },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
    ...options.config,
  };
}

/** Repeats a request until its answer matches the condition. */
export async function until<T>(ask: () => T | Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 800; tries += 1) {
    const value = await ask();
    if (wanted(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not come to that: ${JSON.stringify(await ask())}`);
}

export function logOf(home: string): string[] {
  const file = join(home, "log");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

/** Returns true if a process runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie (a process that has exited but was not waited for) does not run.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Returns the process ids of all programs that were started so far. */
export function pidsOf(home: string): number[] {
  return logOf(home).flatMap((line) => (line.startsWith("start ") ? [Number(line.slice(6))] : []));
}

/** Returns a world in which no program writes text after the end of its prompt, so that no turn waits for it. */
function withoutLateText(): World {
  const world = quietWorld();
  const after: World["clock"]["after"] = (ms, fire, keep) =>
    world.clock.after(ms === LATE_TEXT_MS ? 1 : ms, fire, keep);
  return { ...world, clock: { ...world.clock, after } };
}

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const home = options.home ?? temporaryFolder();
  writeHome(home, acpConfig(home, options));
  const loaded = loadSettings({ env: {}, home });
  if (!loaded.ok) throw new Error(loaded.error);
  await putEmptyStore(loaded.value.settings.store.dir);
  const { PATH = "" } = process.env;
  const opened = await openApp({
    settings: loaded.value.settings,
    world: options.world ?? withoutLateText(),
    version: "0.0.0",
    environment: { PATH, HOME: home, ...options.environment },
  });
  if (!opened.ok) throw new Error(opened.error);
  const app = opened.value;
  let stopped: Promise<void> | undefined;
  const stop = (graceMs = 0): Promise<void> => {
    stopped ??= app.close(graceMs);
    return stopped;
  };
  cleanup(() => stop());
  const url = `ws://127.0.0.1:${app.port}`;
  const client = await connect({ url, token: TOKEN, reconnect: false });
  cleanup(() => client.close());
  const chats: ChatEvent[] = [];
  const agents: AgentEvent[] = [];
  client.on("chat", (event) => chats.push(event));
  client.on("agent", (event) => agents.push(event));
  return { home, app, client, url, chats, agents, stop, ...talk(home, client, chats) };
}

function talk(home: string, client: GatewayClient, chats: readonly ChatEvent[]) {
  const begin: Stage["begin"] = async (message, sessionKey = "main") => {
    const idempotencyKey = crypto.randomUUID();
    await client.call("chat.send", { sessionKey, message, idempotencyKey });
    return idempotencyKey;
  };
  const end: Stage["end"] = (runId) => client.call("agent.wait", { runId, timeoutMs: PATIENCE_MS });
  return {
    begin,
    end,
    log: () => logOf(home),
    async logged(line: string) {
      await until(
        () => logOf(home),
        (lines) => lines.includes(line),
      );
    },
    async say(text: string, sessionKey?: string) {
      const runId = await begin(text, sessionKey);
      const { status, error } = await end(runId);
      if (status !== "ok") return `${status}: ${error}`;
      const last = await until(
        () => chats.find((event) => event.runId === runId && event.state === "final"),
        (event) => event !== undefined,
      );
      return last?.message?.content.map((block) => block.text).join("\n") ?? "";
    },
    async messages(sessionKey = "main") {
      const page = await client.request("chat.history", { sessionKey, limit: 500 });
      return page.messages;
    },
  };
}
