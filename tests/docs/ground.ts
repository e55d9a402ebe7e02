// The environment in which the commands of one document run: a home, a gateway if the document needs one, and
// a shell. Commands of Parley run in this process, because real starts would take minutes. Other commands run
// in a real shell, in which `parley` and `npx parley-gateway` start the real launcher. GR1: nothing outside the home
// is written: paths such as /var/backups and /srv are moved into it. GR2: the gateway has its own port, which
// replaces the documents' 7275.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import JSON5 from "json5";
import { type Call, call, type Finished, run, startGateway } from "../cli/kit.ts";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { addressOf, LAUNCHER, launch } from "../kit/process/fleet.ts";

type Json = Record<string, unknown>;

const DOCUMENTED_PORT = 7275;
/** Matches paths of the machine to which a test must not write. */
const ELSEWHERE = /(?<![\w.])\/(?:var\/backups|srv|etc\/prometheus)\//g;

const FOREIGN = [
  "npm",
  "docker",
  "podman",
  "sudo",
  "systemctl",
  "loginctl",
  "journalctl",
  "launchctl",
  "brew",
  "ssh",
];

export class Ground {
  readonly home: string;
  readonly work: string;
  readonly port: number;
  readonly env: Record<string, string>;
  /** State of the fakes, which the document uses. */
  readonly facts: Record<string, string> = {};
  readonly #bin: string;
  readonly #ports: readonly number[];
  /** Stops the gateway if one runs. */
  #leave: (signal: "SIGINT" | "SIGKILL") => Promise<void> = async () => {};
  /** Shell variables that earlier blocks of commands have set. */
  #remembered = "";

