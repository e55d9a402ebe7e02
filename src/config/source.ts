// Parses the text of a configuration file into a plain tree. Supports JSON5, earlier names of keys, and
// `${NAME}`. Problems and warnings show the current name of a key.

import JSON5 from "json5";
import { isObject } from "../core/json.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { json5Places } from "../core/text/json5-places.ts";
import { type Path, showPath } from "../core/text/value-path.ts";

export type Tree = Record<string, unknown>;

/** The environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A problem and its path. `text` is the rest of the sentence after the path. */
export interface Problem {
  readonly path: Path;
  readonly text: string;
}

/**
 * Maximum depth of nested values. It is far above that of any setting, and keeps recursive code from
 * exhausting the stack.
 */
const DEPTH_MAX = 64;

/** Parses a file's text. A text of only white space and comments counts as an empty file. */
export function parseText(text: string, file: string): Result<Tree> {
  const body = text.replace(/^\uFEFF/, "");
  let tree: unknown;
  try {
    tree = JSON5.parse(body);
  } catch (error) {
    tree = emptyTree(body);
    const reason = (error as Error).message.replace(/^JSON5: /, "");
    if (tree === undefined) return fail("invalid_config", `${file} is not valid JSON5: ${reason}`);
  }
  if (!isObject(tree)) return fail("invalid_config", `${file} must contain one object, { … }`);
  if (!isWithin(tree, DEPTH_MAX))
    return fail("invalid_config", `${file} is nested more than ${DEPTH_MAX} levels deep`);
  const twice = repeatedKey(body);
  return twice === undefined ? ok(tree) : fail("invalid_config", `${file} ${twice}`);
}

/** Describes the first key that an object has twice. JSON5 would silently keep its last value only. */
function repeatedKey(body: string): string | undefined {
  const starts = new Map<string, number>();
  const lineAt = (at: number): number => body.slice(0, at).split("\n").length;
  for (const { kind, path, start } of json5Places(body)) {
    if (kind !== "key") continue;
    const name = showPath(path);
    const first = starts.get(name);
    if (first !== undefined)
      return `has ${name} twice, in the lines ${lineAt(first)} and ${lineAt(start)}: put both into one`;
    starts.set(name, start);
  }
  return undefined;
}

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isWithin(inner, depth - 1));
}

function emptyTree(body: string): Tree | undefined {
  try {
    return JSON5.parse(`${body}\n{}`) as Tree;
  } catch {
    return undefined;
  }
}

/** Earlier paths of keys, each with the current path. More specific paths come first. */
const MOVED: readonly (readonly [Path, Path])[] = [
  [
    ["agent", "subagents", "tools"],
    ["tools", "subagents", "tools"],
  ],
  [
    ["agent", "sandbox", "tools"],
    ["tools", "sandbox", "tools"],
  ],
  [["agent"], ["agents", "defaults"]],
  [
    ["routing", "agentToAgent"],
    ["tools", "agentToAgent"],
  ],
];

/**
 * Defaults that a release has changed. A removed setting is here, too, without `now`. In a path, `*` stands
 * for each name that the file has there. tests/conversion compares all settings with those of the release
 * before.
 */
export interface ChangedDefault {
  readonly since: string;
  readonly path: Path;
  readonly before: unknown;
  readonly now?: unknown;
}
// For 0.1, these are the values that CHANGELOG.md names. Most were fixed there: the settings came later.
export const CHANGED_DEFAULTS: readonly ChangedDefault[] = [
  { since: "0.2.0", path: ["agents", "defaults", "maxModelCalls"], before: 100, now: 400 },
  { since: "0.2.0", path: ["models", "providers", "*", "idleTimeoutSeconds"], before: 600, now: 90 },
  { since: "0.2.0", path: ["models", "providers", "*", "maxRetries"], before: 4, now: 3 },
  // Commands in a sandbox still need no approval.
  { since: "0.2.0", path: ["tools", "exec", "approval"], before: "never", now: "risky" },
  { since: "0.2.0", path: ["store", "retention"], before: null, now: 90 },
];

