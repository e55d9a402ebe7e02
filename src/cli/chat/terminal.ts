// Owns the terminal of a chat: lines that are typed, and output that never runs through what is being typed.
// TM1: what comes in while somebody types is written above the prompt, and the typed text stays.
// TM2: a line that comes before anybody asks for it is kept.

import { createInterface, type Interface } from "node:readline";
import { safeLine } from "../../core/safe-text.ts";
import type { Cli } from "../cli.ts";
import type { Op } from "./view.ts";

const PROMPT = "> ";
const CLEAR_DOWN = "\r\x1b[J";

export class Terminal {
  readonly #cli: Cli;
  readonly #reader: Interface;
  /** Somebody sits there; else the lines come from a file or a program. */
  readonly #live: boolean;
  readonly #typed: string[] = [];
  #ended = false;
  #growing = false;
  #wake: () => void = () => {};

  constructor(cli: Cli) {
    const { stdin, stdout, isTTY } = cli.parts;
    this.#cli = cli;
    this.#live = isTTY && !cli.options.json;
    this.#reader = createInterface({
      input: stdin,
      prompt: PROMPT,
      terminal: this.#live,
      ...(this.#live ? { output: stdout } : {}),
    });
    this.#reader.on("line", (line) => {
      this.#typed.push(line);
      this.#wake();
    });
    this.#reader.on("close", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  show(ops: readonly Op[]): void {
    if (ops.length === 0) return;
    this.#clearPrompt();
    for (const op of ops) {
      if (op.op !== "grow") this.#endGrowth();
      if (op.op === "line") this.#cli.line(op.text);
      if (op.op === "grow") {
        this.#cli.write(op.text);
        this.#growing = true;
      }
    }
    this.#prompt();
  }

  /** Each typed line; ends when the input does, or when the terminal is closed. */
  async *lines(): AsyncIterable<string> {
    this.#prompt();
    for (;;) {
      const line = this.#typed.shift();
      if (line === undefined && this.#ended) return;
      if (line === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      if (!this.#live && line.trim() !== "") this.show([{ op: "line", text: `${PROMPT}${safeLine(line)}` }]);
      yield line;
      this.#prompt();
    }
  }

  /** Calls `fire` at every Ctrl-C; returns the function that ends that. */
  onInterrupt(fire: () => void): () => void {
    if (!this.#live) return this.#cli.parts.onSignal("SIGINT", fire);
    this.#reader.on("SIGINT", fire);
    return () => this.#reader.off("SIGINT", fire);
  }

  close(): void {
    this.#typed.length = 0;
    this.#endGrowth();
    this.#reader.close();
  }

  #prompt(): void {
    if (this.#live && !this.#growing && !this.#ended) this.#reader.prompt(true);
  }

  /** Takes away the prompt and what is typed behind it, over as many rows as it has. */
  #clearPrompt(): void {
    if (!this.#live || this.#growing) return;
    const { rows } = this.#reader.getCursorPos();
    this.#cli.write(`${rows > 0 ? `\x1b[${rows}A` : ""}${CLEAR_DOWN}`);
  }

  #endGrowth(): void {
    if (this.#growing) this.#cli.write("\n");
    this.#growing = false;
  }
}
