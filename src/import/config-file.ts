// Owns where an imported configuration goes, and that it is one that Parley can start with.
// CF1: nothing is ever overwritten: it becomes the configuration file where there is none yet, else a
//      proposal beside it; and the same one is written once.
// CF2: what would keep Parley from starting is taken out and named, until nothing is wrong any more.
// CF3: it is its owner's alone: secrets stand in it.

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Path, showPath, type Tree } from "../config/source.ts";
import { type LoadOptions, settingsOfText } from "../config.ts";
import { fail, ok, type Result } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { Settings } from "../core/settings.ts";
import { ensureFolder } from "../world/folders.ts";

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

/** Takes one thing out; false: there is nothing at that path. */
function drop(tree: Tree, path: Path): boolean {
  let parent: unknown = tree;
  for (const part of path.slice(0, -1)) {
    parent = (parent as Record<string | number, unknown> | undefined)?.[part];
    if (typeof parent !== "object" || parent === null) return false;
  }
  const last = path.at(-1);
  if (Array.isArray(parent) && typeof last === "number" && last < parent.length) {
    parent.splice(last, 1);
    return true;
  }
  if (!isObject(parent) || last === undefined || !Object.hasOwn(parent, last)) return false;
  delete parent[last];
  return true;
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
  | { readonly kind: "written" | "proposed"; readonly path: string }
  /** The same text is there already. */
  | { readonly kind: "there"; readonly path: string };

function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Where it would go, without writing it. `exists`: there is a configuration file. */
export function placeFor(text: string, path: string, exists: boolean): Result<PlacedConfig> {
  if (!exists) return ok({ kind: "written", path });
  if (textAt(path) === text) return ok({ kind: "there", path });
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

/** Writes it whole or not at all, and over nothing. `unique`: no other name like it. */
export async function writeConfig(text: string, path: string, unique: string): Promise<Result<void>> {
  const made = `${path}.${unique}`;
  try {
    await ensureFolder(dirname(path));
    writeFileSync(made, text, { flag: "wx", mode: 0o600, flush: true });
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
