// Applies a changed configuration file to the running gateway.
// CR1: a file is applied as a whole or not at all. A file with problems and a missing one change nothing. An
//      empty one has every default, as at a start.
// CR2: settings that parts read only at the start keep their values (`AT_START`), and are named.

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type Loaded, type LoadOptions, loadSettings } from "../config.ts";
import { canonicalJson, fieldsOf, isObject } from "../core/json.ts";
import type { LiveSettings } from "../core/shapes/settings/live.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { secretsOf } from "./describe.ts";
import { configSchema } from "./schema/schema.ts";
import { FACTS, type Schema } from "./schema/setting.ts";
import { parseText, type Tree, valueAt } from "./source.ts";

/** Returns the paths in the file of the settings that parts read only at the start. */
function pathsAtStart({ properties = {} }: Schema, above = ""): string[] {
  return Object.entries(properties).flatMap(([name, inner]) =>
    inner[FACTS]?.restart === true ? [`${above}${name}`] : pathsAtStart(inner, `${above}${name}.`),
  );
}

const AT_START = pathsAtStart(configSchema);
/** Paths in `Settings` that differ from those in the file. */
const IN_SETTINGS: Readonly<Record<string, string>> = { "telemetry.traces": "traces" };
/** The address of one process. Processes that share a store differ in it. */
const OWN_ADDRESS = ["gateway.host", "gateway.port"];
const REVISION_CHARS = 12;
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
  for (const inFile of AT_START) {
    const [section = "", name] = (IN_SETTINGS[inFile] ?? inFile).split(".");
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

/** Returns a tree with another value at `path`, which names a section or a setting in one. */
function treeWith(tree: Tree, path: string, value: unknown): Tree {
  const [section = "", name] = path.split(".");
  const inside = name === undefined ? value : { ...fieldsOf(tree[section]), [name]: value };
  const isLeft = !isObject(inside) || Object.values(inside).some((one) => one !== undefined);
  return { ...tree, [section]: isLeft ? inside : undefined };
}

/** Returns the revision of the file `applied`. The settings that apply only at a start come from `first`. */
function revisionOf(applied: Loaded, first: Loaded, hide: (tree: Tree) => unknown): string {
  const [newest, started] = [treeOf(applied), treeOf(first)];
  const at = (tree: Tree, path: string): unknown => valueAt(tree, path.split("."));
  const kept = AT_START.filter((path) => at(started, path) !== at(newest, path));
  const running = kept.reduce((tree, path) => treeWith(tree, path, at(started, path)), newest);
  const shared = OWN_ADDRESS.reduce((tree, path) => treeWith(tree, path, undefined), running);
  return createHash("sha256")
    .update(canonicalJson(hide(shared)))
    .digest("hex")
    .slice(0, REVISION_CHARS);
}

interface ReloadParts {
  readonly options: LoadOptions;
  readonly live: LiveSettings;
  /** The file with which the gateway was started. */
  readonly loaded: Loaded;
  /** Called with the secrets of a file before it is applied. */
  readonly learn: (secrets: readonly string[]) => void;
  /** Hides the secrets in a file's content. */
  readonly hide: (tree: Tree) => unknown;
}

export type Reload = ReturnType<typeof createReload>;

export function createReload({ options, live, loaded: first, learn, hide }: ReloadParts) {
  let applied = first;
  let revision: string | undefined;
  /** Reads the file again. The result names the changes, or the problems of the file. */
  const read = (): Reloaded | { readonly problems: readonly string[] } => {
    const read = loadSettings(options);
    if (!read.ok) {
      const { problems } = read.details ?? {};
      return { problems: Array.isArray(problems) ? problems.map(String) : [read.error] };
    }
    const next = read.value;
    if (applied.exists && !next.exists) return { problems: [`${next.path} is missing`] };
    const { settings, restart } = applicable(next.settings, live.settings);
    learn(secretsOf(next.settings));
    live.replace(settings);
    const paths = changedPaths(treeOf(applied), treeOf(next)).map(showPath);
    applied = next;
    revision = undefined;
    const more = paths.length > PATHS_MAX ? [`and ${paths.length - PATHS_MAX} more`] : [];
    return { changed: [...paths.slice(0, PATHS_MAX), ...more], restart };
  };
  return {
    read,
    /**
     * Returns a digest of the configuration that this process runs. Two processes with the same digest run
     * the same configuration, apart from `gateway.host`, `gateway.port`, secrets, variables, comments and
     * spacing.
     */
    revision: (): string => {
      revision ??= revisionOf(applied, first, hide);
      return revision;
    },
  };
}
