// Loads the configuration: finds the file, reads it and the environment once, checks everything, freezes the
// result.
// With an invalid configuration nothing starts: all problems are reported together, each with its path and a
// valid value.
// Nothing else reads the environment. G5: a secret is never shown.
// The schema of the file is in config/schema/schema.ts; the settings for all parts are in
// core/shapes/settings/settings.ts.

import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve, sep } from "node:path";
import { agentSourcesOf } from "./config/agent-sources.ts";
import { agentsOf, checkAgentModels, checkAgents } from "./config/agents.ts";
import { channelsOf } from "./config/channels.ts";
import { isSecretPath } from "./config/describe.ts";
import { loggingOf, postgresOf, tracesOf } from "./config/environment.ts";
import { octalMode, othersReach } from "./config/file-mode.ts";
import { checkMcp, mcpOf } from "./config/mcp.ts";
import { tell, withoutValues } from "./config/problems.ts";
import { firstModel, keyWarnings, providersOf } from "./config/providers.ts";
import { readTree } from "./config/read.ts";
import type { ConfigFile } from "./config/schema/schema.ts";
import {
  type Env,
  type Problem,
  parseText,
  readEarlierSpellings,
  substitute,
  type Tree,
  withoutReferences,
} from "./config/source.ts";
import { isObject } from "./core/json.ts";
import { optional } from "./core/optional.ts";
import { isPeerAgentId } from "./core/peer.ts";
import { type Failure, fail, ok, type Result } from "./core/shapes/errors.ts";
import {
  type AddedSettings,
  agentProblem,
  type SearchSettings,
  type Settings,
  type TokenSettings,
} from "./core/shapes/settings/settings.ts";
import type { AgentSources } from "./core/shapes/settings/sources.ts";
import { matchesPattern } from "./core/text/pattern.ts";
import type { Path } from "./core/text/value-path.ts";
import { added, FEATURES } from "./features.ts";

const FILE_MAX_BYTES = 1024 * 1024;

export interface LoadOptions {
  /** The path given with `--config`; it overrides PARLEY_CONFIG. */
  readonly configPath?: string;
  readonly env: Env;
  /** Replaces `~`. */
  readonly home: string;
  /** Values from the command line; they override the file. */
  readonly overrides?: { readonly host?: string; readonly port?: number; readonly storeDir?: string };
}

export interface Loaded {
  readonly settings: Settings;
  /** Warnings, which do not prevent the start. */
  readonly warnings: readonly string[];
  /** Path of the configuration file, even if the file does not exist. */
  readonly path: string;
  readonly exists: boolean;
  /** The file's text. Empty if the file does not exist. */
  readonly text: string;
  readonly agentSources: AgentSources;
}

/** Returns the environment and home folder of this process, for `loadSettings`. */
export function processEnvironment(): { env: Env; home: string } {
  return { env: { ...process.env }, home: homedir() };
}

/**
 * Returns the complete settings from all sources, or all problems. If `text` is given, it is used instead of
 * the file's content.
 */
export function loadSettings(options: LoadOptions, text?: string): Result<Loaded> {
  const path = configPathOf(options);
  const file = text === undefined ? readFile(path, namedConfig(options) !== undefined) : ok(text);
  if (!file.ok) return file;
  const read = readSettings(file.value ?? "", path, options);
  if (!read.ok) return read;
  const { settings, problems, warnings, literals } = read.value;
  if (settings === undefined || problems.length > 0) return refuse(problems, path);
  warnings.push(...(file.value === undefined ? nameWarnings(path) : modeWarnings(path, literals)));
  const exists = file.value !== undefined;
  const whole = { path, exists, text: file.value ?? "", agentSources: agentSourcesOf(literals) };
  return ok({ settings: freeze(settings), warnings, ...whole });
}

/**
 * Returns the settings with which a program on this machine finds the gateway although the file has problems:
 * those of the sections `gateway` and `store`. If the file cannot be parsed, or these sections have problems,
 * returns the defaults, but only for the usual file: another file may be that of another gateway.
 */
