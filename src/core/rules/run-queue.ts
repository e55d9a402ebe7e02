// Names the queue in which a run waits for a slot (a permit to execute), and decides which queue is next.
// The name has the priority first: a person's message before turns between sessions, these before the work of
// sub-agents, and jobs last. Within one priority, agents take turns.

import type { Run } from "../shapes/run.ts";
import { isSubagentKey } from "../shapes/session-key.ts";

/** Queue of the texts that are only appended to a transcript. They need no slot. */
export const APPENDS = "-";

const [PEOPLE, TURNS, SUBAGENTS, JOBS] = ["0", "1", "2", "3"] as const;

/** Returns the queue of a run. Queues are served in the order of their names, as far as slots allow. */
export function nameQueue(run: Pick<Run, "kind" | "agentId" | "sessionKey" | "flow" | "input">): string {
  if (run.kind === "append") return APPENDS;
  if (isSubagentKey(run.sessionKey)) return SUBAGENTS + run.agentId;
  const source = run.input.provenance?.kind;
  if (source === undefined && run.flow === undefined) return PEOPLE + run.agentId;
  const isJob = source === "cron" || source === "hook" || source === "node";
  return (isJob ? JOBS : TURNS) + run.agentId;
}

/** Returns whether the runs of a queue count against the limit of sub-agents. */
export function isSubagentQueue(queue: string): boolean {
  return queue.startsWith(SUBAGENTS);
}

/** Returns whether a run of the first queue must get a slot before one of the second. */
export function hasPriority(queue: string, over: string): boolean {
  return queue.slice(0, 1) < over.slice(0, 1);
}

export interface QueueHead {
  readonly queue: string;
  /** True if the run has started, and waits to continue. Such runs go before those that have not. */
  readonly isResuming: boolean;
  /** Time from which the run may start, in ms since 1970. */
  readonly readyAt: number;
}

export interface AgentUse {
  readonly held: number;
  /** Greater for an agent that got a slot later. */
  readonly served: number;
}

/**
 * Returns the head that gets the next slot. Among the queues of one priority, the agent with the fewest slots
 * comes first, then the one that got its last slot earlier, then the run that has waited longest.
 */
export function nextHead<T extends QueueHead>(
  heads: readonly T[],
  useOf: (agentId: string) => AgentUse,
): T | undefined {
  const ranked = heads.map((head) => {
    const { held, served } = useOf(head.queue.slice(1));
    return { head, rank: [head.queue.charCodeAt(0), Number(!head.isResuming), held, served, head.readyAt] };
  });
  return ranked.toSorted((one, other) => {
    const at = one.rank.findIndex((value, index) => value !== other.rank[index]);
    return at < 0 ? 0 : (one.rank[at] ?? 0) - (other.rank[at] ?? 0);
  })[0]?.head;
}
