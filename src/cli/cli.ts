// Shared by all commands: the global options, output, exit codes.
// Standard output has only the answer; with --json, exactly one JSON document, even if the command fails.
// Only `parley run` prints more of them, one a line.
// CL2: each exit code has one meaning: 0 done, 1 failed, 2 wrong usage, 3 gateway unreachable or connection
//      lost; of `parley run`: 4 stopped, 5 timed out.

import { styleText } from "node:util";
import type { LoadOptions } from "../config.ts";
import { optional } from "../core/optional.ts";
import { harmlessJson, safeJson, safeLine, safeText } from "../core/text/safe-text.ts";
import { inCommands } from "./command-words.ts";
import { age, type Columns, columnsOf, table } from "./layout.ts";
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
  /** Prints a line of the answer, and escapes it. */
  say(text: string): void;
  /** Prints a table with a line for each row. Without rows, prints the text `empty`, if there is one. */
  table<R>(rows: readonly R[], columns: Columns<R>, empty?: string): void;
  /** Prints the line about something that was tested, with a mark for whether it works. */
  verdict(works: boolean, text: string): void;
  /** Formats the time since `atMs`: `3 min ago`. Default of `nowMs`: now, by this machine's clock. */
  ago(atMs: number, nowMs?: number): string;
  /** Prints part of a line of the answer; with --json, prints nothing. */
  write(text: string): void;
  /** With --json, prints the answer as JSON; otherwise prints nothing. */
  document(value: unknown): void;
  /** Prints a line to standard error. */
  note(text: string): void;
  style(style: Style, text: string): string;
  /**
   * Prints a failure and returns the exit code. Default of `exit`: 2 for the code `usage`, 3 if the gateway
   * is unreachable or was lost, otherwise 1.
   */
  fail(trouble: Trouble, exit?: number): number;
  /** Reports wrong usage, and returns its exit code. */
  misuse(error: string, hint?: string): number;
}

const exitOf = (trouble: Trouble): number =>
  trouble.code === "usage" ? EXIT.usage : isGone(trouble) ? EXIT.unreachable : EXIT.failed;

/** Exit code of a process that a second Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * Returns a signal that is aborted when this process is interrupted or terminated. `release` ends this. With
 * `first`, which is called at the first interrupt, a second one ends the process at once.
 */
export function stopOnSignals(
  parts: Pick<CliParts, "onSignal" | "exitNow">,
  first?: () => void,
): Disposable & { readonly signal: AbortSignal } {
  const stop = new AbortController();
  let interrupts = 0;
  const interrupt = (): void => {
    interrupts += 1;
    if (first !== undefined && interrupts > 1) parts.exitNow(INTERRUPTED);
    else first?.();
    stop.abort();
  };
  const releases = [parts.onSignal("SIGINT", interrupt), parts.onSignal("SIGTERM", () => stop.abort())];
  return {
    signal: stop.signal,
    [Symbol.dispose]() {
      for (const release of releases) release();
    },
  };
}

/** With `lineType`, each JSON document is one line, and has this type unless it sets its own. */
export function createCli(parts: CliParts, options: GlobalOptions, lineType?: string): Cli {
  const { stdout, stderr, isTTY, env } = parts;
  const colours = isTTY && !env.NO_COLOR;
  const cli: Cli = {
    parts,
    options,
    line: (text = "") => cli.write(`${text}\n`),
    say: (text) => cli.line(safeLine(text)),
    table(rows, columns, empty) {
      if (rows.length === 0 && empty !== undefined) cli.line(empty);
      else if (rows.length > 0)
        for (const line of table(Object.keys(columns), columnsOf(rows, columns))) cli.line(line);
    },
    verdict: (works, text) =>
      cli.line(`${works ? cli.style("green", "✓") : cli.style("red", "✗")} ${safeLine(text)}`),
    ago: (atMs, nowMs = parts.world.clock.now()) => `${age(atMs, nowMs)} ago`,
    write(text) {
      if (!options.json) stdout.write(text);
    },
    document(value) {
      if (!options.json) return;
      const line =
        lineType === undefined
          ? safeJson(value)
          : harmlessJson(JSON.stringify({ type: lineType, ...Object(value) }));
      stdout.write(`${line}\n`);
    },
    note: (text) => void stderr.write(`${text}\n`),
    style: (style, text) => (colours ? styleText(style, text, { validateStream: false }) : text),
    fail(trouble, exit = exitOf(trouble)) {
      const { code, error, hint, details } = inCommands(trouble, parts.commandFor);
      const more = { ...optional({ hint, details }) };
      cli.document({ ok: false, error: { code, message: error, ...more } });
      if (!options.json) {
        cli.note(safeText(error));
        if (hint !== undefined && !error.includes(hint)) cli.note(safeText(hint));
      }
      return exit;
    },
    misuse: (error, hint) => cli.fail({ code: "usage", error, ...optional({ hint }) }),
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
