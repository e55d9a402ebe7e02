// Decides which tools a session has, from the filters that apply to it.
// TP1: a matching deny list in any filter has priority.
// TP2: every filter with a non-empty allow list must list the tool.
// A sub-agent never has a tool that its requester lacks (I13), because the current filters of all its
// ancestors apply to it as well. Tools of an external server (MCP) are recognised by the prefix of their
// names. The list of agents that may use such a server, and the rule that it runs outside every sandbox, are
// filters, too.

import { agentIdInKey } from "../shapes/session-key.ts";
import { agentOf, findAgent, type Settings, type ToolFilter } from "../shapes/settings/settings.ts";
import { matchesAny, matchesPattern } from "../text/pattern.ts";
import { memoryDenied } from "./prompt/memory.ts";
import { type ChainLink, hasNetwork, isSandboxed, requesterOf, type SpawnChain } from "./sandbox-policy.ts";

/** A filter and its path in the settings, for example `tools` or `agents.list[research].tools`. */
export interface PlacedFilter {
  readonly where: string;
  readonly filter: ToolFilter;
  /** Reason of a rule that is not a setting, for the text `tool "x" is denied: <reason>`. */
  readonly because?: string;
}

/** Both verdicts name the settings that decided, or say that no setting denies the tool. */
export type ToolVerdict =
  | { readonly allowed: true; readonly reason: string }
  | { readonly allowed: false; readonly error: string };

function matching(patterns: readonly string[], name: string): string | undefined {
  return patterns.find((pattern) => matchesPattern(pattern.toLowerCase(), name.toLowerCase()));
}

/** Decides whether all these filters allow the tool. Letter case is ignored. */
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

/**
 * Explains a permission by the filters that have an allow list: all of them list the tool (TP2). Most
 * sessions have no such filter.
 */
function whyAllowed(filters: readonly PlacedFilter[]): string {
  const lists = filters.filter(({ filter }) => filter.allow.length > 0).map(({ where }) => `${where}.allow`);
  if (lists.length === 0) return "no filter denies it";
  const named = [...new Set(lists)];
  return `${named.join(" and ")} ${named.length === 1 ? "lists" : "list"} it, and no filter denies it`;
}

/** Tools for sessions. A sub-agent does not have them by default. */
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

/** The tool that sends files to the people of a session. A sub-agent has no people. */
const SEND_FILE_TOOL = "send_file";

/** Session tools that a sub-agent has if it may itself spawn sub-agents. */
const NESTING_TOOLS: readonly string[] = [
  "sessions_spawn",
  "sessions_list",
  "sessions_history",
  "agents_list",
  "subagents",
];

/** Returns whether a session at this depth may spawn. A session that was not spawned has depth 0. */
export function maySpawnAt(spawnDepth: number, settings: Settings): boolean {
  return spawnDepth < settings.subagents.maxSpawnDepth;
}

const denying = (deny: readonly string[], because: string): PlacedFilter => ({
  where: "",
  filter: { allow: [], deny },
  because,
});

/** Returns the prefix of the tool names of an external server. No built-in tool has such a name. */
export function outsidePrefix(server: string): string {
  return `mcp__${server}__`;
}

/** Returns filters that deny the tools of servers which the agent may not use. */
function serverFilters(agentId: string, settings: Settings): PlacedFilter[] {
  const lists = (agents: readonly string[]): boolean => agents.length === 0 || matchesAny(agents, agentId);
  return settings.tools.mcp.servers
    .filter(({ agents }) => !lists(agents))
    .map(({ name }) =>
      denying([`${outsidePrefix(name)}*`], `tools.mcp.servers.${name}.agents does not list "${agentId}"`),
    );
}

const SEARCH_TOOL = "search";

/**
 * Returns filters that deny a sandboxed session the tools of external servers, which run outside its sandbox.
 * Without a network in its sandbox, it has neither `fetch` nor `search`.
 */
