// The terminal of a chat: reads typed lines, and prints output above the prompt, so that the text being typed
// stays intact. Lines that arrive before `lines` is called are kept for it.

import { createInterface, type Interface } from "node:readline";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Cli } from "../cli.ts";
import type { Op } from "./view.ts";

const PROMPT = "> ";
const CLEAR_DOWN = "\r\x1b[J";

export class Terminal {
  readonly #cli: Cli;
  readonly #reader: Interface;
  /** True if a person types. False if the input comes from a file or another program. */
  readonly #interactive: boolean;
  readonly #typed: string[] = [];
  #ended = false;
  #growing = false;
  #wake: () => void = () => {};

  constructor(cli: Cli) {
    const { stdin, stdout, isTTY } = cli.parts;
    this.#cli = cli;
    this.#interactive = isTTY && !cli.options.json;
    this.#reader = createInterface({
      input: stdin,
      prompt: PROMPT,
      terminal: this.#interactive,
      ...(this.#interactive ? { output: stdout } : {}),
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

  /** Yields each typed line until the input ends or the terminal is closed. */
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
      if (!this.#interactive && line.trim() !== "")
        this.show([{ op: "line", text: `${PROMPT}${safeLine(line)}` }]);
      yield line;
      this.#prompt();
    }
  }

  /** Calls `fire` at every Ctrl-C until the returned function is called. */
  onInterrupt(fire: () => void): () => void {
    if (!this.#interactive) return this.#cli.parts.onSignal("SIGINT", fire);
    this.#reader.on("SIGINT", fire);
    return () => this.#reader.off("SIGINT", fire);
  }

  close(): void {
    this.#typed.length = 0;
    this.#endGrowth();
    this.#reader.close();
  }

  #prompt(): void {
    if (this.#interactive && !this.#growing && !this.#ended) this.#reader.prompt(true);
  }

  /** Erases the prompt and the text being typed, which may span several rows. */
  #clearPrompt(): void {
    if (!this.#interactive || this.#growing) return;
    const { rows } = this.#reader.getCursorPos();
    this.#cli.write(`${rows > 0 ? `\x1b[${rows}A` : ""}${CLEAR_DOWN}`);
  }

  #endGrowth(): void {
    if (this.#growing) this.#cli.write("\n");
    this.#growing = false;
  }
}
