// Decides which commands of a session need a person's approval.
// AM1: the strictest setting of the session's agent and of its ancestors' agents applies (I13).

import { agentIdInKey } from "../../shapes/session-key.ts";
import {
  type AgentSettings,
  type ApprovalMode,
  agentOf,
  findAgent,
  type Settings,
} from "../../shapes/settings/settings.ts";
import { isSandboxed, type SpawnChain } from "../sandbox-policy.ts";
import { riskOf } from "./risk.ts";

const STRICTNESS: readonly ApprovalMode[] = ["never", "risky", "always"];

interface Approval {
  readonly mode: ApprovalMode;
  /** The setting that decides. Absent: the default. */
  readonly setting?: string;
}

/** Returns an agent's approval mode for calls that a sandbox contains, or that nothing contains. */
export function approvalOfAgent(
  settings: Pick<Settings, "tools">,
  agent: Pick<AgentSettings, "id" | "tools">,
  contained: boolean,
): Approval {
  const own = agent.tools.exec?.approval;
  if (own !== undefined) return { mode: own, setting: `agents.list[${agent.id}].tools.exec.approval` };
  const mode = settings.tools.exec.approval;
  if (mode !== undefined) return { mode, setting: "tools.exec.approval" };
  return { mode: contained ? "never" : "risky" };
}

/** Returns the approval mode of a session's commands (AM1). */
export function approvalFor(chain: SpawnChain, settings: Settings): Approval {
  const contained = isSandboxed(chain, settings);
  const lost = findAgent(settings, agentIdInKey(chain.at(-1)?.spawnedBy ?? "") ?? "");
  const agents = [...chain.map((link) => agentOf(settings, link)), ...(lost === undefined ? [] : [lost])];
  const all = agents.map((agent) => approvalOfAgent(settings, agent, contained));
  return all.reduce((a, b) => (STRICTNESS.indexOf(b.mode) > STRICTNESS.indexOf(a.mode) ? b : a));
}

/** Returns why a person has to approve the command, or undefined if it runs at once. */
export function whyApprove(
  chain: SpawnChain,
  settings: Settings,
  { command, folder }: { readonly command: string; readonly folder: string },
): string | undefined {
  const { mode, setting } = approvalFor(chain, settings);
  switch (mode) {
    case "never":
      return undefined;
    case "always":
      return `${setting ?? "tools.exec.approval"} is always`;
    case "risky":
      return riskOf(command, folder);
  }
}
