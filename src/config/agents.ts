// Builds the agents of a configuration: those in its list, or one default agent if there is no list. All
// defaults are filled in.

import { optional } from "../core/optional.ts";
import {
  type AgentSettings,
  agentProblem,
  outsideKind,
  type ProviderSettings,
  type SandboxSettings,
} from "../core/shapes/settings/settings.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import type { FeatureRuntime } from "../feature.ts";
import { added } from "../features.ts";
import { checkModel } from "./providers.ts";
import { WORKSPACE_DEFAULT } from "./schema/agents.ts";
import type { ConfigFile } from "./schema/schema.ts";
import { FACTS } from "./schema/setting.ts";
import type { Problem } from "./source.ts";

const RUNTIMES: Readonly<Record<string, FeatureRuntime>> = added("runtimes");

type AgentInFile = ConfigFile["agents"]["list"][number];

/** The agent of a file whose list of agents is empty. */
export const MAIN_AGENT = { id: "main", default: true } as const;
const ONE_AGENT: readonly AgentInFile[] = [{ ...MAIN_AGENT, tools: { allow: [], deny: [] } }];

const listOf = (file: ConfigFile): readonly AgentInFile[] =>
  file.agents.list.length > 0 ? file.agents.list : ONE_AGENT;

/** Returns the index of the default agent: the one with `default: true`, else the first. */
const defaultIndex = (list: readonly AgentInFile[]): number =>
  Math.max(
    0,
    list.findIndex((agent) => agent.default),
  );

/** Returns all agents with all defaults filled in. `expand` makes a path absolute. */
export function agentsOf(
  file: ConfigFile,
  firstModel: string,
  expand: (path: string) => string,
): AgentSettings[] {
  const { model, workspace, maxConcurrent, titles, sandbox, subagents, budget, ...inherited } =
    file.agents.defaults;
  const list = listOf(file);
  return list.map((agent, index) => {
    const { runtime: inFile, budget: ownBudget, ...own } = agent;
    const id = agent.id.toLowerCase();
    const isDefault = index === defaultIndex(list);
    const runtime = runtimeOf(inFile, expand);
    const allowAgents = agent.subagents?.allowAgents ?? subagents.allowAgents;
    // `null` means no limit.
    const limits = Object.entries({ ...budget, ...ownBudget }).filter(([, limit]) => limit !== null);
    // Without a configured workspace, Parley creates the folder for this agent alone.
    const isOurFolder = agent.workspace === undefined && workspace === WORKSPACE_DEFAULT;
    return {
      ...inherited,
      ...own,
      id,
      default: isDefault,
      model: runtime === undefined ? (agent.model ?? model ?? firstModel) : `${runtime.type}/${id}`,
      workspace: expand(agent.workspace ?? (isDefault ? workspace : `${workspace}-${id}`)),
      subagents: { ...agent.subagents, allowAgents: allowAgents.map((name) => name.toLowerCase()) },
      sandbox: sandboxOf(sandbox, agent.sandbox, isOurFolder),
      ...optional({ runtime, budget: limits.length === 0 ? undefined : Object.fromEntries(limits) }),
    };
  });
}

function runtimeOf(
  runtime: AgentInFile["runtime"],
  expand: (path: string) => string,
): AgentSettings["runtime"] {
  const { type } = runtime ?? {};
  if (runtime === undefined || (type !== "acp" && type !== "a2a")) return undefined;
  const fields = RUNTIMES[type]?.settings?.fields ?? {};
  const given = Object.entries<unknown>(runtime).filter(([name, value]) => name in fields && value !== "");
  const isPath = (name: string): boolean => fields[name]?.[FACTS]?.isPath === true;
  return {
    type,
    ...Object.fromEntries(given.map(([name, value]) => [name, isPath(name) ? expand(String(value)) : value])),
  };
}

