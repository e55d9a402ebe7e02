// The chat without a drawn screen, for pipes, `--plain` and simple terminals: reads lines, prints lines.

import { createInterface, type Interface } from "node:readline";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Cli } from "../cli.ts";
import { type Screen, type Typed, TypedQueue } from "./screen.ts";
import type { Op } from "./view.ts";

const PROMPT = "> ";

export class LineScreen implements Screen {
  readonly draws = false;
  readonly #cli: Cli;
  readonly #reader: Interface;
  readonly #queue = new TypedQueue();
  #growing = false;

  constructor(cli: Cli) {
    this.#cli = cli;
    this.#reader = createInterface({ input: cli.parts.stdin, terminal: false });
    this.#reader.on("line", (text) => this.#queue.push({ text, begunAt: cli.parts.world.clock.now() }));
    this.#reader.on("close", () => this.#queue.end());
  }

  show(ops: readonly Op[]): void {
    for (const op of ops) {
      if (op.op !== "grow") this.#endGrowth();
      if (op.op === "line") this.#cli.line(op.text);
      if (op.op === "grow") {
        this.#cli.write(op.text);
        this.#growing = true;
      }
    }
  }

  async *typed(): AsyncIterable<Typed> {
    for await (const typed of this.#queue.typed()) {
      // A terminal shows the line while it is typed.
      if (!this.#cli.parts.isTTY && typed.text.trim() !== "")
        this.show([{ op: "line", text: `${PROMPT}${safeLine(typed.text)}` }]);
      yield typed;
    }
  }

  onInterrupt(fire: () => void): () => void {
    return this.#cli.parts.onSignal("SIGINT", fire);
  }

  mayLeave(): boolean {
    return true;
  }

  status(): void {}

  async choose(): Promise<undefined> {}

  async close(): Promise<void> {
    this.#queue.clear();
    this.#endGrowth();
    this.#reader.close();
  }

  #endGrowth(): void {
    if (this.#growing) this.#cli.write("\n");
    this.#growing = false;
  }
}
