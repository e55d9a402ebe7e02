// Decides which sessions run in a sandbox.
// SB1: a session is sandboxed if its agent's `sandbox.mode` or its spawn requires it, or if its requester is
//      sandboxed (I13). This is checked before every run, with the current settings.
// SB2: a sandboxed session has network access only if all its sandboxed ancestors have it as well (I13).

import type { Session } from "../shapes/session.ts";
import { agentIdInKey } from "../shapes/session-key.ts";
import { agentOf, findAgent, type SandboxMode, type Settings } from "../shapes/settings/settings.ts";
import type { SpawnFacts } from "../shapes/spawn.ts";

/** Fields of a session that its rights depend on. */
export type ChainLink = Pick<Session, "key" | "agentId" | "kind" | "spawnDepth" | "spawnedBy"> & {
  readonly spawn?: Pick<SpawnFacts, "sandboxed">;
};

/**
 * A session, its requester, the requester's requester, and so on. Never empty. If the last session has a
 * requester, that requester was deleted.
 */
export type SpawnChain = readonly [ChainLink, ...ChainLink[]];

/**
 * Returns the chain that starts with the session's requester. "gone" if the requester was deleted; undefined
 * if the session was not spawned.
 */
export function requesterOf(chain: SpawnChain): SpawnChain | "gone" | undefined {
  const [own, next, ...rest] = chain;
  if (own.spawnedBy === undefined) return undefined;
  return next === undefined ? "gone" : [next, ...rest];
}

/** Returns whether a sandbox mode applies to this kind of session. */
function contains(mode: SandboxMode, kind: Session["kind"]): boolean {
  switch (mode) {
    case "off":
      return false;
    case "non-main":
      return kind !== "main";
    case "all":
      return true;
  }
}

/**
 * Returns whether a deleted requester was sandboxed. Its key still names its agent, so the agent's setting
 * applies. The kind of the requester is unknown.
 */
function lostRequesterIs(last: ChainLink | undefined, settings: Settings): boolean {
  if (last?.spawnedBy === undefined) return false;
  const agent = findAgent(settings, agentIdInKey(last.spawnedBy) ?? "");
  return agent !== undefined && containsSubagents(agent);
}

/** Returns whether the first session of the chain runs its tool calls in a sandbox. */
export function isSandboxed(chain: SpawnChain, settings: Settings): boolean {
  return (
    chain.some(
      (link) => link.spawn?.sandboxed === true || contains(agentOf(settings, link).sandbox.mode, link.kind),
    ) || lostRequesterIs(chain.at(-1), settings)
  );
}

/** Returns whether the first session of the chain has network access in its sandbox. */
export function hasNetwork(chain: SpawnChain, settings: Settings): boolean {
  if (!agentOf(settings, chain[0]).sandbox.network) return false;
  const requester = requesterOf(chain);
  if (requester === undefined || requester === "gone" || !isSandboxed(requester, settings)) return true;
  return hasNetwork(requester, settings);
}

/** Returns whether the agent's own setting puts its sub-agents into a sandbox. */
export function containsSubagents(agent: { sandbox: { mode: SandboxMode } }): boolean {
  return contains(agent.sandbox.mode, "other");
}
