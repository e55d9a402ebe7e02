// Owns where an imported configuration goes, and that it is one that Parley can start with.
// CF1: nothing that a person wrote is overwritten: it becomes the configuration file if there is none yet,
//      or if an import wrote it and nobody changed it; else a proposal beside it. The same one is written
//      once.
// CF2: what would keep Parley from starting is taken out and named, until nothing is wrong any more.
// CF3: it is its owner's alone: secrets stand in it.

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { showPath, type Tree } from "../config/source.ts";
import { type LoadOptions, settingsOfText } from "../config.ts";
import { fail, ok, type Result } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import { ensureFolder } from "../world/folders.ts";
import { drop } from "./config-tree.ts";

/** Things that are taken out of one configuration. */
const REPAIRS_MAX = 300;
const PROPOSALS_MAX = 50;

export interface CheckedConfig {
  readonly text: string;
  readonly settings: Settings;
  /** What was taken out, and why. */
  readonly takenOut: readonly string[];
  /** Variables that it needs and that are not set here. */
  readonly variables: readonly string[];
}

const textOf = (tree: Tree, from: string): string =>
  `// Made by "parley import" of ${from}. Look it through before you start the gateway.\n` +
  `${JSON.stringify(tree, undefined, 2)}\n`;

/** The variables that a text needs, and that have no fallback. */
function variablesIn(text: string): string[] {
  const names = [...text.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name = ""]) => name);
  return [...new Set(names)].sort();
}

/** The configuration without what is wrong with it, as the file at `path` would hold it. */
export function checkConfig(
  mapped: Tree,
  from: string,
  path: string,
  options: LoadOptions,
): CheckedConfig | undefined {
  const tree = structuredClone(mapped);
  const takenOut: string[] = [];
  for (let repairs = 0; repairs <= REPAIRS_MAX; repairs += 1) {
    const text = textOf(tree, from);
    const needed = variablesIn(text);
    const variables = needed.filter((name) => options.env[name] === undefined);
    // That a variable is not set here says nothing about the gateway's environment.
    const env = { ...options.env, ...Object.fromEntries(variables.map((name) => [name, "set-later"])) };
    const { settings, problems } = settingsOfText(text, path, { ...options, env });
    const [problem] = problems;
    if (problem === undefined)
      return settings === undefined ? undefined : { text, settings, takenOut, variables };
    let at = problem.path;
    while (at.length > 0 && !drop(tree, at)) at = at.slice(0, -1);
    if (at.length === 0) return undefined;
    takenOut.push(`${showPath(at)}: ${problem.text}`.slice(0, 300));
  }
  return undefined;
}

export type PlacedConfig =
  | { readonly kind: "written" | "proposed"; readonly path: string; readonly replaces?: string }
  /** The same text is there already. */
  | { readonly kind: "there"; readonly path: string };

/** The text of a file; undefined: there is none that can be read. */
export function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Where it would go, without writing it. `exists`: there is a configuration file. `earlier`: what an import
 * may have written there.
 */
export function placeFor(
  text: string,
  path: string,
  exists: boolean,
  earlier: string | undefined,
): Result<PlacedConfig> {
  if (!exists) return ok({ kind: "written", path });
  const current = textAt(path);
  if (current === text) return ok({ kind: "there", path });
  if (current !== undefined && current === earlier) return ok({ kind: "written", path, replaces: earlier });
  for (let number = 1; number <= PROPOSALS_MAX; number += 1) {
    const name = number === 1 ? "parley.imported.json5" : `parley.imported-${number}.json5`;
    const proposal = join(dirname(path), name);
    const there = textAt(proposal);
    if (there === text) return ok({ kind: "there", path: proposal });
    if (there === undefined) return ok({ kind: "proposed", path: proposal });
  }
  return fail("invalid_config", `there are ${PROPOSALS_MAX} proposals beside ${path} already`, {
    hint: "Remove those that you don't need: parley.imported*.json5.",
  });
}

/**
 * Writes it whole or not at all, and over nothing but `replaces`. `unique`: no other name like it.
 */
export async function writeConfig(
  { text, path, replaces }: { text: string; path: string; replaces?: string | undefined },
  unique: string,
): Promise<Result<void>> {
  const made = `${path}.${unique}`;
  try {
    await ensureFolder(dirname(path));
    writeFileSync(made, text, { flag: "wx", mode: 0o600, flush: true });
    if (replaces !== undefined && textAt(path) === replaces) {
      renameSync(made, path);
      return ok(undefined);
    }
    try {
      linkSync(made, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
      // Not every file system has links.
      renameSync(made, path);
    }
    return ok(undefined);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return fail("invalid_config", `the configuration can't be written to ${path}: ${message}`);
  } finally {
    rmSync(made, { force: true });
  }
}
