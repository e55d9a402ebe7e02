// Shared by all commands: the global options, output, exit codes.
// Standard output has only the answer; with --json, exactly one JSON document, even if the command fails.
// CL2: each exit code has one meaning: 0 done, 1 failed, 2 wrong usage, 3 gateway unreachable or connection
//      lost; of `parley run`: 4 stopped, 5 timed out.

import { styleText } from "node:util";
import type { LoadOptions } from "../config.ts";
import { optional } from "../core/optional.ts";
import { safeJson, safeText } from "../core/text/safe-text.ts";
import { inCommands } from "./command-words.ts";
import type { CliParts } from "./parts.ts";

export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, stopped: 4, timeout: 5 } as const;

/** The client's error codes for an unreachable gateway and a lost connection. */
const GONE: readonly string[] = ["UNREACHABLE", "CLOSED"];

/** Returns whether the gateway was unreachable or the connection was lost. */
export const isGone = ({ code }: Trouble): boolean => GONE.includes(code);

export interface GlobalOptions {
  readonly json: boolean;
  readonly config?: string;
  readonly url?: string;
  readonly token?: string;
}

type Colour = "red" | "green" | "yellow" | "cyan" | "magenta" | "blue";
export type Style = "bold" | "dim" | "italic" | "strikethrough" | "underline" | Colour;

/** A failure to report to the user. `code` is an error code of the gateway or of the command line. */
export interface Trouble {
  readonly code: string;
  readonly error: string;
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Cli {
  readonly parts: CliParts;
  readonly options: GlobalOptions;
  /** Prints a line of the answer; with --json, prints nothing. The caller must have escaped the text. */
  line(text?: string): void;
  /** Prints part of a line of the answer; with --json, prints nothing. */
  write(text: string): void;
  /** With --json, prints the answer as JSON; otherwise prints nothing. */
  document(value: unknown): void;
  /** Prints a line to standard error. */
  note(text: string): void;
  style(style: Style, text: string): string;
  /**
   * Prints a failure and returns the exit code. Default of `exit`: 3 if the gateway is unreachable or was
   * lost, otherwise 1.
   */
  fail(trouble: Trouble, exit?: number): number;
}

/** Returns a signal that is aborted when this process is interrupted or terminated. `release` ends this. */
export function stopOnSignals(parts: Pick<CliParts, "onSignal">): {
  readonly signal: AbortSignal;
  release(): void;
} {
  const stop = new AbortController();
  const releases = (["SIGINT", "SIGTERM"] as const).map((name) => parts.onSignal(name, () => stop.abort()));
  return {
    signal: stop.signal,
    release() {
      for (const release of releases) release();
    },
  };
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
      const more = { ...optional({ hint, details }) };
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

/** Returns where this call finds its configuration. */
export function loadOptionsOf({
  parts: { env, home },
  options,
}: Pick<Cli, "parts" | "options">): LoadOptions {
  return { env, home, ...optional({ configPath: options.config }) };
}
