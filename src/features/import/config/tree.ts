// Takes settings out of a configuration one by one, as the mapping uses them. The settings that remain have
// no counterpart.

import type { Tree } from "../../../config/source.ts";
import { isObject } from "../../../core/json.ts";
import { head } from "../../../core/text/cut.ts";
import { type Path, showPath } from "../../../core/text/value-path.ts";

const LEFT_MAX = 200;
const NAME_CHARS_MAX = 120;

/** Returns the object or list that holds the value at a path, or undefined if there is none. */
function parentOf(tree: Tree, path: Path): unknown {
  let parent: unknown = tree;
  for (const part of path.slice(0, -1)) {
    parent = (parent as Record<string | number, unknown> | undefined)?.[part];
    if (typeof parent !== "object" || parent === null) return undefined;
  }
  return parent;
}

/** Replaces the value of an object's property, if the object exists. */
export function replace(tree: Tree, path: Path, value: unknown): void {
  const [parent, last] = [parentOf(tree, path), path.at(-1)];
  if (isObject(parent) && last !== undefined) parent[last] = value;
}

/** Removes the value at a path. Returns false if there is none. */
export function drop(tree: Tree, path: Path): boolean {
  const parent = parentOf(tree, path);
  const last = path.at(-1);
  if (Array.isArray(parent) && typeof last === "number" && last < parent.length) {
    parent.splice(last, 1);
    return true;
  }
  if (!isObject(parent) || last === undefined || !Object.hasOwn(parent, last)) return false;
  delete parent[last];
  return true;
}

/**
 * Removes and returns the value at a path, or returns undefined if there is none. Removes parents that become
 * empty.
 */
export function take(tree: Tree, ...path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined || !Object.hasOwn(tree, name)) return undefined;
  if (rest.length === 0) {
    const value = tree[name];
    delete tree[name];
    return value;
  }
  const inner = tree[name];
  if (!isObject(inner)) return undefined;
  const value = take(inner, ...rest);
  if (Object.keys(inner).length === 0) delete tree[name];
  return value;
}

/** Like `take`, but only for an object. A value of another type stays in place, and is therefore reported. */
export function takeTree(tree: Tree, name: string): Tree {
  const inner = Object.hasOwn(tree, name) ? tree[name] : undefined;
  if (!isObject(inner)) return {};
  delete tree[name];
  return { ...inner };
}

/** Puts the unused rest of an object back into the tree, so that it is reported. */
export function putBack(tree: Tree, name: string, rest: Tree): void {
  if (Object.keys(rest).length > 0) tree[name] = rest;
}

/**
 * Removes undefined values, and objects that become empty. Keeps an empty `match`, which makes a rule match
 * everything.
 */
export function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (!isObject(value)) return value;
  const entries = Object.entries(value)
    .map(([key, inner]) => [key, compact(inner)] as const)
    .filter(([key, inner]) => {
      const isEmpty = isObject(inner) && Object.keys(inner).length === 0;
      return inner !== undefined && (!isEmpty || key === "match");
    });
  return Object.fromEntries(entries);
}

/** Reports the fields of an object that remain after the fields with a counterpart were taken. */
export function noteRest(rest: Tree, where: string, notes: string[]): void {
  for (const name of Object.keys(rest).slice(0, LEFT_MAX)) {
    notes.push(`${below(where, name)} has no counterpart here`);
  }
}

/**
 * Returns the paths of unused settings, at most two levels deep, without values. `leftOf`: further unused
 * settings, by path.
 */
export function leftIn(tree: Tree, leftOf: ReadonlyMap<string, Tree>): string[] {
  const paths = [...leftOf].flatMap(([where, rest]) => Object.keys(rest).map((name) => below(where, name)));
  for (const [key, value] of Object.entries(tree)) {
    const [where, names] = [showPath([key]), isObject(value) ? Object.keys(value) : []];
    paths.push(...(names.length === 0 ? [where] : names.map((name) => below(where, name))));
  }
  return paths.sort().slice(0, LEFT_MAX);
}

function below(where: string, name: string): string {
  const shown = showPath([name]);
  return head(`${where}${shown.startsWith("[") ? "" : "."}${shown}`, NAME_CHARS_MAX);
}
