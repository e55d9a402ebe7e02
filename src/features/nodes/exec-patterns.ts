// Decides which programs a node may run. The patterns can only be changed on the node itself.
// NE1: a pattern is compared word by word with the program and its arguments. `*` matches any text within one
//      word; as the last word, it matches any arguments. No shell is involved.
// NE2: a program is either a name (`git`) or an absolute path. A caller cannot bypass a pattern with `..` in
//      a path, or with a program of the same name in another folder.

import { quoted } from "../../core/text/cut.ts";
import { matchesPattern } from "../../core/text/pattern.ts";

const PATTERN_WORDS = /\s+/;

function covers(pattern: string, argv: readonly string[]): boolean {
  const words = pattern.trim().split(PATTERN_WORDS);
  const open = words.length > 1 && words.at(-1) === "*";
  const fixed = open ? words.slice(0, -1) : words;
  if (open ? argv.length < fixed.length : argv.length !== fixed.length) return false;
  return fixed.every((word, at) => matchesPattern(word, argv[at] ?? ""));
}

/** Returns whether this is an absolute path without `..`, or a name without separators. */
function isPlainProgram(program: string): boolean {
  if (program === "" || program.includes("\\")) return false;
  if (!program.includes("/")) return program !== "." && program !== "..";
  const steps = program.slice(1).split("/");
  return program.startsWith("/") && steps.every((step) => step !== "" && step !== "." && step !== "..");
}

/** Returns the reason why a program may not run, or undefined if it may. */
export function execRefusal(patterns: readonly string[], argv: readonly string[]): string | undefined {
  const shown = quoted(argv.join(" "), 200);
  if (!isPlainProgram(argv[0] ?? "")) {
    return `${shown} does not name a program: give its name, or its whole path without "." and ".."`;
  }
  if (patterns.some((pattern) => covers(pattern, argv))) return undefined;
  const listed = patterns.map((pattern) => JSON.stringify(pattern)).join(", ");
  return `this node does not run ${shown}; it runs: ${listed === "" ? "nothing" : listed}`;
}

/** Returns the problem of a pattern, or undefined if it is valid. */
export function execPatternProblem(pattern: string): string | undefined {
  const [program = ""] = pattern.trim().split(PATTERN_WORDS);
  if (program === "") return "is empty";
  // A pattern must not allow every program by accident.
  if (/^[*/]+$/.test(program)) return `would allow every program: name one, like "git *"`;
  return isPlainProgram(program) ? undefined : `must begin with a program's name or whole path`;
}
