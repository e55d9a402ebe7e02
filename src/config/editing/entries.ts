// Finds the entries of lists by their names: `agents.list.research` is the entry whose `id` is "research".
// EN1: the schema says which lists have named entries: those whose items have an `id`, else a `name`, else a
//      `token`.
// EN2: a new entry is added only as a whole, so that a typo in a longer path is an error.

import { isObject } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Path, showPath } from "../../core/text/value-path.ts";
import { MAIN_AGENT } from "../agents.ts";
import { isSecretPath } from "../describe.ts";
import { schemaAt } from "../problems.ts";
import { type Tree, valueAt } from "../source.ts";

const NAMING = ["id", "name", "token"];
const AGENTS = "agents.list";

/** A step of a path that names an entry of a list. */
interface Named {
  readonly list: Path;
  readonly key: string;
  readonly name: string;
  /** Position of the entry, or undefined if there is none. */
  readonly at: number | undefined;
}

const entriesAt = (tree: Tree, list: Path): readonly unknown[] => {
  const there = valueAt(tree, list);
  return Array.isArray(there) ? there : [];
};

/** Returns the key by which the entries of the list at a path are named (EN1). */
function namingKey(list: Path): string | undefined {
  const properties = valueAt(schemaAt(list), ["items", "properties"]);
  return isObject(properties) ? NAMING.find((key) => Object.hasOwn(properties, key)) : undefined;
}

function names(tree: Tree, list: Path, key: string): string[] {
  return entriesAt(tree, list).map((entry) => String(valueAt(entry, [key]) ?? ""));
}

/** Finds a named entry. A name in other letter case counts if no entry has the exact one. */
function findEntry(tree: Tree, list: Path, key: string, name: string): Result<Named> {
  const all = names(tree, list, key);
  const exact = all.filter((one) => one === name).length > 0;
  const fits = (one: string): boolean => (exact ? one === name : one.toLowerCase() === name.toLowerCase());
  const found = all.flatMap((one, at) => (fits(one) ? [at] : []));
  if (found.length <= 1) return ok({ list, key, name, at: found[0] });
  const positions = found.map((at) => showPath([...list, at])).join(" or ");
  const several = `${found.length} entries of ${showPath(list)} have this ${key}`;
  return fail("invalid_config", `${several}. Give a position: ${positions}.`);
}

function noEntry(tree: Tree, { list, key, name }: Named): Result<never> {
  const where = showPath(list);
  if (isSecretPath([...list, 0, key]))
    return fail("invalid_config", `${where} has no such entry. Give a position, like ${where}[0].`);
  const all = names(tree, list, key);
  const there = all.length === 0 ? "The list is empty." : `It has: ${all.join(", ")}.`;
  return fail("invalid_config", `${where} has no entry with ${key} ${JSON.stringify(name)}. ${there}`);
}

/** Replaces the names in a path by positions. Returns the last step as `entry` if it names an entry. */
function locate(tree: Tree, path: Path): Result<{ path: Path; entry?: Named }> {
  const found: (string | number)[] = [];
  for (const [index, part] of path.entries()) {
    const key = typeof part === "string" ? namingKey(found) : undefined;
    if (key === undefined) {
      found.push(part);
      continue;
    }
    const entry = findEntry(tree, [...found], key, String(part));
    if (!entry.ok) return entry;
    const isLast = index === path.length - 1;
    if (entry.value.at === undefined && !isLast) return noEntry(tree, entry.value);
    found.push(entry.value.at ?? entriesAt(tree, found).length);
    if (isLast) return ok({ path: found, entry: entry.value });
  }
  return ok({ path: found });
}

/** Returns the path with positions in place of the names of entries, which must exist. */
export function withPlaces(tree: Tree, path: Path): Result<Path> {
  const found = locate(tree, path);
  if (!found.ok) return found;
  const { entry } = found.value;
  return entry !== undefined && entry.at === undefined ? noEntry(tree, entry) : ok(found.value.path);
}

/**
 * Returns the settings that make the change: of a named entry, the value also gets the name. If no entry has
 * the name, the value is a new entry. The first new agent leaves the agent that the file implied.
 */
export function settingsOf(tree: Tree, path: Path, value: unknown): Result<[Path, unknown][]> {
  const found = locate(tree, path);
  if (!found.ok) return found;
  const { path: place, entry } = found.value;
  if (entry === undefined) return ok([[place, value]]);
  const { list, key, name, at } = entry;
  if (!isObject(value)) {
    if (at === undefined) return noEntry(tree, entry);
    return ok([[place, value]]);
  }
  const own = at === undefined ? name : names(tree, list, key)[at];
  const whole = { [key]: own, ...value };
  const isImplied = showPath(list) === AGENTS && entriesAt(tree, list).length === 0;
  if (!isImplied || name.toLowerCase() === MAIN_AGENT.id) return ok([[place, whole]]);
  return ok([
    [[...list, 0], MAIN_AGENT],
    [[...list, 1], whole],
  ]);
}
