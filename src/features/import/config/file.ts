// Decides where an imported configuration is written, and checks that Parley can start with it. A file that
// a person wrote is never overwritten: the import becomes the configuration file only if there is none, or
// if the existing one is empty or an unchanged earlier import. Otherwise the import is written beside that
// file as a proposal, once. Settings that would prevent a start are removed and reported. The file is
// readable only by its owner, because it holds secrets.

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Tree } from "../../../config/source.ts";
import { type LoadOptions, settingsOfText } from "../../../config.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import { showPath } from "../../../core/text/value-path.ts";
import { ensureFolder } from "../../../world/folders.ts";
import { drop } from "./tree.ts";

/** Maximum number of removed settings. */
const REPAIRS_MAX = 300;
const PROPOSALS_MAX = 50;

export interface CheckedConfig {
  readonly text: string;
  readonly settings: Settings;
  /** Removed settings, with the reasons. */
  readonly takenOut: readonly string[];
  /** Environment variables that the configuration refers to and that are not set now. */
  readonly variables: readonly string[];
}

/** Returns the configuration as the text of a file at `path`, without the settings that are invalid. */
export function checkConfig(
  mapped: Tree,
  from: string,
  path: string,
  options: LoadOptions,
): CheckedConfig | undefined {
  const tree = structuredClone(mapped);
  const takenOut: string[] = [];
  for (let repairs = 0; repairs <= REPAIRS_MAX; repairs += 1) {
    const text =
      `// Made by "npx parley-gateway import" of ${from}. Review it before you start the gateway.\n` +
      `${JSON.stringify(tree, undefined, 2)}\n`;
    const names = [...text.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name = ""]) => name);
    const needed = [...new Set(names)].sort();
    const variables = needed.filter((name) => options.env[name] === undefined);
    // Checks as if the gateway's environment set the variables that are missing now.
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
  /** No file needs to be written, because an earlier import wrote the same text. */
  | { readonly kind: "there"; readonly path: string };

/** Returns the text of a file, or undefined if it is missing or unreadable. */
export function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Returns the path at which to write `text`, without writing it. `exists`: whether there is a configuration
 * file. `earlier`: the text that an earlier import may have written there.
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
  if (current !== undefined && (current === earlier || current.trim() === ""))
    return ok({ kind: "written", path, replaces: current });
  for (let number = 1; number <= PROPOSALS_MAX; number += 1) {
    const name = number === 1 ? "parley.imported.json5" : `parley.imported-${number}.json5`;
    const proposal = join(dirname(path), name);
    const there = textAt(proposal);
    if (there === text) return ok({ kind: "there", path: proposal });
    if (there === undefined) return ok({ kind: "proposed", path: proposal });
  }
  return fail("invalid_config", `there are already ${PROPOSALS_MAX} proposals beside ${path}`, {
    hint: "Remove those that you don't need: parley.imported*.json5.",
  });
}

/**
 * Writes the file atomically. Overwrites an existing file only if its text is `replaces`. `unique`: suffix of
 * the temporary name.
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
      // Falls back to a rename, because some file systems do not support links.
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