export function settingsToConnect(options: LoadOptions): Settings | undefined {
  const path = configPathOf(options);
  const isNamed = namedConfig(options) !== undefined;
  const file = readFile(path, isNamed);
  if (!file.ok) return undefined;
  const parsed = parseText(file.value ?? "", path);
  const { gateway, store } = parsed.ok ? parsed.value : {};
  const texts = [...(parsed.ok ? [JSON.stringify({ gateway, store })] : []), ...(isNamed ? [] : [""])];
  for (const text of texts) {
    const loaded = loadSettings(options, text);
    if (loaded.ok) return loaded.value.settings;
  }
  return undefined;
}

interface Reading {
  /** The settings. Absent if the file has a problem. */
  readonly settings?: Settings;
  readonly problems: readonly Problem[];
  readonly warnings: string[];
  /** The file's content as parsed, with references to variables not yet replaced. */
  readonly literals: Tree;
}

/** Parses and checks `text` as the content of the configuration file at `path`. */
function readSettings(text: string, path: string, options: LoadOptions): Result<Reading> {
  const { env, home } = options;
  const parsed = parseText(text, path);
  if (!parsed.ok) return parsed;
  const problems: Problem[] = [];
  const warnings = readEarlierSpellings(parsed.value, problems);
  const literals = parsed.value;
  const source = substitute(literals, env, problems);
  applyOverrides(source.tree, options.overrides ?? {});
  const checked = readTree(source, problems);
  const settings = checked && complete(checked, { env, home, folder: dirname(path) }, problems);
  if (settings !== undefined)
    problems.push(...FEATURES.flatMap((feature) => feature.problems?.(settings) ?? []));
  const told = withoutValues(problems, source.values);
  if (settings === undefined || problems.length > 0) return ok({ problems: told, warnings, literals });
  warnings.push(
    ...keyWarnings(settings.providers),
    ...placeWarnings(settings, path),
    ...clusterWarnings(settings),
    ...patternWarnings(settings),
  );
  return ok({ settings, problems: told, warnings, literals });
}

/** Returns the configuration file as the user named it, or undefined if the user named none. */
export function namedConfig({ configPath, env }: LoadOptions): string | undefined {
  return configPath ?? (env.PARLEY_CONFIG || undefined);
}

/** Returns the path of the configuration file, even if the file does not exist. */
export function configPathOf(options: LoadOptions): string {
  const named = namedConfig(options);
  return named === undefined
    ? join(options.home, ".parley", "parley.json5")
    : expand(named, options.home, ".");
}

/** Returns the settings for `text` as the content of the configuration file at `path`, or its problems. */
export function settingsOfText(
  text: string,
  path: string,
  options: LoadOptions,
): { readonly settings?: Settings; readonly problems: readonly Problem[] } {
  const read = readSettings(text, path, options);
  if (!read.ok) return { problems: [{ path: [], text: read.error }] };
  const { settings, problems } = read.value;
  return settings === undefined ? { problems } : { settings: freeze(settings), problems };
}

function refuse(problems: readonly Problem[], path: string): Failure {
  const lines = tell(problems);
  const count = lines.length === 1 ? "a problem" : `${lines.length} problems`;
  const error = [`${path} has ${count}:`, ...lines].join("\n  ");
  return fail("invalid_config", error, { details: { path, problems: lines } });
}

/**
 * Reads the configuration file. A missing file is an error only if its path was given explicitly; otherwise
 * returns undefined.
 */
function readFile(path: string, named: boolean): Result<string | undefined> {
  try {
    const { size } = statSync(path);
    if (size <= FILE_MAX_BYTES) return ok(readFileSync(path, "utf8"));
    return fail("invalid_config", `${path} is ${size} bytes; the maximum is ${FILE_MAX_BYTES}`);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" && !named) return ok(undefined);
    if (code === "ENOENT")
      return fail("invalid_config", `${path} does not exist`, {
        hint: "Create it, or name another file with --config or PARLEY_CONFIG.",
      });
    return fail("invalid_config", `${path} could not be read: ${(error as Error).message}`, {
      hint: "Check the owner and the mode of the file.",
    });
  }
}

const expand = (path: string, home: string, folder: string): string =>
  path === "~" || path.startsWith("~/") ? join(home, path.slice(1)) : resolve(folder, path);

