// Owns which sessions run contained.
// SB1: a session runs contained if its agent's `sandbox.mode` says so, if that was agreed at its spawn, or if
//      whoever spawned it does (I13). It is asked again at every run, with the settings of that moment.
// SB2: a contained session has the network only where every contained session above it has it too (I13).

import type { Session } from "./session.ts";
import { agentIdInKey } from "./session-key.ts";
import { agentOf, findAgent, type SandboxMode, type Settings } from "./settings.ts";
import type { SpawnFacts } from "./spawn.ts";

/** What of a session its rights depend on. */
export type ChainLink = Pick<Session, "key" | "agentId" | "kind" | "spawnDepth" | "spawnedBy"> & {
  readonly spawn?: Pick<SpawnFacts, "sandboxed">;
};

/**
 * A session, who spawned it, who spawned that one, and so on, as far as they still exist. Never empty; the
 * requester of the last one, if it has one, is gone.
 */
export type SpawnChain = readonly [ChainLink, ...ChainLink[]];

/** The chain of a session's requester; "gone" where that is no more, undefined where nobody spawned it. */
export function requesterOf(chain: SpawnChain): SpawnChain | "gone" | undefined {
  const [own, next, ...rest] = chain;
  if (own.spawnedBy === undefined) return undefined;
  return next === undefined ? "gone" : [next, ...rest];
}

/** Whether a mode contains a session of this kind. */
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

/** Who is gone had an agent, whose setting still counts; its kind is not known any more. */
function lostRequesterIs(last: ChainLink | undefined, settings: Settings): boolean {
  if (last?.spawnedBy === undefined) return false;
  const agent = findAgent(settings, agentIdInKey(last.spawnedBy) ?? "");
  return agent !== undefined && containsSubagents(agent);
}

/** Whether tool calls of the first session of the chain are contained. */
export function isSandboxed(chain: SpawnChain, settings: Settings): boolean {
  return (
    chain.some(
      (link) => link.spawn?.sandboxed === true || contains(agentOf(settings, link).sandbox.mode, link.kind),
    ) || lostRequesterIs(chain.at(-1), settings)
  );
}

/** Whether the first session of the chain, contained, has the network. */
export function hasNetwork(chain: SpawnChain, settings: Settings): boolean {
  if (!agentOf(settings, chain[0]).sandbox.network) return false;
  const requester = requesterOf(chain);
  if (requester === undefined || requester === "gone" || !isSandboxed(requester, settings)) return true;
  return hasNetwork(requester, settings);
}

/** Whether a sub-agent of this agent would run contained by the agent's own setting. */
export function containsSubagents(agent: { sandbox: { mode: SandboxMode } }): boolean {
  return contains(agent.sandbox.mode, "other");
}
