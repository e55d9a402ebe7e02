// Owns what is published in the configuration but has no effect in this version: told once.

import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { NOT_USED_YET } from "./schema.ts";
import { isTree, type Path, showPath, type Tree, valueAt } from "./source.ts";

/** One warning for all keys that are set and not used. A section that only repeats its defaults is fine. */
export function notUsedWarnings(tree: Tree): string[] {
  const set = Object.entries(NOT_USED_YET).flatMap(([pattern, section]) =>
    matches(tree, pattern.split(".")).filter(
      (path) => !isDeepStrictEqual(withoutNulls(section, valueAt(tree, path)), withoutNulls(section, {})),
    ),
  );
  return set.length === 0 ? [] : [`not used by this version: ${set.map(showPath).join(", ")}`];
}

/** A checked section; null stands for "not set". */
function withoutNulls(section: z.ZodType, value: unknown): unknown {
  const { data } = section.safeParse(value);
  return isTree(data) ? Object.fromEntries(Object.entries(data).filter(([, inner]) => inner != null)) : data;
}

/** The paths of a tree that fit a pattern of names and `*`. */
function matches(value: unknown, pattern: readonly string[], above: Path = []): Path[] {
  const [part, ...rest] = pattern;
  if (part === undefined) return [above];
  if (Array.isArray(value)) return value.flatMap((inner, index) => matches(inner, rest, [...above, index]));
  if (!isTree(value)) return [];
  return Object.keys(value)
    .filter((key) => part === "*" || key === part)
    .flatMap((key) => matches(value[key], rest, [...above, key]));
}
