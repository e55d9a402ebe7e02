// Owns which tools a session has, from the filters that apply to it.
// TP1: a matching deny in any filter always wins.
// TP2: every filter with a non-empty allow list must list the tool.
// TP3: what a session may not use, nobody that it spawned may use (I13): the filters of the requester, and of
//      its requester, hold for it too, as they are at this moment.
// TP4: the tools of an outside server (MCP) are those whose names begin with its prefix. The agents that it
//      is kept for, and its place outside of every sandbox, are filters like all others.

import { matchesAny, matchesPattern } from "./pattern.ts";
import { type ChainLink, isSandboxed, requesterOf, type SpawnChain } from "./sandbox-policy.ts";
import { agentIdInKey } from "./session-key.ts";
import { agentOf, findAgent, type Settings, type ToolFilter } from "./settings.ts";

/** One filter and where it stands in the settings, e.g. `tools` or `agents.list[research].tools`. */
export interface PlacedFilter {
  readonly where: string;
  readonly filter: ToolFilter;
  /** For a rule that is no setting of its own: why, in the words that stand behind `tool "x" is denied: `. */
  readonly because?: string;
}

/** Either way what decided is named: the settings, or that there is none against it. */
export type ToolVerdict =
  | { readonly allowed: true; readonly reason: string }
  | { readonly allowed: false; readonly error: string };

function matching(patterns: readonly string[], name: string): string | undefined {
  return patterns.find((pattern) => matchesPattern(pattern.toLowerCase(), name.toLowerCase()));
}

/** May a tool of this name be used under all these filters? Letter case does not matter. */
export function decideTool(name: string, filters: readonly PlacedFilter[]): ToolVerdict {
  for (const { where, filter, because } of filters) {
    const pattern = matching(filter.deny, name);
    if (pattern !== undefined) {
      const reason = because ?? `${where}.deny has ${JSON.stringify(pattern)}`;
      return { allowed: false, error: `tool "${name}" is denied: ${reason}` };
    }
  }
  for (const { where, filter } of filters) {
    if (filter.allow.length > 0 && matching(filter.allow, name) === undefined) {
      return {
        allowed: false,
        error: `tool "${name}" is not allowed: ${where}.allow is set and does not list it`,
      };
    }
  }
  return { allowed: true, reason: whyAllowed(filters) };
}

/** Every filter with an allow list has let it through (TP2); most sessions have none. */
function whyAllowed(filters: readonly PlacedFilter[]): string {
  const lists = filters.filter(({ filter }) => filter.allow.length > 0).map(({ where }) => `${where}.allow`);
  if (lists.length === 0) return "no filter denies it";
  const named = [...new Set(lists)];
  return `${named.join(" and ")} ${named.length === 1 ? "lists" : "list"} it, and no filter denies it`;
}

/** What a sub-agent does not have by default (SPEC 3). */
export const SESSION_TOOLS = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_spawn",
  "agents_list",
  "session_status",
  "sessions_search",
  "subagents",
  "message",
] as const;

/** Those of them that a sub-agent above the depth limit has after all. */
const NESTING_TOOLS: readonly string[] = [
  "sessions_spawn",
  "sessions_list",
  "sessions_history",
  "agents_list",
  "subagents",
];

/** Whether a session this deep may spawn: 0 is one that nobody spawned. */
export function maySpawnAt(spawnDepth: number, settings: Settings): boolean {
  return spawnDepth < settings.subagents.maxSpawnDepth;
}

const denying = (deny: readonly string[], because: string): PlacedFilter => ({
  where: "",
  filter: { allow: [], deny },
  because,
});

/** What the name of every tool of an outside server begins with. No tool of the gateway begins so. */
export function outsidePrefix(server: string): string {
  return `mcp__${server}__`;
}

/** The servers that an agent may not use, as filters. */
function serverFilters(agentId: string, settings: Settings): PlacedFilter[] {
  const lists = (agents: readonly string[]): boolean => agents.length === 0 || matchesAny(agents, agentId);
  return settings.tools.mcp.servers
    .filter(({ agents }) => !lists(agents))
    .map(({ name }) =>
      denying([`${outsidePrefix(name)}*`], `tools.mcp.servers.${name}.agents does not list "${agentId}"`),
    );
}

/** The tool by which sessions use paired devices. */
export const NODES_TOOL = "nodes";

/** What a sandboxed session may not use, as filters: servers and nodes are outside of its sandbox. */
function containmentFilters(settings: Settings): PlacedFilter[] {
  const because =
    "this session is sandboxed, nodes are outside of its sandbox, and nodes.allowSandboxed is not true";
  const nodes = settings.nodes.allowSandboxed ? [] : [denying([NODES_TOOL], because)];
  return [...nodes, ...serverContainment(settings)];
}

