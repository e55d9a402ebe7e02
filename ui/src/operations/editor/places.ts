// Finds settings and problems in the edited text.

import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { type Json5Place, json5Places } from "../../../../src/core/text/json5-places.ts";

export type Setting = PayloadOf<"config.schema">["settings"][number];
type Path = Json5Place["path"];

/** Returns a path as the gateway's problems write it. */
function showPath(path: Path): string {
  const shown = path.map((part, index) => {
    if (typeof part === "number") return `[${part}]`;
    if (!/^[\w$-]+$/.test(part)) return `[${JSON.stringify(part)}]`;
    return index === 0 ? part : `.${part}`;
  });
  return shown.join("");
}

/** Returns the path of a setting in the list of settings, for a path in the text. */
export function settingPath(path: Path, settings: readonly Setting[]): string {
  const known = (start: string): boolean =>
    settings.some(
      (one) => one.path === start || one.path.startsWith(`${start}.`) || one.path.startsWith(`${start}[]`),
    );
  let at = "";
  for (const part of path) {
    const below = at === "" ? String(part) : `${at}.${part}`;
    if (typeof part === "number") at = `${at}[]`;
    else at = known(below) || !known(`${at}.<name>`) ? below : `${at}.<name>`;
  }
  return at;
}

/** Returns the settings directly in an object or in the items of a list. */
export function settingsIn(path: string, settings: readonly Setting[]): Setting[] {
  const start = path === "" ? "" : `${path}.`;
  return settings.filter((one) => one.path.startsWith(start) && !/[.]/.test(one.path.slice(start.length)));
}

/** Returns the names of the objects in an object that have settings of their own. */
export function groupsIn(path: string, settings: readonly Setting[]): string[] {
  const start = path === "" ? "" : `${path}.`;
  const names = settings.flatMap((one) => {
    const [name, ...rest] = one.path.startsWith(start) ? one.path.slice(start.length).split(".") : [];
    return name === undefined || rest.length === 0 ? [] : [name.replace("[]", "")];
  });
  return [...new Set(names)];
}

/** Returns the number of the line with this problem, or undefined if the problem has no place. */
function lineOf(problem: string, text: string, places: readonly Json5Place[]): number | undefined {
  const [, told] = /^line (\d+):/.exec(problem) ?? / at (\d+):\d+$/.exec(problem) ?? [];
  if (told !== undefined) return Number(told);
  let found: Json5Place | undefined;
  let longest = 0;
  for (const place of places) {
    const shown = showPath(place.path);
    if (place.kind === "comment" || shown.length <= longest || !problem.startsWith(shown)) continue;
    if (!/[.:[]/.test(problem.charAt(shown.length))) continue;
    found = place;
    longest = shown.length;
  }
  return found === undefined ? undefined : text.slice(0, found.start).split("\n").length;
}

export interface PlacedProblem {
  readonly text: string;
  readonly line: number | undefined;
}

export function placedProblems(problems: readonly string[], text: string): PlacedProblem[] {
  const places = json5Places(text);
  return problems.map((problem) => ({ text: problem, line: lineOf(problem, text, places) }));
}
