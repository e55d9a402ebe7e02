// Applies a changed configuration file to the running gateway.
// CR1: a file is applied as a whole or not at all. A file with problems, an empty one and a missing one
//      change nothing.
// CR2: settings that parts read only at the start keep their values (`AT_START`), and are named.

import { isDeepStrictEqual } from "node:util";
import { type Loaded, type LoadOptions, loadSettings } from "../config.ts";
import { isObject } from "../core/json.ts";
import type { LiveSettings } from "../core/shapes/settings/live.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { secretsOf } from "./describe.ts";
import { parseText, type Tree } from "./source.ts";

/** Settings that parts read only at the start, by their paths in `Settings`, with their paths in the file. */
const AT_START: Readonly<Record<string, string>> = {
  gateway: "gateway",
  store: "store",
  "session.scope": "session.scope",
  "session.mainKey": "session.mainKey",
  "session.dmScope": "session.dmScope",
  "nodes.enabled": "nodes.enabled",
  "logging.format": "logging.format",
  traces: "telemetry.traces",
};
/** Maximum number of changed paths that are named. */
const PATHS_MAX = 20;

export interface Reloaded {
  /** Paths in the file that changed, without their values. */
  readonly changed: readonly string[];
  /** Paths of the settings that differ from the file until the next start. */
  readonly restart: readonly string[];
}

/** The newest settings, without those that apply only at a start. */
export function applicable(next: Settings, running: Settings): { settings: Settings; restart: string[] } {
  const restart: string[] = [];
  const settings = { ...next } as unknown as Tree;
  for (const [at, inFile] of Object.entries(AT_START)) {
    const [section = "", name] = at.split(".");
    const of = (from: object): unknown => (from as Tree)[section];
    const inside = (from: object): unknown => (name === undefined ? of(from) : (of(from) as Tree)[name]);
    if (isDeepStrictEqual(inside(next), inside(running))) continue;
    restart.push(inFile);
    settings[section] =
      name === undefined ? of(running) : { ...(settings[section] as Tree), [name]: inside(running) };
  }
  return { settings: settings as unknown as Settings, restart };
}

/** Returns the paths at which two trees differ. Items of a list are compared by position. */
function changedPaths(before: unknown, after: unknown, path: Path = []): Path[] {
  if (isDeepStrictEqual(before, after)) return [];
  const isList = Array.isArray(before) && Array.isArray(after) && before.length === after.length;
  if (!isList && !(isObject(before) && isObject(after))) return [path];
  const [a, b] = [before as Tree, after as Tree];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return keys.flatMap((key) => changedPaths(a[key], b[key], [...path, isList ? Number(key) : key]));
}

function treeOf({ text, path }: Pick<Loaded, "text" | "path">): Tree {
  const parsed = parseText(text, path);
  return parsed.ok ? parsed.value : {};
}

interface ReloadParts {
  readonly options: LoadOptions;
  readonly live: LiveSettings;
  /** The file with which the gateway was started. */
  readonly loaded: Loaded;
  /** Called with the secrets of a file before it is applied. */
  readonly learn: (secrets: readonly string[]) => void;
}

/** Reads the file again. The result names the changes, or the problems of the file. */
export type Reload = () => Reloaded | { readonly problems: readonly string[] };

export function createReload({ options, live, loaded: first, learn }: ReloadParts): Reload {
  let applied = first;
  return () => {
    const read = loadSettings(options);
    if (!read.ok) {
      const { problems } = read.details ?? {};
      return { problems: Array.isArray(problems) ? problems.map(String) : [read.error] };
    }
    const next = read.value;
    if (next.exists ? next.text.trim() === "" : applied.exists)
      return { problems: [`${next.path} is ${next.exists ? "empty" : "missing"}`] };
    const { settings, restart } = applicable(next.settings, live.settings);
    learn(secretsOf(next.settings));
    live.replace(settings);
    const paths = changedPaths(treeOf(applied), treeOf(next)).map(showPath);
    applied = next;
    const more = paths.length > PATHS_MAX ? [`and ${paths.length - PATHS_MAX} more`] : [];
    return { changed: [...paths.slice(0, PATHS_MAX), ...more], restart };
  };
}