export function valueAt(tree: unknown, path: Path): unknown {
  let value = tree;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

/** Removes a key, and every parent that becomes empty. */
function takeOut(tree: Tree, path: Path): void {
  const parent = valueAt(tree, path.slice(0, -1));
  if (!isObject(parent)) return;
  delete parent[String(path.at(-1))];
  if (path.length > 1 && Object.keys(parent).length === 0) takeOut(tree, path.slice(0, -1));
}

/** Sets `value` at `path` unless a value exists there. Two objects are merged key by key. */
function putIn(tree: Tree, path: Path, value: unknown, from: Path, problems: Problem[]): void {
  let parent = tree;
  for (const part of path.slice(0, -1)) {
    if (!Object.hasOwn(parent, part)) parent[part] = {};
    const next = parent[part];
    // Ignore a wrong type on the path: the schema check reports it.
    if (!isObject(next)) return;
    parent = next;
  }
  const name = String(path.at(-1));
  const there = Object.hasOwn(parent, name) ? parent[name] : undefined;
  if (there === undefined) {
    // Uses defineProperty, because assigning to `__proto__` creates no key. The key must exist to be reported
    // as unknown.
    Object.defineProperty(parent, name, { value, configurable: true, enumerable: true, writable: true });
  } else if (isObject(there) && isObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      putIn(tree, [...path, key], inner, [...from, key], problems);
    }
  } else {
    problems.push({
      path: from,
      text: `is an earlier spelling of ${showPath(path)}, and both are set; remove it`,
    });
  }
}

/** Moves keys from their earlier paths to their current ones, in place. Returns a warning for each key. */
export function readEarlierSpellings(tree: Tree, problems: Problem[]): string[] {
  const warnings: string[] = [];
  const note = (from: Path, to: string) =>
    warnings.push(`${showPath(from)} is an earlier spelling: write ${to} instead`);
  for (const [from, to] of MOVED) {
    const value = valueAt(tree, from);
    if (!isObject(value)) continue;
    takeOut(tree, from);
    for (const key of Object.keys(value)) note([...from, key], showPath([...to, key]));
    putIn(tree, to, value, from, problems);
  }
  const rules = valueAt(tree, ["session", "sendPolicy", "rules"]);
  if (!Array.isArray(rules)) return warnings;
  for (const [index, rule] of rules.entries()) {
    const match = valueAt(rule, ["match"]);
    const at: Path = ["session", "sendPolicy", "rules", index, "match"];
    if (!isObject(match)) continue;
    for (const earlier of ["provider", "surface"]) {
      if (!Object.hasOwn(match, earlier)) continue;
      const value = match[earlier];
      delete match[earlier];
      note([...at, earlier], "channel");
      if (match.channel === undefined) match.channel = value;
      else
        problems.push({
          path: [...at, earlier],
          text: "is an earlier spelling of channel, and both are set",
        });
    }
    if (match.chatType === "channel") {
      match.chatType = "room";
      note([...at, "chatType"], 'chatType "room"');
    }
  }
  return warnings;
}

export interface Substituted {
  readonly tree: Tree;
  /** Paths (`showPath`) of the strings that contained a variable. */
  readonly paths: ReadonlySet<string>;
  /** The inserted variables with their values. */
  readonly values: ReadonlyMap<string, string>;
}

/** Returns the text with `by` in place of each reference to a variable, unless it has a fallback text. */
export function withoutReferences(text: string, by = ""): string {
  return text.replaceAll(/\$\{\w+(:-)?\}/g, () => by);
}

/** Replaces `${NAME}` and `${NAME:-fallback}` in every string. `$${` is an escaped `${`. */
export function substitute(tree: Tree, env: Env, problems: Problem[]): Substituted {
  const paths = new Set<string>();
  const values = new Map<string, string>();
  const walk = (value: unknown, path: Path): unknown => {
    if (typeof value === "string") {
      if (!value.includes("${")) return value;
      paths.add(showPath(path));
      return fillIn(value, env, values, (text) => problems.push({ path, text }));
    }
    if (Array.isArray(value)) return value.map((inner, index) => walk(inner, [...path, index]));
    if (!isObject(value)) return value;
    // Reject a key `__proto__`: it would be lost when the object is copied.
    if (Object.hasOwn(value, "__proto__"))
      problems.push({ path: [...path, "__proto__"], text: "unknown key" });
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== "__proto__")
        .map(([key, inner]) => [key, walk(inner, [...path, key])]),
    );
  };
  return { tree: walk(tree, []) as Tree, paths, values };
}

function fillIn(text: string, env: Env, values: Map<string, string>, report: (text: string) => void): string {
  return text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (whole, inside: string | undefined, end: string) => {
    if (inside === undefined) return "${";
    const parts = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inside);
    if (end === "" || parts === null) {
      report(`has a "\${" without a valid variable name; write "$\${" for a literal "\${"`);
      return whole;
    }
    const [, name = "", fallback] = parts;
    if (/\$\{\w/.test(fallback ?? ""))
      report(`has a variable in the fallback of ${name}, which is not supported`);
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value !== undefined) values.set(name, value);
    if (fallback !== undefined) return value || fallback;
    if (value === undefined) report(`needs the environment variable ${name}, which is not set`);
    return value ?? "";
  });
}
