// The two screens of a chat share this interface: line-screen.ts prints line by line, full-screen.ts draws.

import type { Op } from "./view.ts";

/** A line or a text of several lines that the user sent. */
export interface Typed {
  readonly text: string;
  /** Time at which the user began to type it, in ms since 1970. */
  readonly begunAt: number;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

export interface Screen {
  /** True if the screen shows `status` and a list to choose from. */
  readonly draws: boolean;
  show(ops: readonly Op[]): void;
  /** Yields each typed text until the input ends or the screen is closed. */
  typed(): AsyncIterable<Typed>;
  /** Calls `fire` at every Ctrl-C that is meant for the agent, until the returned function is called. */
  onInterrupt(fire: () => void): () => void;
  /** Returns whether Ctrl-C leaves the chat if no run is in progress. */
  mayLeave(): boolean;
  /** Shows the line that `text` returns, and asks for it again each second. */
  status(text: (nowMs: number) => string): void;
  /** Returns the value that the user chose, or undefined if they cancelled. */
  choose(choices: readonly Choice[]): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Typed texts that nobody has read yet. Texts that arrive before `typed` is called are kept for it. */
export class TypedQueue {
  readonly #texts: Typed[] = [];
  #ended = false;
  #wake: () => void = () => {};

  push(typed: Typed): void {
    this.#texts.push(typed);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  clear(): void {
    this.#texts.length = 0;
  }

  async *typed(): AsyncIterable<Typed> {
    for (;;) {
      const typed = this.#texts.shift();
      if (typed !== undefined) yield typed;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
