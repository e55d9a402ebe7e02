// Owns the terminal of a chat: lines that are typed, and output that never runs through what is being typed.
// TM1: what comes in while somebody types is written above the prompt, and the typed text stays.

import { createInterface, type Interface } from "node:readline";
import type { Cli } from "../cli.ts";
import type { Op } from "./view.ts";

const PROMPT = "> ";
const CLEAR_DOWN = "\r\x1b[J";

export interface Terminal {
  show(ops: readonly Op[]): void;
  /** Each typed line; ends when the input does. */
  lines(): AsyncIterable<string>;
  /** Ctrl-C. */
  onInterrupt(fire: () => void): void;
  close(): void;
}

export function openTerminal(cli: Cli): Terminal {
  const { stdin, stdout, isTTY } = cli.parts;
  const live = isTTY && !cli.options.json;
  const reader: Interface = createInterface({
    input: stdin,
    prompt: PROMPT,
    terminal: live,
    ...(live ? { output: stdout } : {}),
  });
  // Kept from the first moment on: lines may come before anybody asks for them.
  const typed: string[] = [];
  let ended = false;
  let wake: () => void = () => {};
  reader.on("line", (line) => {
    typed.push(line);
    wake();
  });
  reader.on("close", () => {
    ended = true;
    wake();
  });
  let growing = false;
  /** Rows of the prompt and of what is typed behind it, above the one with the cursor. */
  const clearPrompt = (): void => {
    if (!live || growing) return;
    const { rows } = reader.getCursorPos();
    cli.write(`${rows > 0 ? `\x1b[${rows}A` : ""}${CLEAR_DOWN}`);
  };
  const endGrowth = (): void => {
    if (growing) cli.write("\n");
    growing = false;
  };
  const show = (ops: readonly Op[]): void => {
    if (ops.length === 0) return;
    clearPrompt();
    for (const op of ops) {
      if (op.op !== "grow") endGrowth();
      if (op.op === "line") cli.line(op.text);
      if (op.op === "grow") {
        cli.write(op.text);
        growing = true;
      }
    }
    if (live && !growing) reader.prompt(true);
  };
  return {
    show,
    async *lines() {
      if (live) reader.prompt();
      for (;;) {
        const line = typed.shift();
        if (line === undefined && ended) return;
        if (line === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        if (!live && line.trim() !== "") show([{ op: "line", text: `${PROMPT}${line}` }]);
        yield line;
        if (live && !growing) reader.prompt();
      }
    },
    onInterrupt(fire) {
      if (live) reader.on("SIGINT", fire);
      else cli.parts.onSignal("SIGINT", fire);
    },
    close() {
      typed.length = 0;
      endGrowth();
      reader.close();
    },
  };
}
