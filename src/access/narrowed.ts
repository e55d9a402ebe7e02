// Combines the settings with which a run began with newer ones, so that a right that was narrowed meanwhile
// is narrow at the run's next tool call (I13), and a right that was widened is not used by the run.
// NR1: the combination allows an access, a spawn, a lack of a sandbox or a command without an approval
//      only if both settings allow it. Tool filters are the newer ones: a run gets its list of tools once,
//      when it begins.

import {
  type AgentSettings,
  type AgentToAgentSettings,
  type ApprovalMode,
  findAgent,
  SANDBOX_GIT,
  SANDBOX_MODES,
  type SandboxSettings,
  type Settings,
  VISIBILITY_MODES,
} from "../core/shapes/settings/settings.ts";
import { matchesAny } from "../core/text/pattern.ts";

const narrower = <T>(order: readonly T[], a: T, b: T): T => (order.indexOf(a) < order.indexOf(b) ? a : b);

/** Replaces patterns by the ids that match both lists, because patterns have no intersection. */
function agentToAgent(begun: Settings, now: Settings): AgentToAgentSettings {
  const [a, b] = [begun.tools.agentToAgent, now.tools.agentToAgent];
  if (!a.enabled || a.allow.length === 0) return { ...b, enabled: a.enabled && b.enabled };
  if (b.allow.length === 0) return { ...a, enabled: b.enabled };
  const ids = now.agents.map(({ id }) => id);
  const allow = ids.filter((id) => matchesAny(a.allow, id) && matchesAny(b.allow, id));
  // An empty list would allow all agents.
  return { enabled: b.enabled && allow.length > 0, allow };
}

function sandbox(a: SandboxSettings, b: SandboxSettings): SandboxSettings {
  return {
    ...b,
    mode: narrower([...SANDBOX_MODES].reverse(), a.mode, b.mode),
    sessionToolsVisibility: narrower(["spawned", "all"], a.sessionToolsVisibility, b.sessionToolsVisibility),
    network: a.network && b.network,
    git: narrower(SANDBOX_GIT, a.git, b.git),
  };
}

function allowAgents(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a.includes("*")) return b;
  return b.includes("*") ? a : a.filter((id) => b.includes(id));
}

/** Returns the stricter approval mode. Without a mode, only a sandbox lifts the need for approvals. */
function approval(a: ApprovalMode | undefined, b: ApprovalMode | undefined): ApprovalMode | undefined {
  return narrower(["always", "risky", undefined, "never"], a, b);
}

/** Returns the agent's approval mode in its own settings, wherever it is set. */
function withApproval(one: AgentSettings, { tools }: Settings): AgentSettings {
  const mode = one.tools.exec?.approval ?? tools.exec.approval;
  return { ...one, tools: { ...one.tools, exec: { approval: mode } } };
}

function agent(a: AgentSettings, b: AgentSettings): AgentSettings {
  const mode = approval(a.tools.exec?.approval, b.tools.exec?.approval);
  const subagents = {
    ...b.subagents,
    allowAgents: allowAgents(a.subagents.allowAgents, b.subagents.allowAgents),
  };
  const tools = { ...b.tools, exec: { approval: mode } };
  return { ...b, workspace: a.workspace, sandbox: sandbox(a.sandbox, b.sandbox), subagents, tools };
}

/** Returns the settings for a tool call of a run that began with `begun`. */
export function narrowSettings(begun: Settings, now: Settings): Settings {
  const { maxChildren, maxSpawnDepth } = begun.subagents;
  return {
    ...now,
    agents: now.agents.map((one) => {
      const before = findAgent(begun, one.id);
      const after = withApproval(one, now);
      return before === undefined ? after : agent(withApproval(before, begun), after);
    }),
    subagents: {
      ...now.subagents,
      maxChildren: Math.min(maxChildren, now.subagents.maxChildren),
      maxSpawnDepth: Math.min(maxSpawnDepth, now.subagents.maxSpawnDepth),
    },
    tools: {
      ...now.tools,
      visibility: narrower(VISIBILITY_MODES, begun.tools.visibility, now.tools.visibility),
      agentToAgent: agentToAgent(begun, now),
      exec: { ...now.tools.exec, approval: undefined },
    },
  };
}
