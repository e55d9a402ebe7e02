// Real gateway processes on one store. Tests start, kill and pause them, and each process keeps its address
// across restarts. Needs no test runner. Signals only processes that it started, by their pid. `end` kills
// all of them, and they also end when their parent dies.
// Each start of a process has a name, so that side effects can be assigned to it. A start is `broken` if the
// process was killed or paused. A process that ends unexpectedly is recorded with its last output.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { heapFlags, withHeapEnv } from "../../../bin/heap-flags.js";
import { type ConnectOptions, connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import { freePort } from "../loopback.ts";
import { PATIENCE_MS } from "../until.ts";

export const LAUNCHER = fileURLToPath(new URL("../../../bin/parley.js", import.meta.url));
/**
 * These ports are separate from those of all other tests, so that no test takes the port of a process that is
 * down.
 */
const PORT_FIRST = 12_000;
/** Maximum number of characters of a process's output that are kept. */
const WORDS_MAX = 20_000;

export const TOKEN = "a-token-that-is-for-tests";

/** Writes a configuration into a home folder. */
export function writeHome(home: string, config: Record<string, unknown>): void {
  mkdirSync(join(home, ".parley"), { mode: 0o700, recursive: true });
  writeFileSync(join(home, ".parley", "parley.json5"), JSON.stringify(config), { mode: 0o600 });
}

/** Starts the launcher with these arguments. The environment contains only the home folder. */
export function launch(
  home: string,
  args: readonly string[],
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  return spawn(process.execPath, [...flags, ...heapFlags(args, flags), LAUNCHER, ...args], {
    // With this variable the process ends with its parent, like a child of a launcher.
    env: withHeapEnv({
      PATH: process.env.PATH,
      HOME: home,
      PARLEY_LOG: "warn",
      PARLEY_LAUNCHED: "1",
      ...env,
    }),
    stdio: ["pipe", "pipe", "pipe", "ipc"],
  });
}

/** Resolves with the address that the gateway prints. Rejects if the process ends before. */
export function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    let words = "";
    const late = setTimeout(() => reject(new Error(`not ready: ${said}${words}`)), PATIENCE_MS);
    child.stderr?.on("data", (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-WORDS_MAX);
    });
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      const found = /http:\/\/[\d.]+:\d+/.exec(said);
      if (found === null) return;
      clearTimeout(late);
      child.stdout?.off("data", hear);
      resolve(found[0]);
    };
    child.stdout?.on("data", hear);
    child.once("exit", (code) => {
      clearTimeout(late);
      reject(new Error(`the gateway ended with ${code}: ${said}${words}`));
    });
  });
}

/** One start of a process. */
interface Life {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  words: string;
  broken: boolean;
  /** True if the test itself stopped the process. */
  told: boolean;
  over: boolean;
}

export interface FleetOptions {
  /** An empty folder for homes and logs. The caller removes it. */
  readonly root: string;
  readonly processes: number;
  /** Returns the configuration of a process for this start. Token and port are added to it. */
  readonly config: (life: string) => Record<string, unknown>;
  /** Flags for Node, in addition to those of the launcher. */
  readonly flags?: readonly string[];
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #ports: readonly number[];
  readonly #lives = new Map<string, Life>();
  readonly #current: (Life | undefined)[];
  readonly #starts: number[];
  readonly #ready: boolean[];
  readonly #deaths: string[] = [];

  private constructor(options: FleetOptions, ports: readonly number[]) {
    this.#options = options;
    this.#ports = ports;
    this.#current = ports.map(() => undefined);
    this.#starts = ports.map(() => 0);
    this.#ready = ports.map(() => false);
  }

  /** Reserves addresses, and starts no process. */
  static async open(options: FleetOptions): Promise<Fleet> {
    const ports = new Set<number>();
    while (ports.size < options.processes) ports.add(await freePort(PORT_FIRST));
    return new Fleet(options, [...ports]);
  }

  get size(): number {
    return this.#ports.length;
  }

