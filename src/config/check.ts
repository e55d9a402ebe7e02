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

/** Reads the file and the environment as a start would, and compares them with the running settings. */
export function checkAgain(options: LoadOptions, running: Settings) {
  const settings = describeSettings(running);
  const again = loadSettings(options);
  if (!again.ok) {
    const { problems } = again.details ?? {};
    const errors = Array.isArray(problems) ? problems.map(String) : [again.error];
    const wrong = { exists: true, ok: false, errors, warnings: [], differs: false, changed: [] };
    return { path: configPathOf(options), ...wrong, settings };
  }
  const { path, exists, warnings } = again.value;
  const changed = changedParts(running, again.value.settings);
  return { path, exists, ok: true, errors: [], warnings, differs: changed.length > 0, changed, settings };
}
