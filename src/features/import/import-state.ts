// Imports a state directory: copies its content into Parley's configuration and store, and reports the rest.
// Nothing is written before all checks pass. A store that a gateway uses is refused. An import can be
// repeated: after an interruption it continues, after completion it adds nothing.

import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { Tree } from "../../config/source.ts";
import { configPathOf, type LoadOptions, loadSettings, settingsOfText } from "../../config.ts";
import { fieldsOf, isObject, listOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { defaultAgent, findAgent, type Settings, storeName } from "../../core/shapes/settings/settings.ts";
import type { World } from "../../world.ts";
import { checkConfig, type PlacedConfig, placeFor, textAt, writeConfig } from "./config/file.ts";
import { mapConfig } from "./config/map.ts";
import { readSourceConfig } from "./config/source.ts";
import { judgeTrust, type TrustAnswer, type TrustedSetting, withoutTrust } from "./config/trust.ts";
import { mapJobs } from "./jobs.ts";
import { agentIdOf } from "./keys.ts";
import { type Remark, Remarks } from "./remarks.ts";
import { isHeartbeat, type RoutineSettings, routineJobs } from "./routines.ts";
import { openSessions, type SessionDatabase } from "./sessions/session-database.ts";
import { type AgentStore, importSessions } from "./sessions/sessions.ts";
import { readSourceSessions } from "./sessions/source-sessions.ts";
import type { SessionOutcome } from "./sessions/write-session.ts";
import { NAME_THE_DIRECTORY, openSourceDir, type SourceDir } from "./source-dir.ts";
import { readSourceState, type SourceState } from "./state.ts";
import { withImportStore } from "./store.ts";
import {
  type CarriedWorkspace,
  carriedBefore,
  carryWorkspaces,
  workspaceGrants,
  workspaceName,
} from "./workspace/carry.ts";
import { findWorkspaces, type SourceWorkspace } from "./workspace/find.ts";
import {
  type Grant,
  grantsOf,
  missingGrants,
  NOTHING_WRITTEN,
  type StateReport,
  type Written,
  writeState,
} from "./write-state.ts";

const AGENTS_MAX = 500;
const LEFT_ALONE_MAX = 50;
/** Path of an agent's database below the agent's folder. */
const AGENT_DATABASE = ["agent", "openclaw-agent.sqlite"];

export interface ImportOptions extends LoadOptions {
  readonly dir: string;
  /** True: only report what the import would do, and write nothing. */
  readonly dryRun: boolean;
  /** Names of accepted settings or groups of them, or `all`. Default: none. */
  readonly accept?: readonly string[];
  /** True: agents use the accepted workspaces where they are. Default: they get copies. */
  readonly link?: boolean;
  /**
   * Asks about every setting that must be accepted and is not in `accept`. If this function is absent, these
   * settings are removed.
   */
  readonly ask?: (setting: TrustedSetting) => Promise<Result<TrustAnswer>>;
  readonly world: World;
  /** Stops the import between two sessions. */
  readonly signal: AbortSignal;
  /** Called after each session. `sessions`: the number of sessions so far. */
  progress(sessions: number): void;
}

export interface ImportReport {
  readonly from: string;
  /** Description of the store, without secrets. */
  readonly to: string;
  readonly dryRun: boolean;
  /** True if the signal stopped the import before the last session. */
  readonly interrupted: boolean;
  readonly config: ConfigReport;
  readonly sessions: {
    readonly added: number;
    readonly toppedUp: number;
    readonly unchanged: number;
    readonly leftAlone: readonly { readonly key: string; readonly why: string }[];
    readonly leftAloneCount: number;
  };
  /** Number of written transcript entries. */
  readonly entries: number;
  readonly repairs: { readonly callsWithoutResult: number; readonly resultsWithoutCall: number };
  readonly jobs: Written;
  /** People who were paired at an account. */
  readonly people: Written;
  readonly nodes: Written;
  readonly workspaces: readonly CarriedWorkspace[];
  readonly remarks: readonly Remark[];
}

interface ConfigReport {
  /** `none`: there is no readable configuration. `there`: an earlier import has written the same one. */
  readonly kind: PlacedConfig["kind"] | "none";
  readonly path?: string;
  /** Manual steps, and settings that differ slightly. */
  readonly notes: readonly string[];
  /** Settings without a counterpart. */
  readonly left: readonly string[];
  /** Settings that a person must accept. Those that were not accepted are removed. */
  readonly trusted: readonly (TrustedSetting & { readonly accepted: boolean })[];
}

interface Prepared {
  readonly settings: Settings;
  readonly report: ConfigReport;
  readonly keys: { readonly mainName: string; readonly isGlobal: boolean };
  readonly defaultAgentId: string;
  readonly routines: RoutineSettings;
  readonly workspaces: readonly SourceWorkspace[];
  /** Names of the workspaces that are used where they are. */
  readonly linked: ReadonlySet<string>;
  /** The configuration file to write. Absent if there is none. */
  readonly file?: { readonly text: string; readonly path: string; readonly replaces?: string };
}

/** Returns a configuration in which agents use these folders as workspaces. */
function withWorkspaces(file: Tree, workspaces: readonly SourceWorkspace[]): Tree {
  const changed = structuredClone(file);
  const agents = fieldsOf(changed.agents);
  for (const { agentId, path } of workspaces) {
    // `${` refers to a variable there.
    const workspace = path.replaceAll("${", "$${");
    const own = listOf(agents.list).find((agent) => fieldsOf(agent).id === agentId);
    if (isObject(own)) own.workspace = workspace;
    else changed.agents = { ...agents, defaults: { ...fieldsOf(agents.defaults), workspace } };
  }
  return changed;
}

/** Returns the current settings, and the plan for the source's configuration. */
async function prepare(
  source: SourceDir,
  grants: readonly Grant[],
  options: ImportOptions,
  remarks: Remarks,
): Promise<Result<Prepared>> {
  const path = configPathOf(options);
  const exists = existsSync(path);
  const found = await readSourceConfig(source, remarks);
  const mapped = mapConfig(found?.tree ?? {});
  const check = (file: Tree) =>
    found === undefined ? undefined : checkConfig(file, found.name, path, options);
  const { accept = [], ask, home, link = false } = options;
  const places = { root: source.root, home };
  const workspaces = findWorkspaces(mapped.workspaces, mapped.sharedWorkspace, places);
  // A setting that was accepted in an earlier import needs no second acceptance.
  const plain = workspaces.filter(({ isDelicate }) => !isDelicate);
  const linkings = exists ? [[], plain, workspaces] : [];
  const wholes = linkings.map((links) => withWorkspaces(mapped.file, links));
  const isRepeated = wholes.some((file) => textAt(path) === check(file)?.text);
  const rights = [...grants, ...workspaceGrants(workspaces)];
  const judged = await judgeTrust(mapped.file, { names: accept, ask, isRepeated }, rights);
  if (!judged.ok) return judged;
  const { settings: trusted } = judged.value;
  const accepted = trusted.filter((one) => one.accepted).map(({ name }) => name);
  const linked = link ? new Set(accepted) : judged.value.linked;
  const used = workspaces.filter(({ agentId }) => linked.has(workspaceName(agentId)));
  const checked = check(withWorkspaces(judged.value.file, used));
  const { mainName, isGlobal, defaultAgentId, left } = mapped;
  const inForce = exists ? loadSettings(options) : undefined;
  if (inForce?.ok === false) return inForce;
  const settings = inForce?.value.settings ?? checked?.settings ?? settingsOfText("", path, options).settings;
  if (settings === undefined)
    return fail("invalid_config", "the environment contains invalid settings", {
      hint: "Run npx parley-gateway config check to see them.",
    });
  const { routines } = mapped;
  const common = {
    ...{ settings, keys: { mainName, isGlobal }, defaultAgentId, routines },
    ...{ workspaces, linked },
  };
  if (checked === undefined) {
    const notes =
      found === undefined ? [] : [`${found.name} could not be converted to a Parley configuration`];
    return ok({ ...common, report: { kind: "none", notes, left, trusted } });
  }
  const place = placeFor(checked.text, path, exists, check(withoutTrust(mapped.file))?.text);
  if (!place.ok) return place;
  const notes = [
    ...mapped.notes,
    ...checked.takenOut.map((what) => `left out: ${what}`),
    ...(checked.variables.length === 0
      ? []
      : [`set these variables in the gateway's environment: ${checked.variables.join(", ")}`]),
  ];
  if (place.value.kind === "there") {
    return ok({ ...common, report: { ...place.value, notes, left, trusted } });
  }
  const { kind, ...target } = place.value;
  const report: ConfigReport = { kind, path: target.path, notes, left, trusted };
  return ok({ ...common, report, file: { text: checked.text, ...target } });
}

/** Returns whether `path` or its nearest existing parent is inside the source. */
function isInside(root: string, path: string): boolean {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  const way = relative(root, join(realpathSync(at), relative(at, path)));
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !way.startsWith(sep));
}

