// Reads the source's configuration file and its includes. Only files inside the source directory are
// included; others are reported and not read. The number of files, levels and bytes is limited.

import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { parseText, type Tree } from "../../../config/source.ts";
import { isObject } from "../../../core/json.ts";
import { isModest } from "../json-lines.ts";
import type { Remarks } from "../remarks.ts";
import { readWhole, type SourceDir, UNREAD_WORDS } from "../source-dir.ts";

/** Names of configuration files, in the order in which they are searched. */
const NAMES = ["openclaw.json", "clawdbot.json", "moltbot.json"];
const INCLUDE = "$include";
const FILE_BYTES_MAX = 2 * 1024 * 1024;
const VALUES_MAX = 200_000;
const FILES_MAX = 50;
const LEVELS_MAX = 10;

export interface SourceConfig {
  /** File name in the source directory. */
  readonly name: string;
  readonly tree: Tree;
}

interface Reading {
  readonly source: SourceDir;
  readonly remarks: Remarks;
  files: number;
}

async function readTree(reading: Reading, path: readonly string[]): Promise<Tree | undefined> {
  const name = path.join("/");
  const bytes = await readWhole(reading.source, path, FILE_BYTES_MAX);
  if (typeof bytes === "string") {
    if (bytes !== "absent" || reading.files > 0) {
      reading.remarks.note(`configuration files that were not read: ${UNREAD_WORDS[bytes]}`, name);
    }
    return undefined;
  }
  const parsed = isModest(bytes, VALUES_MAX) ? parseText(bytes.toString("utf8"), name) : undefined;
  if (parsed?.ok === true) return parsed.value;
  reading.remarks.note("configuration files that can't be read as JSON5", name);
  return undefined;
}

/** Merges two values: concatenates lists, merges objects key by key; otherwise the later value wins. */
function merge(below: unknown, above: unknown): unknown {
  if (Array.isArray(below) && Array.isArray(above)) return [...below, ...above];
  if (!isObject(below) || !isObject(above)) return above;
  const merged = new Map<string, unknown>(Object.entries(below));
  for (const [key, value] of Object.entries(above)) {
    merged.set(key, merged.has(key) ? merge(merged.get(key), value) : value);
  }
  return Object.fromEntries(merged);
}

async function readIncluded(
  reading: Reading,
  value: unknown,
  from: readonly string[],
  level: number,
): Promise<unknown> {
  const names = (Array.isArray(value) ? value : [value]).filter((name) => typeof name === "string");
  let merged: unknown = {};
  for (const name of names) {
    const { root } = reading.source;
    const whole = isAbsolute(name) ? name : join(root, ...from.slice(0, -1), name);
    const inside = relative(root, whole);
    const path =
      inside === "" || inside.startsWith("..") || isAbsolute(inside) ? undefined : inside.split(sep);
    if (path === undefined || level >= LEVELS_MAX || reading.files >= FILES_MAX) {
      const why = path === undefined ? "outside of the directory" : "too many, or in a circle";
      reading.remarks.note(
        `included configuration files that were not read: ${why}`,
        basename(dirname(name)) + sep + basename(name),
      );
      continue;
    }
    reading.files += 1;
    const tree = await readTree(reading, path);
    if (tree !== undefined) merged = merge(merged, await resolve(reading, tree, path, level + 1));
  }
  return merged;
}

/** Replaces the includes in a value by their contents. */
async function resolve(
  reading: Reading,
  value: unknown,
  from: readonly string[],
  level: number,
): Promise<unknown> {
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) items.push(await resolve(reading, item, from, level));
    return items;
  }
  if (!isObject(value)) return value;
  const own: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    if (key !== INCLUDE && key !== "__proto__") own.push([key, await resolve(reading, inner, from, level)]);
  }
  const rest = Object.fromEntries(own);
  if (!Object.hasOwn(value, INCLUDE)) return rest;
  return merge(await readIncluded(reading, value[INCLUDE], from, level), rest);
}

/** Returns the source's whole configuration, or undefined if there is no readable one. */
export async function readSourceConfig(
  source: SourceDir,
  remarks: Remarks,
): Promise<SourceConfig | undefined> {
  for (const name of NAMES) {
    const reading: Reading = { source, remarks, files: 0 };
    const tree = await readTree(reading, [name]);
    if (tree === undefined) continue;
    const whole = await resolve(reading, tree, [name], 0);
    return { name, tree: isObject(whole) ? whole : {} };
  }
  return undefined;
}