function containmentFilters(chain: SpawnChain, settings: Settings): PlacedFilter[] {
  const offline = "this session is sandboxed, and sandbox.network is not true for it";
  const network = hasNetwork(chain, settings) ? [] : [denying(["fetch", SEARCH_TOOL], offline)];
  const outside = settings.tools.mcp.servers
    .filter(({ allowSandboxed }) => !allowSandboxed)
    .map(({ name }) => {
      const because =
        "this session is sandboxed, the server runs outside of its sandbox, and " +
        `tools.mcp.servers.${name}.allowSandboxed is not true`;
      return denying([`${outsidePrefix(name)}*`], because);
    });
  return [...network, ...outside];
}

/**
 * Returns whether the filters could allow a tool whose name starts with `prefix`. Called before the tools of
 * a server are known, so that a server whose tools are all denied is not started.
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
    const kept = [...SESSION_TOOLS, SEND_FILE_TOOL].filter(
      (name) => !(mayNest && NESTING_TOOLS.includes(name)),
    );
    filters.push(
      denying(kept, "sub-agents have only the session tools that tools.subagents.tools.allow lists"),
    );
  }
  if (requesterOf(chain) === "gone") filters.push(...orphanFilters(chain[0], settings));
  return filters;
}

/** Returns filters for a session whose requester was deleted, derived from the requester's key. */
function orphanFilters({ spawnedBy = "" }: ChainLink, settings: Settings): PlacedFilter[] {
  const agent = findAgent(settings, agentIdInKey(spawnedBy) ?? "");
  const because = "the session that spawned this one was deleted, so this one may not use session tools";
  return [
    denying([...SESSION_TOOLS, SEND_FILE_TOOL], because),
    ...(agent === undefined
      ? []
      : [
          { where: `agents.list[${agent.id}].tools`, filter: agent.tools },
          ...serverFilters(agent.id, settings),
        ]),
  ];
}

/** A tool's own rule: why a session may not use the tool, or undefined if it may. */
export interface ToolRule {
  readonly tool: string;
  denied(chain: SpawnChain, settings: Settings): string | undefined;
}

const MEMORY: ToolRule = { tool: "memory", denied: memoryDenied };

/** Returns the filters of the first session of a chain, without those of its ancestors. */
function ownFilters(chain: SpawnChain, settings: Settings, rules: readonly ToolRule[]): PlacedFilter[] {
  const agent = agentOf(settings, chain[0]);
  const isSubagent = chain[0].spawnedBy !== undefined;
  return [
    { where: "tools", filter: settings.tools.filter },
    { where: `agents.list[${agent.id}].tools`, filter: agent.tools },
    ...(isSubagent ? subagentFilters(chain, settings) : []),
    ...[MEMORY, ...rules].flatMap((rule) => {
      const because = rule.denied(chain, settings);
      return because === undefined ? [] : [denying([rule.tool], because)];
    }),
    ...serverFilters(agent.id, settings),
    ...(settings.tools.search ? [] : [denying([SEARCH_TOOL], "tools.search is not set")]),
    ...(isSandboxed(chain, settings)
      ? [
          { where: "tools.sandbox.tools", filter: settings.tools.sandbox },
          ...containmentFilters(chain, settings),
        ]
      : []),
  ];
}

/**
 * Returns all filters of the first session of a chain: its own and those of its ancestors. `rules`: the own
 * rules of the tools in question. Default: they have none.
 */
export function filtersFor(
  chain: SpawnChain,
  settings: Settings,
  rules: readonly ToolRule[] = [],
): PlacedFilter[] {
  const requester = requesterOf(chain);
  const above = requester === undefined || requester === "gone" ? [] : filtersFor(requester, settings, rules);
  return [...ownFilters(chain, settings, rules), ...above];
}

/** Returns the tools that a session's own filters allow, but that its requester lacks. */
export function withheldTools(
  names: readonly string[],
  chain: SpawnChain,
  settings: Settings,
  rules: readonly ToolRule[] = [],
): string[] {
  const own = ownFilters(chain, settings, rules);
  const all = filtersFor(chain, settings, rules);
  return names.filter((name) => decideTool(name, own).allowed && !decideTool(name, all).allowed);
}
