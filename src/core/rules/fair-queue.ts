// Decides which waiting lane (a session's queue of runs) gets the next slot (a permit to execute a run).
// Agents take turns. Of an agent's lanes, the one that has waited longest comes first.

import { namesIn, type Pool } from "./pools.ts";

/** A lane that waits for a slot. */
export interface WaitingLane {
  readonly agentId: string;
  readonly pool: Pool;
  /**
   * If true, the lane starts after all other lanes that can take a slot, until `OVERTAKEN_MAX` of them have
   * overtaken it.
   */
  readonly isLast?: boolean;
}

/** Number of later lanes that may overtake a lane with `isLast`. */
const OVERTAKEN_MAX = 1_000;

/** Current use of the slots. */
export interface SlotUse {
  /** Returns the number of slots that this agent holds. */
  heldBy(agentId: string): number;
  /**
   * Returns the number of free slots for a run of this pool, or for a run in no pool if `pool` is undefined.
   */
  free(pool: Pool): number;
}

/** The waiting lanes that have the same agent, pool and `isLast`, in order of arrival. */
interface Queue extends WaitingLane {
  readonly name: string;
  readonly lanes: Map<string, number>;
}

/** Slots that one call of `next` has assigned so far. */
interface Dealt {
  readonly byAgent: Map<string, number>;
  readonly byPool: Map<string, number>;
}

const add = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1);

/** The queue of lanes that wait for slots. */
export class FairQueue {
  readonly #queues = new Map<string, Queue>();
  readonly #queueOf = new Map<string, Queue>();
  #came = 0;

  get size(): number {
    return this.#queueOf.size;
  }

  has(sessionKey: string): boolean {
    return this.#queueOf.has(sessionKey);
  }

  /** Returns whether any lane with `isLast` is waiting. */
  hasLast(): boolean {
    return [...this.#queues.values()].some((queue) => queue.isLast === true);
  }

  /**
   * Adds a lane. A lane that already waits keeps its position, unless its agent, pool or `isLast` has
   * changed.
   */
  add(sessionKey: string, { agentId, pool, isLast = false }: WaitingLane): void {
    const known = this.#queueOf.get(sessionKey);
    const name = JSON.stringify([agentId, pool, isLast]);
    if (known?.name === name) return;
    this.delete(sessionKey);
    const queue = this.#queues.get(name) ?? { name, agentId, pool, isLast, lanes: new Map() };
    this.#queues.set(name, queue);
    this.#queueOf.set(sessionKey, queue);
    queue.lanes.set(sessionKey, this.#came++);
  }

  delete(sessionKey: string): void {
    const queue = this.#queueOf.get(sessionKey);
    if (queue === undefined) return;
    this.#queueOf.delete(sessionKey);
    queue.lanes.delete(sessionKey);
    if (queue.lanes.size === 0) this.#queues.delete(queue.name);
  }

  /**
   * Returns the lanes that get the free slots, at most `most`. Each slot goes to the agent with the fewest
   * slots, and among equal agents to the lane that has waited longest. A full pool only delays its own lanes.
   * A lane with `isLast` gets a slot only if no other lane can take it, or if too many lanes have overtaken
   * it.
   */
  next(use: SlotUse, most = Number.POSITIVE_INFINITY): string[] {
    const left = [...this.#queues.values()].map((queue) => {
      const lanes = queue.lanes.entries();
      return { queue, lanes, first: lanes.next().value };
    });
    const dealt: Dealt = { byAgent: new Map(), byPool: new Map() };
    const chosen: string[] = [];
    while (chosen.length < Math.min(most, use.free(undefined))) {
      const rest = left.filter(({ queue: { pool }, first }) => {
        const dealtOf = Math.max(0, ...namesIn(pool).map((one) => dealt.byPool.get(one) ?? 0));
        return first !== undefined && use.free(pool) > dealtOf;
      });
      const has = ({ queue: { agentId } }: (typeof rest)[number]): number =>
        use.heldBy(agentId) + (dealt.byAgent.get(agentId) ?? 0);
      const behind = ({ queue, first }: (typeof rest)[number]): number =>
        queue.isLast === true && this.#came - 1 - (first?.[1] ?? 0) <= OVERTAKEN_MAX ? 1 : 0;
      const [best] = rest.sort(
        (a, b) => behind(a) - behind(b) || has(a) - has(b) || (a.first?.[1] ?? 0) - (b.first?.[1] ?? 0),
      );
      if (best?.first === undefined) break;
      chosen.push(best.first[0]);
      add(dealt.byAgent, best.queue.agentId);
      for (const name of namesIn(best.queue.pool)) add(dealt.byPool, name);
      best.first = best.lanes.next().value;
    }
    return chosen;
  }
}
