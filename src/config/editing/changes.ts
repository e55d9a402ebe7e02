// Changes single settings in the text of a configuration file.

import type { ConfigChange } from "../../contract/methods/configuration.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Path, parsePath } from "../../core/text/value-path.ts";
import { pathProblem, tell } from "../problems.ts";
import { parseText, valueAt } from "../source.ts";
import { settingsOf, withPlaces } from "./entries.ts";
import { changeAt } from "./text.ts";

function applyOne(text: string, change: ConfigChange, file: string): Result<string> {
  const named = parsePath(change.path);
  if (named === undefined || "value" in change === (change.unset === true))
    return fail("invalid_argument", `the change of ${JSON.stringify(change.path)} is not valid`, {
      hint: "Give a path like agents.list.main.model, and either a value or unset: true.",
    });
  const before = parseText(text, file);
  if (!before.ok) return before;
  if (change.unset === true) {
    const place = withPlaces(before.value, named);
    return place.ok ? applyAt(text, place.value, { unset: true }, file) : place;
  }
  const settings = settingsOf(before.value, named, change.value);
  if (!settings.ok) return settings;
  let result: Result<string> = ok(text);
  for (const [path, value] of settings.value)
    if (result.ok) result = applyAt(result.value, path, { value }, file);
  return result;
}

function applyAt(text: string, path: Path, change: Omit<ConfigChange, "path">, file: string): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const isSet = valueAt(before.value, path) !== undefined;
  const wrong = isSet ? undefined : pathProblem(path);
  return wrong === undefined
    ? changeAt(text, path, change, file)
    : fail("invalid_config", tell([wrong]).join());
}

/** Returns the text with all changes, in their order. */
export function changeText(text: string, changes: readonly ConfigChange[], file: string): Result<string> {
  let result: Result<string> = ok(text);
  for (const change of changes) if (result.ok) result = applyOne(result.value, change, file);
  return result;
}