function serverContainment(settings: Settings): PlacedFilter[] {
  return settings.tools.mcp.servers
    .filter(({ allowSandboxed }) => !allowSandboxed)
    .map(({ name }) => {
      const because =
        "this session is sandboxed, the server runs outside of its sandbox, and " +
        `tools.mcp.servers.${name}.allowSandboxed is not true`;
      return denying([`${outsidePrefix(name)}*`], because);
    });
}

/**
 * Whether a tool whose name begins with `prefix` could pass. It is asked before anybody knows the tools: a
 * server that no tool of could be used need not be started.
 */
export function mayHaveToolsUnder(prefix: string, filters: readonly PlacedFilter[]): boolean {
  const start = prefix.toLowerCase();
  const deniesAll = (pattern: string): boolean => {
    const stem = pattern.toLowerCase().slice(0, -1);
    return pattern.endsWith("*") && !stem.includes("*") && start.startsWith(stem);
  };
  const reaches = (pattern: string): boolean => {
    const [head = "", ...rest] = pattern.toLowerCase().split("*");
    return head.startsWith(start) || (rest.length > 0 && start.startsWith(head));
  };
  return filters.every(
    ({ filter }) => !filter.deny.some(deniesAll) && (filter.allow.length === 0 || filter.allow.some(reaches)),
  );
}

/** The filters that a session has for being a sub-agent. */
function subagentFilters(chain: SpawnChain, settings: Settings): PlacedFilter[] {
  const { spawnDepth } = chain[0];
  const { maxSpawnDepth } = settings.subagents;
  const mayNest = maySpawnAt(spawnDepth, settings);
  const chosen = settings.tools.subagents;
  const filters: PlacedFilter[] = [{ where: "tools.subagents.tools", filter: chosen }];
  if (!mayNest) {
    const limit = `agents.defaults.subagents.maxSpawnDepth is ${maxSpawnDepth}`;
    filters.push(denying(["sessions_spawn"], `this sub-agent is ${spawnDepth} deep, and ${limit}`));
  }
  if (chosen.allow.length === 0) {
    const kept = SESSION_TOOLS.filter((name) => !(mayNest && NESTING_TOOLS.includes(name)));
    filters.push(
      denying(
        kept,
        "sub-agents have no session tools unless tools.subagents.tools.allow lists what they have",
      ),
    );
  }
  if (requesterOf(chain) === "gone") filters.push(...orphanFilters(chain[0], settings));
  return filters;
}

/** Of a session whose requester is gone: what its key still tells of the requester goes on to hold. */
function orphanFilters({ spawnedBy = "" }: ChainLink, settings: Settings): PlacedFilter[] {
  const agent = findAgent(settings, agentIdInKey(spawnedBy) ?? "");
  const because = "the session that spawned this one is gone, and with it the right to session tools";
  return [
    denying(SESSION_TOOLS, because),
    ...(agent === undefined
      ? []
      : [
          { where: `agents.list[${agent.id}].tools`, filter: agent.tools },
          ...serverFilters(agent.id, settings),
        ]),
  ];
}

/** The filters of the first session of a chain, without those of its requester. */
function ownFilters(chain: SpawnChain, settings: Settings): PlacedFilter[] {
  const agent = agentOf(settings, chain[0]);
  const isSubagent = chain[0].spawnedBy !== undefined;
  return [
    { where: "tools", filter: settings.tools.filter },
    { where: `agents.list[${agent.id}].tools`, filter: agent.tools },
    ...(isSubagent ? subagentFilters(chain, settings) : []),
    ...serverFilters(agent.id, settings),
    ...(settings.nodes.enabled ? [] : [denying([NODES_TOOL], "nodes.enabled is false")]),
    ...(isSandboxed(chain, settings)
      ? [{ where: "tools.sandbox.tools", filter: settings.tools.sandbox }, ...containmentFilters(settings)]
      : []),
  ];
}

/** All filters that hold for the first session of a chain: its own, its requester's, and so on (TP3). */
export function filtersFor(chain: SpawnChain, settings: Settings): PlacedFilter[] {
  const requester = requesterOf(chain);
  const above = requester === undefined || requester === "gone" ? [] : filtersFor(requester, settings);
  return [...ownFilters(chain, settings), ...above];
}

/** Which of these tools a session would have by its own rules, and lacks because its requester does. */
export function withheldTools(names: readonly string[], chain: SpawnChain, settings: Settings): string[] {
  const own = ownFilters(chain, settings);
  const all = filtersFor(chain, settings);
  return names.filter((name) => decideTool(name, own).allowed && !decideTool(name, all).allowed);
}
