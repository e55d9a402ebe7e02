// Builds the agents of a configuration: those in its list, or one default agent if there is no list. All
// defaults are filled in.

import { optional } from "../core/optional.ts";
import {
  type A2aRuntime,
  type A2aSettings,
  type AcpRuntime,
  type AgentSettings,
  agentProblem,
  outsideKind,
  type ProviderSettings,
  type SandboxSettings,
} from "../core/shapes/settings/settings.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { checkModel } from "./providers.ts";
import { WORKSPACE_DEFAULT } from "./schema/agents.ts";
import type { ConfigFile } from "./schema/schema.ts";
import type { Problem } from "./source.ts";

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
): AcpRuntime | A2aRuntime | undefined {
  if (runtime === undefined) return undefined;
  const { type, cwd, card = "", token, key, allowUnsigned, ...program } = runtime;
  if (type === "a2a") return { type, card, allowUnsigned, ...optional({ token: token || undefined, key }) };
  return type === "acp" ? { type, ...program, ...(cwd && { cwd: expand(cwd) }) } : undefined;
}

/** Reports keys of an agent over A2A that are missing or contradict each other. */
function checkRemote(runtime: NonNullable<AgentInFile["runtime"]>, path: Path, problems: Problem[]): void {
  const { type, card, key, token, allowUnsigned } = runtime;
  const tell = (name: string, text: string): void => {
    problems.push({ path: [...path, "runtime", name], text });
  };
  if (type !== "a2a") {
    const given = { card, key, token, allowUnsigned: allowUnsigned || undefined };
    for (const name of Object.keys(optional(given))) tell(name, 'is valid only with runtime.type "a2a"');
    return;
  }
  if (card === undefined) tell("card", "is missing; must be the address of the agent's card");
  if (key === undefined && !allowUnsigned)
    tell("key", "is missing; it is `kid` in the agent's /a2a/jwks.json. If there is none, set allowUnsigned");
}

/** Reports keys of an agent that contradict its runtime. */
function checkRuntime(file: ConfigFile, agent: AgentInFile, path: Path, problems: Problem[]): void {
  const { runtime } = agent;
  if (runtime === undefined) return;
  const tell = (key: string, text: string): void => {
    problems.push({ path: [...path, ...key.split(".")], text });
  };
  checkRemote(runtime, path, problems);
  const { type, command } = runtime;
  if (type !== "acp" && command.length > 0) tell("runtime.command", 'is valid only with runtime.type "acp"');
  if (type !== "acp" && type !== "a2a") return;
  if (type === "acp" && (command[0] ?? "").trim() === "") {
    tell("runtime.command", 'must name a program, like ["my-agent", "--acp"]');
  }
  const kind = outsideKind({ type });
  const where = type === "acp" ? "set it in runtime.command or env" : "leave it out";
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

/** Returns the settings of the A2A door, with agent ids in lower case. Reports names that are no ids. */
export function a2aOf(
  { expose, notifyHosts, descriptions }: A2aSettings,
  agentIds: readonly string[],
  problems: Problem[],
): A2aSettings {
  const named: [string, Path][] = [
    ...expose.map((name, index): [string, Path] => [name, ["a2a", "expose", index]]),
    ...Object.keys(descriptions).map((name): [string, Path] => [name, ["a2a", "descriptions", name]]),
  ];
  for (const [name, path] of named) {
    const text = agentProblem(name, agentIds);
    if (text !== undefined) problems.push({ path, text });
  }
  const idOf = (name: string): string => name.trim().toLowerCase();
  return {
    expose: [...new Set(expose.map(idOf))],
    notifyHosts: notifyHosts.map(idOf),
    descriptions: Object.fromEntries(Object.entries(descriptions).map(([name, text]) => [idOf(name), text])),
  };
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
