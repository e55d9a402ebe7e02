// A process that replaces a window of a coding agent.

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { LAUNCHER } from "../../kit/process/fleet.ts";

/** Replaces a coding agent's window: starts the MCP server and the hooks as the agent does. */
export class Window {
  readonly #shell: ChildProcess;
  readonly #home: string;
  #said = "";
  #pipes = 0;

  constructor(home: string, env: Record<string, string> = {}, folder = home) {
    this.#home = home;
    // Each command is a line of the shell's input, so the shell is the parent of the server and of the hooks.
    this.#shell = spawn("/bin/sh", [], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "silent", ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.#shell.stdout?.on("data", (piece: Buffer) => {
      this.#said += piece.toString();
    });
    cleanup(() => {
      this.#shell.kill("SIGKILL");
    });
  }

  startServer(handle: string): void {
    this.startCommand(this.#line(`mcp --joined ${handle}`));
  }

  /** Starts the MCP server with a line for the shell. */
  startCommand(line: string): void {
    this.#pipes += 1;
    const file = join(this.#home, `pipe-${this.#shell.pid}-${this.#pipes}`);
    this.#shell.stdin?.write(`mkfifo ${file}\n${line} <${file} >/dev/null & exec 9>${file}\n`);
  }

  /** Starts another program in a folder, as a command of this one. It gets all further commands. */
  async nest(folder: string): Promise<void> {
    const from = this.#said.length;
    this.#shell.stdin?.write(`cd '${folder}'; sh -c 'echo nested; exec sh'\n`);
    await expect.poll(() => this.#said.slice(from)).toContain("nested");
  }

  /** Calls a tool through the window's MCP server, without waiting for the answer. */
  call(name: string, args: object): void {
    const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
    this.#shell.stdin?.write(`printf '%s\\n' '${JSON.stringify(request)}' >&9\n`);
  }

  /** Closes the window: ends the standard input of its MCP server. */
  close(): void {
    this.#shell.stdin?.end();
  }

  /** Runs the hook and returns its output and exit code. */
  async hook(program: string, handle: string, event: string, more: object = {}): Promise<string> {
    return this.hookCommand(this.#line(`inbox --hook ${program} --joined ${handle}`), event, more);
  }

  /** Runs a hook with a line for the shell. */
  async hookCommand(command: string, event: string, more: object = {}): Promise<string> {
    const from = this.#said.length;
    const input = `'${JSON.stringify({ hook_event_name: event, ...more })}'`;
    this.#shell.stdin?.write(`printf '%s' ${input} | ${command} 2>&1; echo "<code $?>"\n`);
    await expect.poll(() => this.#said.slice(from)).toMatch(/<code \d+>/);
    return this.#said.slice(from).trim();
  }

  #line(words: string): string {
    return `'${process.execPath}' '${LAUNCHER}' ${words}`;
  }
}
