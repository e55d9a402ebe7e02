// Runs a program in a real pseudo-terminal, and emulates the screen that a person would see. `script` of
// util-linux opens the pseudo-terminal and `stty` sets its size, so no native module is needed.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import serializer from "@xterm/addon-serialize";
import xterm from "@xterm/headless";
import { cleanup } from "./cleanup.ts";
import { lacks } from "./process/lacks.ts";

const canOpen = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;

/** True if this machine has no `script` of util-linux (Debian: bsdutils), and so opens no pseudo-terminal. */
export const noPty = lacks("script", canOpen);

interface PtyOptions {
  /** The folder in which the program starts. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly columns?: number;
  readonly rows?: number;
  /** Gets the output of the program as it is written. */
  readonly listen?: (bytes: Buffer) => void;
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

export class Pty {
  readonly #script: ChildProcess;
  readonly #terminal: xterm.Terminal;
  readonly #serializer = new serializer.SerializeAddon();
  readonly #nameFile: string;
  #raw = "";
  readonly exited: Promise<number | null>;

  constructor(command: readonly string[], { folder, env, columns = 80, rows = 24, listen }: PtyOptions) {
    this.#terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    this.#terminal.loadAddon(this.#serializer as unknown as xterm.ITerminalAddon);
    this.#nameFile = join(folder, "tty-name");
    const words = command.map(quoted).join(" ");
    const start = `stty cols ${columns} rows ${rows}; tty > ${quoted(this.#nameFile)}; exec ${words}`;
    this.#script = spawn("script", ["-qefc", start, "/dev/null"], {
      cwd: folder,
      env: { PATH: process.env.PATH, SHELL: "/bin/sh", TERM: "xterm-256color", ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.exited = new Promise((resolve) => this.#script.once("exit", resolve));
    this.#script.stdout?.on("data", (bytes: Buffer) => {
      this.#raw += bytes.toString("latin1");
      this.#terminal.write(bytes);
      listen?.(bytes);
    });
    // The terminal answers questions of the program.
    this.#terminal.onData((answer) => this.type(answer));
    cleanup(async () => {
      this.#script.kill("SIGKILL");
      await this.exited;
      this.#terminal.dispose();
    });
  }

  type(keys: string): void {
    this.#script.stdin?.write(keys);
  }

  /** Changes the size of the window. The program gets SIGWINCH. */
  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows);
    if (!existsSync(this.#nameFile)) throw new Error("the program has not started");
    const tty = readFileSync(this.#nameFile, "utf8").trim();
    spawnSync("stty", ["-F", tty, "cols", String(columns), "rows", String(rows)]);
  }

  /** Returns all rows, also those that were scrolled away, without blanks at their ends. */
  text(): string {
    return this.#rowsFrom(0);
  }

  /** Returns the visible rows. */
  screen(): string {
    return this.#rowsFrom(this.#terminal.buffer.active.baseY);
  }

  /** Returns the visible rows in their colours, as a document. */
  html(): string {
    return this.#serializer.serializeAsHTML({ scrollback: 0, includeGlobalBackground: true });
  }

  #rowsFrom(first: number): string {
    const { active } = this.#terminal.buffer;
    const rows = Array.from({ length: active.length - first }, (_, at) => active.getLine(first + at));
    return rows.map((row) => row?.translateToString(true).trimEnd() ?? "").join("\n");
  }

  /** Returns all bytes that the program has written, one character for each byte. */
  raw(): string {
    return this.#raw;
  }
}
