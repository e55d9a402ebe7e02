// Real gateway processes over one store: started, killed, paused, each at an address that it keeps across
// restarts. Needs no test runner. It signals only processes that it started, by their own pid. `end` leaves
// none, nor does the death of their parent. Each start of a process is a life with its own name, so that the
// effects of each can be told apart; a life is `broken` when it was killed or paused. A process that ends
// unexpectedly is recorded with its last output.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { heapFlags, withHeapEnv } from "../../../bin/heap-flags.js";
import { type ConnectOptions, connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import { freePort } from "../loopback.ts";

export const LAUNCHER = fileURLToPath(new URL("../../../bin/parley.js", import.meta.url));
const READY_MAX_MS = 45_000;
/** Apart from the ports of all other tests: no test may take one while its process is down. */
const PORT_FIRST = 12_000;
/** Maximum length of a process's kept output. */
const WORDS_MAX = 20_000;

export const TOKEN = "a-token-that-is-for-tests";

/** Writes a configuration into a home directory. */
export function writeHome(home: string, config: Record<string, unknown>): void {
  mkdirSync(join(home, ".parley"), { mode: 0o700, recursive: true });
  writeFileSync(join(home, ".parley", "parley.json5"), JSON.stringify(config), { mode: 0o600 });
}

/** Runs the launcher with these arguments and an environment with only the home. */
export function launch(
  home: string,
  args: readonly string[],
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  return spawn(process.execPath, [...flags, ...heapFlags(args, flags), LAUNCHER, ...args], {
    // As a child of a launcher it ends when the parent does.
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

/** The address that a launched gateway prints; rejects when it ends first. */
export function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    let words = "";
    const late = setTimeout(() => reject(new Error(`not ready: ${said}${words}`)), READY_MAX_MS);
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

/** One start of one process. */
interface Life {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  words: string;
  broken: boolean;
  /** Whether it was stopped from here. */
  told: boolean;
  over: boolean;
}

export interface FleetOptions {
  /** An empty folder for homes and logs. Its maker removes it. */
  readonly root: string;
  readonly processes: number;
  /** The configuration of a process in this life; token and port are added. */
  readonly config: (life: string) => Record<string, unknown>;
  /** Flags for the runtime, besides the launcher's own. */
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

  /** Finds addresses; starts no process. */
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

  /** The folder of the embedded store and a process's own files. */
  storeDir(at: number): string {
    return join(this.home(at), ".parley", "state");
  }

  url(at: number): string {
    return `ws://127.0.0.1:${this.#ports[at]}`;
  }

  pid(at: number): number {
    return this.#current[at]?.child.pid ?? 0;
  }

  /** Processes that are running and ready. */
  up(): number[] {
    return this.#ports.flatMap((_, at) => (this.#ready[at] === true ? [at] : []));
  }

  /** Processes that ended unexpectedly. */
  get deaths(): readonly string[] {
    return this.#deaths;
  }

  /** Whether this life was killed or paused. */
  isBroken(life: string): boolean {
    return this.#lives.get(life)?.broken ?? true;
  }

  /** Log lines at level `error` or above, of every life. */
  errors(): string[] {
    const lines = [...this.#lives.values()].flatMap((life) => life.words.split("\n"));
    return lines.filter((line) => /^\{"level":[56]0/.test(line));
  }

  /** Starts a process that is down. Resolves when it is ready, or dead again. */
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

  /** Sends SIGKILL. Resolves when the process is gone. */
  async kill(at: number): Promise<void> {
    const life = this.#current[at];
    if (life !== undefined) life.broken = true;
    this.#ready[at] = false;
    await this.#signalled(life, "SIGKILL");
  }

  /** Stops as planned. Resolves with the exit code. */
  async stop(at: number): Promise<number | null> {
    this.#ready[at] = false;
    return this.#signalled(this.#current[at], "SIGTERM");
  }

  /** Sends SIGSTOP: it pauses without noticing. */
  pause(at: number): void {
    const life = this.#current[at];
    if (life === undefined || life.over) return;
    life.broken = true;
    this.#ready[at] = false;
    life.child.kill("SIGSTOP");
  }

  /** Sends SIGCONT: it continues. */
  resume(at: number): void {
    const life = this.#current[at];
    if (life === undefined || life.over) return;
    life.child.kill("SIGCONT");
    this.#ready[at] = true;
  }

  connect(at: number, more: Partial<ConnectOptions> = {}): Promise<GatewayClient> {
    return connect({ url: this.url(at), token: TOKEN, ...more });
  }

  /** Kills every process that is left. */
  async end(): Promise<void> {
    await Promise.all(this.#current.map((life) => this.#signalled(life, "SIGKILL")));
  }
}

function authOf(gateway: object | undefined): object {
  const auth = gateway === undefined ? undefined : Reflect.get(gateway, "auth");
  return typeof auth === "object" && auth !== null ? auth : {};
}
