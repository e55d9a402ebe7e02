// Helpers for tests of outside MCP servers: their settings, a socket to which the programs report (the
// witness), and the reference server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import type { SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import type { McpServerSettings, McpSettings } from "../../src/core/shapes/settings/settings.ts";
import { type OutsideServers, openOutsideServers } from "../../src/tools/mcp/servers.ts";
import { type OutsideSet, type ToolResult, toolResult } from "../../src/tools/tool.ts";
import type { World } from "../../src/world.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { listenHere } from "../kit/loopback.ts";
import { CODE_CACHE } from "../kit/process/code-cache.ts";
import type { FakeWorld } from "../kit/world.ts";
import { MAIN_CHAIN, settingsWith } from "./app.ts";
import { type Deeds, PROGRAM } from "./mcp-program.ts";

export const REFERENCE = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

export type More = Partial<Omit<McpServerSettings, "name" | "reach">>;

const rest = {
  agents: [],
  tools: [],
  allowSandboxed: false,
  sampling: false,
  timeoutSeconds: 20,
  startTimeoutSeconds: 30,
};

/** Lets a server load compiled code, which takes a third of the time. */
const COMPILED = { NODE_COMPILE_CACHE: CODE_CACHE };

/** Returns the settings of a server that is started as `node <args>`. */
export function nodeServer(
  name: string,
  args: readonly string[],
  more: More & { readonly env?: Readonly<Record<string, string>> } = {},
): McpServerSettings {
  const { env = {}, ...others } = more;
  return {
    ...rest,
    ...others,
    name,
    reach: { kind: "stdio", command: process.execPath, args, env: { ...COMPILED, ...env }, cwd: tmpdir() },
  };
}

export function httpServer(
  name: string,
  url: string,
  more: More & { headers?: Record<string, string> } = {},
) {
  const { headers = {}, ...others } = more;
  return { ...rest, ...others, name, reach: { kind: "http" as const, url, headers } };
}

export const badServer = (
  name: string,
  deeds: Deeds,
  more: Parameters<typeof nodeServer>[2] = {},
): McpServerSettings => nodeServer(name, [PROGRAM, JSON.stringify(deeds)], more);

export function mcpWith(servers: readonly McpServerSettings[], more: Partial<McpSettings> = {}): McpSettings {
  return { waitSeconds: 20, maxResultBytes: 64 * 1024, ...more, servers };
}

/** A process of a program that reports to the witness. */
export interface Life {
  readonly socket: Socket;
  readonly events: string[];
  /** Resolves when the process has died. */
  readonly dead: Promise<void>;
}

export interface Witness {
  readonly port: number;
  readonly lives: readonly Life[];
  /** Waits for the process with this number. The first one has number 0. */
  life(place: number): Promise<Life>;
  /** Resolves when an event that begins with this text was reported `times` times. */
  saw(event: string, times?: number): Promise<void>;
}

export async function openWitness(): Promise<Witness> {
  const lives: Life[] = [];
  const watchers: (() => void)[] = [];
  const look = (): void => {
    for (const watcher of watchers.splice(0)) watcher();
  };
  const server = createServer((socket) => {
    const events: string[] = [];
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      text += chunk.toString();
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      events.push(...lines);
      look();
    });
    lives.push({ socket, events, dead: new Promise((resolve) => socket.once("close", () => resolve())) });
    look();
  });
  const port = await listenHere(server);
  cleanup(() => {
    for (const { socket } of lives) socket.destroy();
    server.close();
  });
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => watchers.push(resolve));
  };
  return {
    port,
    lives,
    async life(place) {
      await until(() => lives[place] !== undefined);
      const found = lives[place];
      if (found === undefined) throw new Error("no such life");
      return found;
    },
    saw: (event, times = 1) =>
      until(
        () => lives.flatMap(({ events }) => events).filter((one) => one.startsWith(event)).length >= times,
      ),
  };
}

export interface Outside extends OutsideServers {
  /** Returns the outside tools of a session, by default of a main session. */
  set(chain?: SpawnChain): Promise<OutsideSet>;
  /** Calls a tool of the main session. */
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult>;
}

const isHeld = (world: World): world is FakeWorld => "advance" in world;

/** Starts outside servers without a gateway. If `world` is fake, the test must advance its clock. */
export function openOutside(mcp: McpSettings, world: World): Outside {
  const settings = settingsWith({ tools: { mcp } });
  const outside = openOutsideServers({ settings, world, version: "0.0.0-test", environment: process.env });
  cleanup(async () => {
    let over = false;
    const closed = outside.close().then(() => {
      over = true;
    });
    // The fake clock must advance until a stubborn program is killed.
    while (isHeld(world) && !over) await world.advance(2_000);
    await closed;
  });
  const set = (chain: SpawnChain = MAIN_CHAIN) => outside.forSession(chain, new AbortController().signal);
  let last: OutsideSet | undefined;
  return {
    ...outside,
    set: async (chain) => {
      last = await set(chain);
      return last;
    },
    async call(name, args = {}, signal = new AbortController().signal) {
      last ??= await set();
      const tool = last.tools.find(({ spec }) => spec.name === name);
      if (tool === undefined) throw new Error(`no tool ${name}: ${JSON.stringify(last.missing)}`);
      const request = { callId: "c", attempt: 1, name, arguments: args };
      return toolResult(await tool.execute({ signal }, args, request));
    },
  };
}

/** Starts the reference server over Streamable HTTP, and returns its address. */
export async function startReference(port: number): Promise<string> {
  const child = spawn(process.execPath, [REFERENCE, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const gone = once(child, "exit");
  cleanup(async () => {
    child.kill("SIGKILL");
    await gone;
  });
  let text = "";
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      if (text.includes("listening")) resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => reject(new Error(`the reference server ended: ${text}`)));
  });
  return `http://127.0.0.1:${port}/mcp`;
}
