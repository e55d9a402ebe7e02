// Owns what every command has in hand: the options that go before all commands, output, exit codes.
// CL1: standard output has the answer and nothing else; with --json exactly one JSON document, failures
//      included.
// CL2: an exit code means one thing: 0 done, 1 failed, 2 wrong usage, 3 no gateway there, or none any more.

import { styleText } from "node:util";
import { safeJson, safeText } from "../core/safe-text.ts";
import { inCommands } from "./command-words.ts";
import type { CliParts } from "./parts.ts";

export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** What the client calls a gateway that does not answer, and one that is lost in the middle. */
const GONE: readonly string[] = ["UNREACHABLE", "CLOSED"];

/** Whether it failed because no gateway is there, or none any more. */
export const isGone = ({ code }: Trouble): boolean => GONE.includes(code);

export interface GlobalOptions {
  readonly json: boolean;
  readonly config?: string;
  readonly url?: string;
  readonly token?: string;
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta" | "blue";

/** What went wrong, for a person: `code` is the gateway's or the command line's own. */
export interface Trouble {
  readonly code: string;
  readonly error: string;
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Cli {
  readonly parts: CliParts;
  readonly options: GlobalOptions;
  /** A line of the answer; nothing with --json. The text must be safe already. */
  line(text?: string): void;
  /** Part of a line of the answer; nothing with --json. */
  write(text: string): void;
  /** The answer, with --json. */
  document(value: unknown): void;
  /** Something to know beside the answer, on standard error. */
  note(text: string): void;
  style(style: Style, text: string): string;
  /** Says what went wrong and returns the exit code: by default 3 where the gateway is gone, else 1. */
  fail(trouble: Trouble, exit?: number): number;
}

export function createCli(parts: CliParts, options: GlobalOptions): Cli {
  const { stdout, stderr, isTTY, env } = parts;
  const colours = isTTY && !env.NO_COLOR;
  const cli: Cli = {
    parts,
    options,
    line: (text = "") => cli.write(`${text}\n`),
    write(text) {
      if (!options.json) stdout.write(text);
    },
    document(value) {
      if (options.json) stdout.write(`${safeJson(value)}\n`);
    },
    note: (text) => void stderr.write(`${text}\n`),
    style: (style, text) => (colours ? styleText(style, text, { validateStream: false }) : text),
    fail(trouble, exit = isGone(trouble) ? EXIT.unreachable : EXIT.failed) {
      const { code, error, hint, details } = inCommands(trouble);
      const more = { ...(hint === undefined ? {} : { hint }), ...(details === undefined ? {} : { details }) };
      cli.document({ ok: false, error: { code, message: error, ...more } });
      if (!options.json) {
        cli.note(safeText(error));
        if (hint !== undefined && !error.includes(hint)) cli.note(safeText(hint));
      }
      return exit;
    },
  };
  return cli;
}