function applyOverrides(tree: Tree, { host, port, storeDir }: NonNullable<LoadOptions["overrides"]>): void {
  const put = (section: string, key: string, value: unknown) => {
    if (value === undefined) return;
    if (tree[section] === undefined) tree[section] = {};
    const there = tree[section];
    if (isObject(there)) there[key] = value;
  };
  put("gateway", "host", host);
  put("gateway", "port", port);
  put("store", "dir", storeDir);
}

interface Around {
  readonly env: Env;
  readonly home: string;
  /** The folder to which relative paths in the file refer. */
  readonly folder: string;
}

function complete(file: ConfigFile, around: Around, problems: Problem[]): Settings {
  const providersWrong = problems.some(({ path }) => path[0] === "models");
  const providers = providersOf(file.models.providers, around.env, providersWrong ? [] : problems);
  const { allow, deny, sessions, sessions_spawn: sessionsSpawn, send_file: sendFile, ...tools } = file.tools;
  const { postgresUrl: _, backupDir, ...store } = file.store;
  const postgres = postgresOf(file.store, around.env, problems);
  const expandPath = (path: string): string => expand(path, around.home, around.folder);
  const agents = agentsOf(file, firstModel(providers), expandPath);
  checkAgents(file, problems);
  const agentIds = agents.map(({ id }) => id);
  checkMcp(tools.mcp, agentIds, problems);
  if (!providersWrong) checkAgentModels(file, providers, problems);
  const { auth, ...gateway } = file.gateway;
  const token = auth.token || around.env.PARLEY_TOKEN || undefined;
  checkTokens(token, auth.tokens, problems);
  const channels = channelsOf(file, { agents, problems });
  const { threadBindings: __, ...session } = file.session;
  const { allowAgents, ...subagents } = file.agents.defaults.subagents;
  const { agentToAgent, search } = tools;
  return {
    gateway: { ...gateway, ...optional({ token }), tokens: auth.tokens },
    store: {
      ...store,
      dir: expandPath(store.dir),
      ...postgres,
      ...(backupDir && { backupDir: expandPath(backupDir) }),
    },
    providers,
    agents,
    maxConcurrent: file.agents.defaults.maxConcurrent,
    titles: file.agents.defaults.titles,
    subagents,
    session,
    labels: file.labels,
    tools: {
      filter: { allow, deny },
      visibility: sessions.visibility,
      agentToAgent: { ...agentToAgent, allow: agentToAgent.allow.map(wordOf) },
      subagents: tools.subagents.tools,
      sandbox: tools.sandbox.tools,
      sessionsSpawn,
      sendFile,
      history: tools.history,
      exec: { ...tools.exec, ...optional({ searchPath: around.env.PATH || undefined }) },
      fetch: { allowHosts: tools.fetch.allowHosts.map(wordOf) },
      ...(search && { search: searchOf(search, problems) }),
      mcp: mcpOf(tools.mcp, expandPath),
    },
    owners: file.commands.owners,
    channels,
    logging: loggingOf(file.logging, around.env, problems),
    ...tracesOf(file.telemetry, around.env, problems),
    ...addedSettings(file, agentIds, problems),
  };
}

/** Returns the sections of the features: as they are in the file, or as the feature reads them. */
function addedSettings(file: ConfigFile, agentIds: readonly string[], problems: Problem[]): AddedSettings {
  const sections: Readonly<Record<string, unknown>> = { ...file };
  const asInFile = Object.keys(added("settings")).map((name) => ({ [name]: sections[name] }));
  const checkAgent = (name: string, path: Path): void => {
    const text = agentProblem(name, agentIds);
    if (text !== undefined) problems.push({ path, text });
  };
  return Object.assign({}, ...asInFile, ...FEATURES.map((one) => one.readSettings?.(file, checkAgent)));
}

const wordOf = (text: string): string => text.trim().toLowerCase();

/** Returns the settings of `search`. Checks that its provider has what it needs. */
function searchOf({ provider, apiKey, url }: SearchSettings, problems: Problem[]): SearchSettings {
  if (provider === "brave" && !apiKey)
    problems.push({ path: ["tools", "search", "apiKey"], text: "is missing; must be a key of Brave Search" });
  if (provider === "searxng" && url === undefined)
    problems.push({ path: ["tools", "search", "url"], text: "is missing; must be the address of SearXNG" });
  return { provider, ...optional({ apiKey: apiKey || undefined, url }) };
}

