// Runs an MCP server as a child process: start, pipes and end.
// - The server leads a separate process group: a Ctrl-C at the gateway's terminal does not reach it, and
//   processes that it leaves behind are killed.
// - The server gets only the given environment, not the gateway's.
// - A stop closes the server's input, then sends SIGTERM and SIGKILL. If the gateway itself is killed, the
//   server only notices that its input is closed.
// - The memory for the server's output, and for input that the server has not read, is limited.

import { type ChildProcess, spawn } from "node:child_process";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { pause } from "../../world/pause.ts";
import { killGroup, lastOutputRead, signalGroup } from "../../world/programs.ts";
import { LineReader } from "./frames.ts";
import type { Link, OutsideWorld } from "./transport.ts";

/** Time limit for each step of a stop. */
const STOP_STEP_MS = 2_000;
const UNREAD_MAX_BYTES = 32 * 1024 * 1024;
const LAST_WORDS_CHARS = 2_000;

export interface StdioPlan {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly world: OutsideWorld;
  /** Called for a line of standard output that is not a message. */
  onNoise(what: string): void;
}

export class StdioLink implements Link {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /**
   * The library treats a transport with `stderr` and `pid` as a child process. If a child process does not
   * answer the first request, the library falls back to the older protocol.
   */
  readonly stderr = null;
  readonly #plan: StdioPlan;
  readonly #ended = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #words = "";
  #closing = false;
  #over = false;

  constructor(plan: StdioPlan) {
    this.#plan = plan;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  lastWords(): string {
    return this.#words;
  }

  start(): Promise<void> {
    const { command, args, cwd, env } = this.#plan;
    return new Promise((resolve, reject) => {
      let child: ChildProcess;
      try {
        child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
      } catch (error) {
        // Spawning can throw, for example if an argument contains a NUL.
        this.#finish();
        return reject(error);
      }
      this.#child = child;
      child.once("spawn", resolve);
      child.once("error", (error) => {
        reject(error);
        if (child.pid === undefined) this.#finish();
      });
      child.once("exit", () => void this.#takeExit(child));
      const reader = new LineReader({
        onMessage: (message) => this.onmessage?.(message),
        onNoise: (what) => this.#plan.onNoise(what),
      });
      child.stdout?.on("data", (chunk: Buffer) => reader.add(chunk));
      child.stderr?.on("data", (chunk: Buffer) => {
        this.#words = (this.#words + chunk.toString().slice(-LAST_WORDS_CHARS)).slice(-LAST_WORDS_CHARS);
      });
      for (const stream of [child.stdin, child.stdout, child.stderr]) {
        // If the program ends while a write is pending, its exit event handles that.
        stream?.on("error", () => {});
      }
    });
  }

  async #takeExit(child: ChildProcess): Promise<void> {
    killGroup(child);
    await lastOutputRead();
    for (const stream of child.stdio) stream?.destroy();
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended.resolve();
    this.onclose?.();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#over || stdin == null || !stdin.writable) throw new Error("the program is not running");
    if (stdin.writableLength > UNREAD_MAX_BYTES) throw new Error("the program does not read its input");
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || this.#over) return this.#finish();
    if (!this.#closing) {
      this.#closing = true;
      child.stdin?.end();
      void this.#force(child);
    }
    await this.#ended.promise;
  }

  async #force(child: ChildProcess): Promise<void> {
    const over = new AbortController();
    void this.#ended.promise.then(() => over.abort());
    await pause(this.#plan.world.clock, STOP_STEP_MS, over.signal);
    if (over.signal.aborted) return;
    signalGroup(child, "SIGTERM");
    await pause(this.#plan.world.clock, STOP_STEP_MS, over.signal);
    if (!over.signal.aborted) killGroup(child);
  }
}
