// Decides which commands of a session need a person's approval.
// AM1: the strictest setting of the session's agent and of its ancestors' agents applies (I13).
// AM2: git asks in a folder in which a sandbox can change the repository: between the check of its
//      configuration and git's own reading, such a program could name one that runs outside.

import { agentIdInKey } from "../../shapes/session-key.ts";
import {
  type AgentSettings,
  type ApprovalMode,
  agentOf,
  findAgent,
  type Settings,
} from "../../shapes/settings/settings.ts";
import { isSandboxed, type SpawnChain } from "../sandbox-policy.ts";
import { type FreeReading, readFree } from "./free.ts";

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

/** Returns whether sandboxed sessions can change the git repository of a folder (AM2). */
function isGitWritable({ agents }: Settings, folder: string): boolean {
  return agents.some(
    ({ workspace, sandbox }) => workspace === folder && sandbox.mode !== "off" && sandbox.git === "write",
  );
}

/**
 * Decides about a command of a session: it runs as it is, it runs without a question if the caller finds its
 * paths and its repository harmless, or a person has to approve it.
 */
export function readApproval(
  chain: SpawnChain,
  settings: Settings,
  { command, folder }: { readonly command: string; readonly folder: string },
): FreeReading | { readonly kind: "runs" } {
  const { mode, setting } = approvalFor(chain, settings);
  if (mode === "never") return { kind: "runs" };
  if (mode === "always") return { kind: "asks", why: `${setting ?? "tools.exec.approval"} is always` };
  const reading = readFree(command);
  return reading.kind === "free" && reading.usesGit && isGitWritable(settings, folder)
    ? { kind: "asks", why: "sandboxed sessions may change the repository while git runs (sandbox.git)" }
    : reading;
}
