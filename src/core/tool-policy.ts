// Owns which tools a session has, from the filters that apply to it.
// TP1: a matching deny in any filter always wins.
// TP2: every filter with a non-empty allow list must list the tool.
// TP3: what a session may not use, nobody that it spawned may use (I13): the filters of the requester, and of
//      its requester, hold for it too, as they are at this moment.

import { matchesPattern } from "./pattern.ts";
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

/** `error` names the setting that decided. */
export type ToolVerdict = { readonly allowed: true } | { readonly allowed: false; readonly error: string };

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
  return { allowed: true };
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
    ...(agent === undefined ? [] : [{ where: `agents.list[${agent.id}].tools`, filter: agent.tools }]),
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
    ...(isSandboxed(chain, settings)
      ? [{ where: "tools.sandbox.tools", filter: settings.tools.sandbox }]
      : []),
  ];
}

/** All filters that hold for the first session of a chain: its own, its requester's, and so on (TP3). */
export function filtersFor(chain: SpawnChain, settings: Settings): PlacedFilter[] {
  const requester = requesterOf(chain);
  const above = requester === undefined || requester === "gone" ? [] : filtersFor(requester, settings);
  return [...ownFilters(chain, settings), ...above];
}

/** Which of these tools the first session of a chain has. */
export function toolNamesFor(names: readonly string[], chain: SpawnChain, settings: Settings): string[] {
  const filters = filtersFor(chain, settings);
  return names.filter((name) => decideTool(name, filters).allowed);
}

/** Which of these tools a session would have by its own rules, and lacks because its requester does. */
export function withheldTools(names: readonly string[], chain: SpawnChain, settings: Settings): string[] {
  const own = ownFilters(chain, settings);
  const all = filtersFor(chain, settings);
  return names.filter((name) => decideTool(name, own).allowed && !decideTool(name, all).allowed);
}