/**
 * Returns the source's session stores: of each agent the database and the files of older versions, and the
 * store of the oldest versions, which have only one agent.
 */
async function readStores(
  source: SourceDir,
  defaultAgentId: string,
  nowMs: number,
  remarks: Remarks,
): Promise<AgentStore[]> {
  const stores: AgentStore[] = [];
  const read = async (agentId: string, folder: readonly string[], database?: SessionDatabase) => {
    const sessions = await readSourceSessions(source, [...folder, "sessions.json"], nowMs, remarks);
    const all = [...sessions, ...(database?.sessions ?? [])];
    const named = new Set(all.flatMap(({ fileName, sessionId }) => [fileName ?? "", `${sessionId}.jsonl`]));
    for (const { name, kind } of await source.list(folder)) {
      if (kind === "link") remarks.note("links in the source, not followed", [...folder, name].join("/"));
      const isTranscript = kind === "file" && name.endsWith(".jsonl") && !named.has(name);
      if (isTranscript) {
        remarks.note(
          "transcripts without a session (from before a reset), skipped",
          [...folder, name].join("/"),
        );
      }
    }
    if (database !== undefined) stores.push({ agentId, folder, sessions: database.sessions, database });
    stores.push({ agentId, folder, sessions });
  };
  for (const { name, kind } of (await source.list(["agents"])).slice(0, AGENTS_MAX)) {
    const agentId = agentIdOf(name);
    if (kind === "link") remarks.note("links in the source, not followed", `agents/${name}`);
    if (kind !== "folder" || agentId === undefined) continue;
    const database = await openSessions(source, ["agents", name, ...AGENT_DATABASE], nowMs, remarks);
    await read(agentId, ["agents", name, "sessions"], database);
  }
  await read(defaultAgentId, ["sessions"]);
  return stores;
}

