// Says in the output of a run which tests were skipped, and why. In CI nothing is skipped that .ci/run installs.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const installed = readFileSync(new URL("../../../.ci/run", import.meta.url), "utf8").matchAll(
  /^(?:need|step npm ci --prefix) (\S+)/gm,
);
const IN_CI = [...installed].map(([, program]) => program);
const reported = new Set<string>();

/**
 * Returns whether this machine lacks what some tests need, and prints it. `isHere`: default: whether `what` is
 * a program on the search path.
 */
export function lacks(what: string, isHere = spawnSync("which", [what]).status === 0): boolean {
  if (isHere) return false;
  if (process.env.CI !== undefined && IN_CI.includes(what)) throw new Error(`CI must contain ${what}`);
  if (!reported.has(what)) process.stderr.write(`SKIPPED: tests that need ${what}\n`);
  reported.add(what);
  return true;
}
