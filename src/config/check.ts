// Checks the configuration file again and reports which settings a restart would change.

import { isDeepStrictEqual } from "node:util";
import { configPathOf, type LoadOptions, loadSettings } from "../config.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { describeSettings } from "./describe.ts";

/** Paths of settings that have another name in the file. */
const IN_FILE: Partial<Record<keyof Settings, string>> = {
  providers: "models.providers",
  maxConcurrent: "agents.defaults.maxConcurrent",
  subagents: "agents.defaults.subagents",
  owners: "commands.owners",
  outgoingHooks: "hooks.outgoing",
  traces: "telemetry.traces",
};

/** Returns the paths of the settings that differ, without values. */
function changedParts(running: Settings, found: Settings): string[] {
  const names = new Set([...Object.keys(running), ...Object.keys(found)] as (keyof Settings)[]);
  return [...names]
    .filter((name) => !isDeepStrictEqual(running[name], found[name]))
    .map((name) => IN_FILE[name] ?? name)
    .sort();
}

/** A configuration, compared with the running settings. */
interface Compared {
  readonly path: string;
  readonly exists: boolean;
  readonly ok: boolean;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly differs: boolean;
  readonly changed: readonly string[];
  /** The settings of the next start. Absent if the file has problems. */
  readonly next?: Settings;
}

/**
 * Reads the file and the environment as a start would, and compares them with the running settings. With
 * `text`, checks it in place of the file.
 */
export function compare(options: LoadOptions, running: Settings, text?: string): Compared {
  const again = loadSettings(options, text);
  if (!again.ok) {
    const { problems } = again.details ?? {};
    const errors = Array.isArray(problems) ? problems.map(String) : [again.error];
    const path = configPathOf(options);
    return { path, exists: true, ok: false, errors, warnings: [], differs: false, changed: [] };
  }
  const { path, exists, warnings, settings: next } = again.value;
  const changed = changedParts(running, next);
  const differs = changed.length > 0;
  return { path, exists, ok: true, errors: [], warnings, differs, changed, next };
}

/** Checks the file, and describes the running settings. */
export function checkAgain(options: LoadOptions, running: Settings) {
  return { ...compare(options, running), settings: describeSettings(running) };
}