interface Ended {
  readonly key: string;
  readonly outcome: SessionOutcome;
}

function countSessions(ended: readonly Ended[]): ImportReport["sessions"] {
  const count = (kind: SessionOutcome["kind"]): number =>
    ended.filter(({ outcome }) => outcome.kind === kind).length;
  const leftAlone = ended.flatMap(({ key, outcome }) =>
    outcome.kind === "left_alone" ? [{ key, why: outcome.why }] : [],
  );
  return {
    ...{ added: count("added"), toppedUp: count("topped_up"), unchanged: count("unchanged") },
    ...{ leftAlone: leftAlone.slice(0, LEFT_ALONE_MAX), leftAloneCount: leftAlone.length },
  };
}

/** Everything that was read of the source. */
interface Read {
  readonly source: SourceDir;
  readonly state: SourceState;
  readonly grants: readonly Grant[];
  readonly prepared: Prepared;
  readonly stores: readonly AgentStore[];
  readonly nowMs: number;
  readonly remarks: Remarks;
}

/** Returns the reason why this import is not possible, or undefined. */
function refuse(options: ImportOptions, { source, state, prepared, stores }: Omit<Read, "remarks">) {
  const { report, settings } = prepared;
  const holds = [state.jobs, state.people, state.nodes, ...stores.map(({ sessions }) => sessions)];
  if (report.kind === "none" && holds.every((items) => items.length === 0)) {
    const error = `${options.dir} holds neither a configuration nor sessions that can be read`;
    return fail("invalid_argument", error, { hint: NAME_THE_DIRECTORY });
  }
  for (const own of [settings.store.dir, configPathOf(options)]) {
    if (!isInside(source.root, own)) continue;
    return fail("invalid_argument", `${own} is inside ${options.dir}, which an import must not change`, {
      hint: "Set store.dir, or --config, to another location.",
    });
  }
  return ok(undefined);
}

