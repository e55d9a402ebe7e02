// Formats problems of the configuration, with the path, the problem and a valid value.
// Secrets and values from the environment are never shown (I14).

import type { z } from "zod";
import { isObject } from "../core/json.ts";
import { nearestNames } from "../core/text/nearest.ts";
import { Redactor } from "../core/text/redact/redact.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { isSecretPath } from "./describe.ts";
import { configJsonSchema } from "./schema/schema.ts";
import { type Problem, type Tree, valueAt } from "./source.ts";

type Issue = z.core.$ZodIssue;

let ofTheFile: Tree | undefined;

/**
 * Returns the JSON Schema of the file. Builds it when the first problem is found, because that takes longer
 * than all other checks.
 */
function fileSchema(): Tree {
  ofTheFile ??= configJsonSchema();
  return ofTheFile;
}

/** Returns the JSON Schema of the value at `path`. */
export function schemaAt(path: Path): Tree {
  let schema: unknown = fileSchema();
  for (const part of path) {
    const next = valueAt(schema, ["properties", String(part)]) ?? valueAt(schema, ["additionalProperties"]);
    schema = typeof part === "number" ? valueAt(schema, ["items"]) : next;
  }
  return isObject(schema) ? schema : {};
}

/** Returns the paths in the configuration that have a key of this name. */
function placesOf(name: string, schema: unknown = fileSchema(), above = ""): string[] {
  const places: string[] = [];
  const properties = valueAt(schema, ["properties"]);
  for (const [key, inner] of Object.entries(isObject(properties) ? properties : {})) {
    const here = above === "" ? key : `${above}.${key}`;
    if (key === name) places.push(here);
    places.push(...placesOf(name, inner, here));
  }
  const items = valueAt(schema, ["items"]);
  if (isObject(items)) places.push(...placesOf(name, items, `${above}[]`));
  const others = valueAt(schema, ["additionalProperties"]);
  if (isObject(others)) places.push(...placesOf(name, others, `${above}.*`));
  return places;
}

function unknownKey(path: Path, key: string): Problem {
  const names = valueAt(schemaAt(path), ["propertyNames", "enum"]);
  if (Array.isArray(names)) return { path: [...path, key], text: `must be one of ${list(names)}` };
  const properties = schemaAt(path).properties;
  const valid = isObject(properties) ? Object.keys(properties) : [];
  const elsewhere = placesOf(key).slice(0, 3);
  if (elsewhere.length > 0) {
    return { path: [...path, key], text: `unknown key here; ${key} belongs at ${elsewhere.join(" or ")}` };
  }
  const [nearest] = nearestNames(key, valid, 1);
  const hint =
    nearest === undefined ? "none is valid here" : `the nearest valid key is ${showPath([...path, nearest])}`;
  return { path: [...path, key], text: `unknown key; ${hint}` };
}

/** Returns the problem of a path at which the schema allows no setting, with the nearest valid one. */
export function pathProblem(path: Path): Problem | undefined {
  for (const [at, part] of path.entries()) {
    const { properties, additionalProperties: named, items, anyOf } = schemaAt(path.slice(0, at));
    if (anyOf !== undefined || (typeof named === "object" && typeof part === "string")) continue;
    if (typeof part === "number" ? isObject(items) : isObject(properties) && Object.hasOwn(properties, part))
      continue;
    return unknownKey(path.slice(0, at), String(part));
  }
  return undefined;
}

const WORDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list, [ … ]",
  object: "an object, { … }",
  record: "an object, { … }",
};

/**
 * Describes an invalid value. Shows only the type if the value is long or `hidden` (a secret, or from a
 * variable).
 */
function showValue(value: unknown, hidden: boolean): string {
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  // JSON cannot represent Infinity and NaN.
  const shown = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
  if (hidden || shown.length > 60) return typeof value === "string" ? "a string" : `a ${typeof value}`;
  // The secrets are not known yet, because the configuration that contains them is still being read.
  return new Redactor([]).mask(shown);
}

const list = (values: readonly unknown[]): string => values.map(String).join(", ");

/**
 * Returns the problems for one issue of the schema check. `fromEnv`: paths whose text contained a variable.
 */
export function problemsOf(issue: Issue, tree: Tree, fromEnv: ReadonlySet<string>): Problem[] {
  const path = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  const value = valueAt(tree, path);
  const got = `got ${showValue(value, isSecretPath(path) || fromEnv.has(showPath(path)))}`;
  const problem = (text: string): Problem[] => [{ path, text }];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownKey(path, key));
    case "invalid_type": {
      const wanted = WORDS[issue.expected] ?? issue.expected;
      return problem(value === undefined ? `is missing; must be ${wanted}` : `must be ${wanted}, ${got}`);
    }
    case "invalid_value": {
      const wanted = `must be one of ${list(issue.values)}`;
      if (value === undefined) return problem(`is missing; ${wanted}`);
      // Don't quote an invalid text: it may be a secret under the wrong key.
      return problem(typeof value === "string" ? wanted : `${wanted}, ${got}`);
    }
    case "too_small":
      if (issue.origin === "string" && issue.minimum === 1) return problem("must not be empty");
      return problem(sizeText(issue.message, `at least ${issue.minimum}`, got));
    case "too_big":
      return problem(sizeText(issue.message, `at most ${issue.maximum}`, got));
    case "invalid_format":
      if (issue.format === "url") return problem(`must be an http or https address, ${got}`);
      return problem(`${issue.message}, ${got}`);
    case "invalid_key":
      return problem(`is not a valid name: it ${issue.issues.map((inner) => inner.message).join(", ")}`);
    default:
      return problem(`${issue.message}, ${got}`);
  }
}

/** Returns the message that the schema defines for this problem, else a general one. */
function sizeText(message: string, bound: string, got: string): string {
  return message.startsWith("must ") ? message : `must be ${bound}, ${got}`;
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
