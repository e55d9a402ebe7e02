// Owns which programs a node runs: its own list of patterns, which nobody changes from elsewhere.
// NE1: a pattern is read word by word against program and arguments; `*` stands for any text within one word,
//      and as the last word for any arguments. No shell reads anything.
// NE2: a program is named as it is found (`git`) or by its whole path: no way round through `..` or a folder
//      that the caller chose.

import { matchesPattern } from "./pattern.ts";

/** A program that a node runs on this machine: without a shell, in this environment and no other. */
export interface HostProgram {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly outputMaxBytes: number;
  /** After this long it is ended, and what it started with it. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HostProgramEnd {
  /** `ended`: by itself; else the limit, or `aborted`. */
  readonly ending: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Head and tail of its standard output. */
  readonly stdout: string;
  readonly stdoutBytes: number;
  readonly truncated: boolean;
  /** Of its error stream only a little. */
  readonly stderr: string;
}

const PATTERN_WORDS = /\s+/;

/** Whether a pattern covers a program with these arguments. */
function covers(pattern: string, argv: readonly string[]): boolean {
  const words = pattern.trim().split(PATTERN_WORDS);
  const open = words.length > 1 && words.at(-1) === "*";
  const fixed = open ? words.slice(0, -1) : words;
  if (open ? argv.length < fixed.length : argv.length !== fixed.length) return false;
  return fixed.every((word, at) => matchesPattern(word, argv[at] ?? ""));
}

/** A path is whole and has no steps back in it; a name has no separators. */
function isPlainProgram(program: string): boolean {
  if (program === "" || program.includes("\\")) return false;
  if (!program.includes("/")) return program !== "." && program !== "..";
  const steps = program.slice(1).split("/");
  return program.startsWith("/") && steps.every((step) => step !== "" && step !== "." && step !== "..");
}

/** Why a program is not run; undefined: it is. */
export function execRefusal(patterns: readonly string[], argv: readonly string[]): string | undefined {
  const shown = JSON.stringify(argv.join(" ").slice(0, 200));
  if (!isPlainProgram(argv[0] ?? "")) {
    return `${shown} does not name a program: give its name, or its whole path without "." and ".."`;
  }
  if (patterns.some((pattern) => covers(pattern, argv))) return undefined;
  const listed = patterns.map((pattern) => JSON.stringify(pattern)).join(", ");
  return `this node does not run ${shown}; it runs: ${listed === "" ? "nothing" : listed}`;
}

/** What is wrong with a pattern; undefined: nothing. */
export function execPatternProblem(pattern: string): string | undefined {
  const [program = ""] = pattern.trim().split(PATTERN_WORDS);
  if (program === "") return "is empty";
  // Anything could be run by whoever may ask: that is a decision, and not one made by a pattern.
  if (/^[*/]+$/.test(program)) return `would let every program be run: name one, like "git *"`;
  return isPlainProgram(program) ? undefined : `must begin with a program's name or whole path`;
}
