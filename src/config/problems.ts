// Formats problems of the configuration, with the path, the problem and a valid value.
// Secrets and values from the environment are never shown (I14).

import { nearestNames } from "../core/text/nearest.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { configSchema } from "./schema/schema.ts";
import type { Schema } from "./schema/setting.ts";
import type { Problem } from "./source.ts";

/** Returns the schema of the value at `path`. */
export function schemaAt(path: Path): Schema {
  let schema: Schema = configSchema;
  for (const part of path) {
    const { properties = {}, additionalProperties: named, items } = schema;
    const next = Object.hasOwn(properties, part) ? properties[part] : typeof named === "object" ? named : {};
    schema = (typeof part === "number" ? items : next) ?? {};
  }
  return schema;
}

/** Returns the paths in the configuration that have a key of this name. */
function placesOf(name: string, schema: Schema = configSchema, above = ""): string[] {
  const { properties = {}, items = {}, additionalProperties: named } = schema;
  const keys = Object.entries(properties).flatMap(([key, inner]) => {
    const here = above === "" ? key : `${above}.${key}`;
    return [...(key === name ? [here] : []), ...placesOf(name, inner, here)];
  });
  const inItems = items.properties === undefined ? [] : placesOf(name, items, `${above}[]`);
  return [...keys, ...inItems, ...(typeof named === "object" ? placesOf(name, named, `${above}.*`) : [])];
}

/** Keys by their names in the settings of other programs: `input: ["text", "image"]` of a model. */
const OTHER_NAMES: Readonly<Record<string, string>> = { input: "images" };

/** Returns the problem of a key that does not exist at `path`, with the nearest one or its place. */
export function unknownKey(path: Path, key: string): Problem {
  const { properties = {}, propertyNames } = schemaAt(path);
  const problem = (text: string): Problem => ({ path: [...path, key], text });
  if (propertyNames?.enum !== undefined) return problem(`must be one of ${propertyNames.enum.join(", ")}`);
  const meant = Object.keys(properties).find((name) => name === OTHER_NAMES[key]);
  const elsewhere = meant === undefined ? placesOf(key).slice(0, 3) : [];
  if (elsewhere.length > 0) return problem(`unknown key here; ${key} belongs at ${elsewhere.join(" or ")}`);
  const nearest = meant ?? nearestNames(key, Object.keys(properties), 1)[0];
  if (nearest === undefined) return problem("unknown key; none is valid here");
  return problem(`unknown key; the nearest valid key is ${showPath([...path, nearest])}`);
}

/** Returns the problem of a path at which the schema allows no setting, with the nearest valid one. */
export function pathProblem(path: Path): Problem | undefined {
  for (const [at, part] of path.entries()) {
    const { properties = {}, additionalProperties: named, items } = schemaAt(path.slice(0, at));
    const isNamed = Object.hasOwn(properties, part) || typeof named === "object";
    if (typeof part === "number" ? items === undefined : !isNamed)
      return unknownKey(path.slice(0, at), String(part));
  }
  return undefined;
}

/** Minimum length of a hidden value; shorter values could be ordinary words. */
const HIDDEN_CHARS_MIN = 6;

/**
 * Returns a function that replaces each of the values in a text, in upper or lower case. If several begin at
 * the same character, the longest one is replaced.
 */
export function replacing(
  values: Iterable<readonly [value: string, shown: string]>,
): (text: string) => string {
  const longestFirst = [...values].sort(([a], [b]) => b.length - a.length);
  if (longestFirst.length === 0) return (text) => text;
  const escaped = longestFirst.map(([value]) => `(${value.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")})`);
  const any = new RegExp(escaped.join("|"), "giu");
  return (text) =>
    text.replace(any, (found, ...groups: unknown[]) => {
      return longestFirst[groups.findIndex((group) => group !== undefined)]?.[1] ?? found;
    });
}

/** Replaces the inserted value of each variable by the variable's name. */
export function withoutValues(
  problems: readonly Problem[],
  values: ReadonlyMap<string, string>,
): readonly Problem[] {
  const hidden = [...values].filter(([, value]) => value.length >= HIDDEN_CHARS_MIN);
  const hide = replacing(hidden.map(([name, value]) => [value, `\${${name}}`]));
  return problems.map(({ path, text }) => ({ path, text: hide(text) }));
}

/** Returns one line for each problem, in the order of the file's sections. */
export function tell(problems: readonly Problem[]): string[] {
  const lines = problems.map(({ path, text }) => (path.length === 0 ? text : `${showPath(path)}: ${text}`));
  return [...new Set(lines)];
}
