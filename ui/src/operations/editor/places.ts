// Finds settings and problems in the edited text.

import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { json5Places } from "../../../../src/core/text/json5-places.ts";
import { type Path, showPath } from "../../../../src/core/text/value-path.ts";

export type Setting = PayloadOf<"config.schema">["settings"][number];

/** Returns the path in the list of settings that corresponds to a path in the text. */
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

/** Returns the settings that are directly in an object, or in the items of a list. */
export function settingsIn(path: string, settings: readonly Setting[]): Setting[] {
  const start = path === "" ? "" : `${path}.`;
  return settings.filter((one) => one.path.startsWith(start) && !/[.]/.test(one.path.slice(start.length)));
}

/** Returns the names of the objects in an object that contain further settings. */
export function groupsIn(path: string, settings: readonly Setting[]): string[] {
  const start = path === "" ? "" : `${path}.`;
  const names = settings.flatMap((one) => {
    const [name, ...rest] = one.path.startsWith(start) ? one.path.slice(start.length).split(".") : [];
    return name === undefined || rest.length === 0 ? [] : [name.replace("[]", "")];
  });
  return [...new Set(names)];
}

/** Returns the line of the first place of each setting in the text, by the setting's path. */
export function settingLines(text: string, settings: readonly Setting[]): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  for (const { kind, path, start } of json5Places(text)) {
    const setting = kind === "comment" ? "" : settingPath(path, settings);
    if (!lines.has(setting)) lines.set(setting, text.slice(0, start).split("\n").length);
  }
  return lines;
}

export interface PlacedProblem {
  readonly text: string;
  readonly line: number | undefined;
}

export function placedProblems(problems: readonly string[], text: string): PlacedProblem[] {
  if (problems.length === 0) return [];
  const starts = new Map<string, number>();
  for (const { kind, path, start } of json5Places(text)) {
    const shown = showPath(path);
    if (kind !== "comment" && shown !== "" && !starts.has(shown)) starts.set(shown, start);
  }
  const lineOf = (problem: string): number | undefined => {
    const [, given] = /^line (\d+):/.exec(problem) ?? / at (\d+):\d+$/.exec(problem) ?? [];
    if (given !== undefined) return Number(given);
    for (let end = problem.length; end > 0; end -= 1) {
      const start = /[.:[]/.test(problem.charAt(end)) ? starts.get(problem.slice(0, end)) : undefined;
      if (start !== undefined) return text.slice(0, start).split("\n").length;
    }
    return undefined;
  };
  return problems.map((problem) => ({ text: problem, line: lineOf(problem) }));
}