  home(at: number): string {
    return join(this.#options.root, `home-${at}`);
  }

  /** Returns the folder of the embedded store and of the process's own files. */
  storeDir(at: number): string {
    return join(this.home(at), ".parley", "state");
  }

  url(at: number): string {
    return `ws://127.0.0.1:${this.#ports[at]}`;
  }

  pid(at: number): number {
    return this.#current[at]?.child.pid ?? 0;
  }

  /** Returns the indexes of the processes that are running and ready. */
  up(): number[] {
    return this.#ports.flatMap((_, at) => (this.#ready[at] === true ? [at] : []));
  }

  /** Descriptions of processes that ended unexpectedly. */
  get deaths(): readonly string[] {
    return this.#deaths;
  }

  /** Returns true if the process was killed or paused after this start. */
  isBroken(life: string): boolean {
    return this.#lives.get(life)?.broken ?? true;
  }

  /** Returns the log lines at level `error` or above, of all starts. */
  errors(): string[] {
    const lines = [...this.#lives.values()].flatMap((life) => life.words.split("\n"));
    return lines.filter((line) => /^\{"level":[56]0/.test(line));
  }

  /** Starts a process that is down. Resolves when it is ready or has ended again. */
  async start(at: number): Promise<void> {
    const before = this.#current[at];
    if (before !== undefined && !before.over) throw new Error(`process ${at} is there already`);
    const start = (this.#starts[at] ?? 0) + 1;
    this.#starts[at] = start;
    const name = `${at}.${start}`;
    const { gateway, ...config } = this.#options.config(name) as { gateway?: object };
    const door = { ...gateway, port: this.#ports[at], auth: { token: TOKEN, ...authOf(gateway) } };
    writeHome(this.home(at), { gateway: door, ...config });
    const child = launch(this.home(at), ["gateway"], this.#options.flags);
    const life = this.#live(name, child);
    this.#current[at] = life;
    void life.exited.then((code) => {
      if (this.#current[at] === life) this.#ready[at] = false;
      if (!life.told) this.#deaths.push(`${name} ended with ${code}: ${life.words.slice(-2_000)}`);
    });
    const ready = await addressOf(child).then(
      () => true,
      () => false,
    );
    if (!ready && !life.told) await this.#signalled(life, "SIGKILL");
    this.#ready[at] = ready && !life.over && !life.broken;
  }

  async startAll(): Promise<void> {
    await Promise.all(this.#ports.map((_, at) => this.start(at)));
  }

  #live(name: string, child: ChildProcess): Life {
    const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
    const life: Life = { name, child, exited, words: "", broken: false, told: false, over: false };
    const hear = (chunk: Buffer): void => {
      life.words = (life.words + chunk.toString()).slice(-WORDS_MAX);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    void exited.then(() => {
      life.over = true;
    });
    this.#lives.set(name, life);
    return life;
  }

  async #signalled(life: Life | undefined, signal: NodeJS.Signals): Promise<number | null> {
    if (life === undefined || life.over) return null;
    life.told = true;
    life.child.kill(signal);
    return life.exited;
  }

  /** Sends SIGKILL. Resolves when the process has ended. */
  async kill(at: number): Promise<void> {
    const life = this.#current[at];
    if (life !== undefined) life.broken = true;
    this.#ready[at] = false;
    await this.#signalled(life, "SIGKILL");
  }

  /** Stops the process gracefully. Resolves with the exit code. */
  async stop(at: number): Promise<number | null> {
    this.#ready[at] = false;
    return this.#signalled(this.#current[at], "SIGTERM");
  }

  /** Sends SIGSTOP, which pauses the process without notice. */
  pause(at: number): void {
    const life = this.#current[at];
    if (life === undefined || life.over) return;
    life.broken = true;
    this.#ready[at] = false;
    life.child.kill("SIGSTOP");
  }

  /** Sends SIGCONT, which continues a paused process. */
  resume(at: number): void {
    const life = this.#current[at];
    if (life === undefined || life.over) return;
    life.child.kill("SIGCONT");
    this.#ready[at] = true;
  }

  connect(at: number, more: Partial<ConnectOptions> = {}): Promise<GatewayClient> {
    return connect({ url: this.url(at), token: TOKEN, ...more });
  }

  /** Kills all remaining processes. */
  async end(): Promise<void> {
    await Promise.all(this.#current.map((life) => this.#signalled(life, "SIGKILL")));
  }
}

function authOf(gateway: object | undefined): object {
  const auth = gateway === undefined ? undefined : Reflect.get(gateway, "auth");
  return typeof auth === "object" && auth !== null ? auth : {};
}