  private constructor(ports: readonly number[], env: Readonly<Record<string, string>>) {
    this.home = temporaryFolder(tmpdir());
    this.#ports = ports;
    this.port = ports[0] ?? 0;
    this.work = join(this.home, "work");
    this.#bin = join(this.home, "bin");
    for (const path of [this.work, this.#bin, join(this.home, "var/backups"), join(this.home, ".parley")])
      mkdirSync(path, { recursive: true, mode: 0o700 });
    const start = `exec "${process.execPath}" "${LAUNCHER}"`;
    this.program("parley", `${start} "$@"`);
    this.program("npx", `[ "$1" = -y ] && shift\n[ "$1" = parley-gateway ] || exit 9\nshift\n${start} "$@"`);
    // The option makes curl fail if a request is refused.
    this.program("curl", 'PATH="${PATH#*:}" exec curl --fail-with-body "$@"');
    // Replaces programs that would change this machine.
    for (const name of FOREIGN) this.program(name, `echo "$0 is not to be run here" >&2; exit 9`);
    this.env = { PATH: `${this.#bin}:${process.env.PATH}`, PARLEY_LAUNCHED: "1", ...env };
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<Ground> {
    return new Ground([await freePort(), await freePort(), await freePort()], env);
  }

  /** Adds a program that the shell finds before all others. */
  program(name: string, script: string): void {
    writeFileSync(join(this.#bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(this.#bin, name), 0o755);
  }

  get configPath(): string {
    return join(this.home, ".parley", "parley.json5");
  }

  /** Writes a configuration with this environment's port, or changes the port in the existing one. */
  configure(config?: Json): void {
    const { configPath, port } = this;
    const there =
      config ?? (existsSync(configPath) ? (JSON5.parse(readFileSync(configPath, "utf8")) as Json) : {});
    const gateway = (there.gateway ?? {}) as Json;
    if (config === undefined && gateway.port === port) return;
    writeFileSync(configPath, JSON.stringify({ ...there, gateway: { ...gateway, port } }), { mode: 0o600 });
  }

  /** Starts a silent gateway in this process. */
  async start(): Promise<string> {
    this.configure();
    const { stop } = await startGateway(this.home, this.env);
    this.#leave = () => stop();
    return "";
  }

  async stop(): Promise<void> {
    await this.#leave("SIGKILL");
  }

  /**
   * Runs `npm start` until Ctrl-C: a gateway in a separate process, which can be killed. Stores its first
   * output.
   */
  async launch(): Promise<string> {
    await this.#leave("SIGINT");
    this.configure();
    const child = launch(this.home, [], [], this.env);
    const exited = once(child, "exit");
    this.#leave = async (signal) => {
      child.kill(signal);
      await exited;
    };
    let said = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    await addressOf(child);
    while (!/another terminal: .*\n/.test(said)) await once(child.stdout as Readable, "data");
    return said;
  }

  /** Replaces the port and the paths of the document by those of this environment. */
  #here(text: string): string {
    return text
      .replace(/\b727[567]\b/g, (named) => String(this.#ports[Number(named) - DOCUMENTED_PORT]))
      .replace(ELSEWHERE, (path) => `${this.home}${path}`);
  }

  /**
   * Documented port numbers of the gateways that the document's commands kill. Each of these gateways has its
   * own process.
   */
  readonly mortal = new Set<string>();
  readonly #beside = new Map<string, ChildProcess>();

  async #launchBeside(words: readonly string[], named: string): Promise<string> {
    const child = launch(this.home, words, [], this.env);
    const exited = once(child, "exit");
    this.#beside.set(named, child);
    cleanup(async () => {
      child.kill("SIGKILL");
      await exited;
    });
    return addressOf(child);
  }

  /** Kills a gateway with SIGKILL, like a power cut. */
  readonly kill = async (named: string): Promise<void> => {
    const child = this.#beside.get(named);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };

  /** Starts a command that runs until the end of the test. Resolves when its output matches `ready`. */
  async keep(text: string, ready: RegExp): Promise<string> {
    const words = wordsOf(this.#here(text), this.home);
    if (words === undefined) throw new Error(`a shell would have to read "${text}"`);
    const port = /--port (\d+)/.exec(text)?.[1];
    if (port !== undefined && this.mortal.has(port)) return this.#launchBeside(words, port);
    const going: Call = call(this.home, words, { env: this.env });
    cleanup(async () => {
      going.interrupt("SIGTERM");
      going.stdin.end();
      await going.code;
    });
    while (!ready.test(going.out() + going.err())) await new Promise((resolve) => setTimeout(resolve, 20));
    return going.out() + going.err();
  }

  /** Runs a command of Parley and parses the JSON document that it prints. */
  async json(words: readonly string[]): Promise<Json> {
    const { out } = await run(this.home, ["--json", ...words], { env: this.env });
    return JSON.parse(out) as Json;
  }

  /** Runs a command of Parley in this process, and any other command in a shell. */
  async run(text: string, input = ""): Promise<Finished> {
    if (existsSync(this.configPath)) this.configure();
    const here = this.#here(text);
    const words = wordsOf(here, this.home);
    if (words === undefined) return this.#shell(here, input);
    return run(this.home, words, { env: this.env, input, sandbox: SANDBOX });
  }

  async #shell(script: string, input: string): Promise<Finished> {
    const env = { ...this.env, HOME: this.home };
    const child = spawn("bash", ["-c", `set -e -o pipefail\n${this.#remembered}${script}\n`], {
      cwd: this.work,
      env,
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString();
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const code = await new Promise<number>((resolve) =>
      child.once("close", (status) => resolve(status ?? -1)),
    );
    for (const [line] of script.matchAll(/^(?:export )?\w+=.*$/gm)) this.#remembered += `${line}\n`;
    return { code, out, err };
  }
}

/** The sandbox report in the documents; the real one differs between machines. */
const SANDBOX = { usable: true, text: "bubblewrap contains programs here" };

/**
 * Returns the words after `parley`. Returns undefined if the line is another command, or if only a shell can
 * parse it.
 */
export function wordsOf(text: string, home = "~"): string[] | undefined {
  const bare = text.replace(/\\\n\s*/g, " ");
  const found = /^(?:npx parley-gateway|parley)(?= |$)(.*)$/s.exec(bare);
  if (found === null) return undefined;
  const unquoted = bare.replace(/'[^']*'/g, "");
  if (/[$`]/.test(unquoted) || /[|<>;&*?]/.test(unquoted.replace(/"[^"]*"/g, ""))) return undefined;
  return [...(found[1] ?? "").matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, word]) => single ?? double ?? (word ?? "").replace(/^~(?=\/|$)/, home),
  );
}