async function write(read: Read, options: ImportOptions): Promise<Result<ImportReport>> {
  const { source, state, grants, prepared, stores, nowMs, remarks } = read;
  const { world, dryRun, signal } = options;
  const { settings, report, keys, file, routines, workspaces, linked } = prepared;
  const ended: Ended[] = [];
  const repairs = { callsWithoutResult: 0, resultsWithoutCall: 0 };
  const { mainKey, scope } = settings.session;
  const rules = { mainKey, scope, defaultAgentId: defaultAgent(settings).id };
  const ids = { ids: settings.agents.map(({ id }) => id), defaultId: rules.defaultAgentId };
  const sourceJobs = state.jobs.filter((job) => !isHeartbeat(job));
  const routine = routineJobs(routines, ids, state.jobs);
  for (const { name } of routine)
    remarks.note("heartbeats and daily resets, which are scheduled jobs here", String(name));
  const all = [...sourceJobs, ...routine];
  const jobs = mapJobs(all, { settings, keys: rules, nowMs, remarks });
  const accepted = new Set(report.trusted.flatMap(({ name, accepted }) => (accepted ? [name] : [])));
  let rest: StateReport = NOTHING_WRITTEN;
  let given: readonly string[] = [];
  let carried: readonly CarriedWorkspace[] = [];
  const done = await withImportStore({ settings: settings.store, world, dryRun }, async (store) => {
    const isWritten = file !== undefined && !dryRun;
    const written = isWritten ? await writeConfig(file, world.ids.uuid()) : ok(undefined);
    if (!written.ok) return written;
    const missing = await missingGrants(grants, store);
    given = grants.filter((grant) => !missing.includes(grant)).map(({ name }) => name);
    given = [...given, ...(await carriedBefore(workspaces, settings))];
    const wantedFolders = workspaces.filter(({ agentId }) => accepted.has(workspaceName(agentId)));
    carried = await carryWorkspaces(wantedFolders, { settings, store, remarks, nowMs, linked });
    const wanted = grants.filter(({ name }) => accepted.has(name));
    rest = await writeState(jobs, wanted, store, remarks);
    await importSessions(stores, {
      ...{ source, keys, settings, rules, store, remarks, nowMs, repairs, signal },
      done(key, outcome) {
        options.progress(ended.push({ key, outcome }));
      },
    });
    return written;
  });
  if (!done.ok) return done;
  for (const { agentId, sessions } of stores) {
    if (sessions.length === 0 || findAgent(settings, agentId) !== undefined) continue;
    remarks.note("sessions of agents that are not configured here: the default agent answers", agentId);
  }
  for (const { name, kind } of await source.list(["skills"]))
    if (kind === "folder")
      remarks.note("skills for all agents, not imported: copy them to ~/.parley/skills", name);
  const sessions = countSessions(ended);
  const entries = ended.reduce((sum, { outcome }) => sum + ("entries" in outcome ? outcome.entries : 0), 0);
  const trusted = report.trusted.filter(({ name, accepted }) => accepted || !given.includes(name));
  const from = { from: source.root, to: storeName(settings.store), dryRun, interrupted: signal.aborted };
  const config = { ...report, trusted };
  const whole = { config, sessions, entries, repairs, ...rest, workspaces: carried };
  return ok({ ...from, ...whole, remarks: remarks.list() });
}

/** Imports a state directory. With `dryRun`, only reports what would be imported. */
export async function importState(options: ImportOptions): Promise<Result<ImportReport>> {
  const opened = await openSourceDir(options.dir);
  if (!opened.ok) return opened;
  const source = opened.value;
  const remarks = new Remarks();
  const nowMs = options.world.clock.now();
  const state = await readSourceState(source, nowMs, remarks);
  const grants = grantsOf(state);
  const prepared = await prepare(source, grants, options, remarks);
  if (!prepared.ok) return prepared;
  const stores = await readStores(source, prepared.value.defaultAgentId, nowMs, remarks);
  try {
    const read = { source, state, grants, prepared: prepared.value, stores, nowMs, remarks };
    const fits = refuse(options, read);
    if (!fits.ok) return fits;
    for (const { name } of await source.list([])) {
      if (/^(agents|sessions|state|cron|workspace.*|(openclaw|clawdbot|moltbot)\.json(\.bak.*)?)$/.test(name))
        continue;
      remarks.note("other files and folders of the source, not read", name);
    }
    return await write(read, options);
  } finally {
    for (const { database } of stores) database?.close();
  }
}