/** Minimum length of a token: a shorter one could be guessed. */
const TOKEN_CHARS_MIN = 24;
const SHORT_TOKEN =
  `has fewer than ${TOKEN_CHARS_MIN} characters and could be guessed; ` +
  "make one with: openssl rand -hex 24";

/** Reports tokens that could be guessed, that are given twice, or that have no rights. */
function checkTokens(main: string | undefined, tokens: readonly TokenSettings[], problems: Problem[]): void {
  const auth: Path = ["gateway", "auth"];
  if (main !== undefined && main.length < TOKEN_CHARS_MIN)
    problems.push({ path: [...auth, "token"], text: SHORT_TOKEN });
  const seen = new Set(main === undefined ? [] : [main]);
  for (const [index, { token, role, scopes }] of tokens.entries()) {
    const tell = (key: string, text: string) =>
      problems.push({ path: [...auth, "tokens", index, key], text });
    if (token.length < TOKEN_CHARS_MIN) tell("token", SHORT_TOKEN);
    if (seen.has(token)) tell("token", "is the same as another token");
    seen.add(token);
    if (role === "operator" && scopes.length === 0)
      tell("scopes", "must name at least one of operator.read, operator.write, operator.admin");
  }
}

/**
 * Warns about each agent whose workspace contains the store, the backups or the configuration, because the
 * agent could read and change them with its file tools, or is in one of their folders.
 */
function placeWarnings(settings: Settings, path: string): string[] {
  const inside = (file: string, folder: string) =>
    file === folder || file.startsWith(folder.endsWith(sep) ? folder : folder + sep);
  return settings.agents.flatMap(({ id, workspace }) => {
    const { dir, backupDir = dir } = settings.store;
    const whose = `the workspace of agent ${id} (${workspace})`;
    return [...new Set([dir, backupDir, path])].flatMap((file) => {
      if (inside(file, workspace)) return [`${whose} contains ${file}, so the agent can change it`];
      if (!inside(workspace, file)) return [];
      return [`${whose} is inside of ${file}, which belongs to the gateway, so no sandbox can use it`];
    });
  });
}

function clusterWarnings({ store, gateway }: Settings): string[] {
  if (store.postgresUrl === undefined || gateway.token !== undefined) return [];
  return [
    "store.postgresUrl is set and gateway.auth.token is not: each gateway of the cluster would generate a " +
      "different token. Set gateway.auth.token (or PARLEY_TOKEN) to the same value for all",
  ];
}

/**
 * Warns about patterns that match no configured agent, which are probably misspelt. Those for peers are
 * not checked, because the store knows their agents.
 */
function patternWarnings({ agents, tools }: Settings): string[] {
  const ids = agents.map(({ id }) => id);
  return tools.agentToAgent.allow
    .filter((pattern) => !isPeerAgentId(pattern) && !ids.some((id) => matchesPattern(pattern, id)))
    .map((pattern) => {
      const shown = JSON.stringify(pattern);
      return `tools.agentToAgent.allow has ${shown}, which matches no agent; configured: ${ids.join(", ")}`;
    });
}

/** Warns about a `.json` file in place of the missing `.json5` file: it is never read. */
function nameWarnings(path: string): string[] {
  const meant = path.replace(/5$/, "");
  return existsSync(meant) ? [`${meant} is not read. Rename it to ${basename(path)}.`] : [];
}

function modeWarnings(path: string, literals: Tree): string[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if (!othersReach(mode) || !holdsSecret(literals)) return [];
  return [
    `${path} contains secrets, and other users can read it (mode ${octalMode(mode)}). Run chmod 600 on it.`,
  ];
}

/** Returns whether the file contains a secret in plain text, including a variable's fallback. */
function holdsSecret(value: unknown, path: Path = []): boolean {
  if (typeof value === "string") {
    return isSecretPath(path) && withoutReferences(value) !== "";
  }
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => holdsSecret(inner, [...path, key]));
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
