// Checks the configuration file again, and compares it with the settings in effect.

import { isDeepStrictEqual } from "node:util";
import { configPathOf, type LoadOptions, loadSettings } from "../config.ts";
import type { ConfigCheck } from "../contract/methods/configuration.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { describeSettings } from "./describe.ts";
import { applicable } from "./reload.ts";

/** The path in the file for each setting that has another name there. */
const IN_FILE: Partial<Record<keyof Settings, string>> = {
  providers: "models.providers",
  maxConcurrent: "agents.defaults.maxConcurrent",
  subagents: "agents.defaults.subagents",
  owners: "commands.owners",
  traces: "telemetry.traces",
};

/**
 * Reads the file and the environment as a start would, and compares them with the running settings. If `text`
 * is given, it is used instead of the file's content. `next`: the settings that the next start would use.
 * Absent if the file has problems.
 */
export function compare(
  options: LoadOptions,
  running: Settings,
  text?: string,
): Omit<ConfigCheck, "settings" | "reach"> & { readonly next?: Settings } {
  const again = loadSettings(options, text);
  if (!again.ok) {
    const { problems } = again.details ?? {};
    const errors = Array.isArray(problems) ? problems.map(String) : [again.error];
    const path = configPathOf(options);
    return { path, exists: true, ok: false, errors, warnings: [], differs: false, changed: [], restart: [] };
  }
  const { path, exists, warnings, settings: next } = again.value;
  // The values are left out, because they may be secret.
  const names = new Set([...Object.keys(running), ...Object.keys(next)] as (keyof Settings)[]);
  const changed = [...names]
    .filter((name) => !isDeepStrictEqual(running[name], next[name]))
    .map((name) => IN_FILE[name] ?? name)
    .sort();
  const { restart } = applicable(next, running);
  const differs = restart.length > 0;
  return { path, exists, ok: true, errors: [], warnings, differs, changed, restart, next };
}

/** Checks the file, and describes the running settings. */
export function checkAgain(options: LoadOptions, running: Settings) {
  return { ...compare(options, running), settings: describeSettings(running) };
}