/** Reports keys of an agent that contradict its runtime. */
function checkRuntime(file: ConfigFile, agent: AgentInFile, path: Path, problems: Problem[]): void {
  const { runtime } = agent;
  if (runtime === undefined) return;
  const tell = (key: string, text: string): void => {
    problems.push({ path: [...path, ...key.split(".")], text });
  };
  for (const { settings } of Object.values(RUNTIMES))
    settings?.check(runtime, (name, text) => tell(`runtime.${name}`, text));
  const { type } = runtime;
  if (type !== "acp" && type !== "a2a") return;
  const kind = outsideKind({ type });
  const where = RUNTIMES[type]?.settings?.model ?? "leave it out";
  if (agent.model) tell("model", `${kind} chooses its own model; ${where}`);
  const mode = agent.sandbox?.mode ?? file.agents.defaults.sandbox.mode;
  if (mode === "all") {
    tell("sandbox.mode", `is "all", but ${kind} cannot run in a sandbox, so it would never run. Set "off".`);
  }
}

/**
 * Returns an agent's sandbox settings: for each key the agent's value, else the default. `ownFolder`: no
 * other agent or person uses the workspace.
 */
function sandboxOf(
  defaults: ConfigFile["agents"]["defaults"]["sandbox"],
  own: AgentInFile["sandbox"],
  ownFolder: boolean,
): SandboxSettings {
  const { image: _, ...sandbox } = { ...defaults, ...own };
  const image = own?.image || defaults.image;
  // If the agent shares its folder with people or unsandboxed sessions, a sandboxed session must not change
  // git's settings, because they can name programs that git runs for the others.
  const git = sandbox.git ?? (sandbox.mode === "all" && ownFolder ? "write" : "read");
  return { ...sandbox, git, ...(image && { image }) };
}

/** Returns the defaults of all agents, and every agent of the file, each with its path. */
function agentPlaces(
  file: ConfigFile,
): [Pick<AgentInFile, "model" | "fallbackModels" | "subagents">, Path][] {
  const { defaults, list } = file.agents;
  const agents = list.map((agent, index): [AgentInFile, Path] => [agent, ["agents", "list", index]]);
  return [[defaults, ["agents", "defaults"]], ...agents];
}

/** Reports duplicate ids, a second default, and names of agents that do not exist. */
export function checkAgents(file: ConfigFile, problems: Problem[]): void {
  const list = listOf(file);
  const ids = list.map(({ id }) => id.toLowerCase());
  const chosen = defaultIndex(list);
  for (const [index, agent] of list.entries()) {
    const path: Path = ["agents", "list", index];
    const id = ids[index] ?? "";
    if (ids.indexOf(id) !== index) problems.push({ path: [...path, "id"], text: `"${id}" is listed twice` });
    if (agent.default && index !== chosen) {
      const text = `only one agent can be the default, and ${showPath(["agents", "list", chosen])} is`;
      problems.push({ path: [...path, "default"], text });
    }
    checkRuntime(file, agent, path, problems);
  }
  for (const [{ subagents }, path] of agentPlaces(file)) {
    for (const [index, name] of (subagents?.allowAgents ?? []).entries()) {
      const text = name === "*" ? undefined : agentProblem(name, ids);
      if (text !== undefined) problems.push({ path: [...path, "subagents", "allowAgents", index], text });
    }
  }
}

/** Reports every configured model that does not exist. */
export function checkAgentModels(
  file: ConfigFile,
  providers: readonly ProviderSettings[],
  problems: Problem[],
): void {
  for (const [{ model, fallbackModels = [], subagents }, path] of agentPlaces(file)) {
    const named: [string | undefined, Path][] = [
      [model, [...path, "model"]],
      [subagents?.model, [...path, "subagents", "model"]],
      ...fallbackModels.map((name, at): [string, Path] => [name, [...path, "fallbackModels", at]]),
    ];
    for (const [name, at] of named) if (name) checkModel(name, at, providers, problems);
  }
}
