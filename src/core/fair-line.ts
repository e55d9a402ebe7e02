// Decides whose turn it is when lanes wait for execution slots: agents take turns, and the lanes of one agent
// stand in one queue.

/** A lane that waits for a slot. */
export interface WaitingLane {
  readonly agentId: string;
  /** Its pool of slots; undefined: it needs only a slot. */
  readonly pool: string | undefined;
}

/** How the slots are used at this moment. */
export interface SlotUse {
  /** Slots that this agent holds. */
  heldBy(agentId: string): number;
  /** Slots that a new run of this pool could take; undefined: a run of no pool. */
  free(pool: string | undefined): number;
}

/** Lanes of one agent and one pool, with the order in which they came. */
interface Queue extends WaitingLane {
  readonly lanes: Map<string, number>;
}

/** Slots given so far in this round. */
interface Dealt {
  readonly byAgent: Map<string, number>;
  readonly byPool: Map<string | undefined, number>;
}

const add = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1);

/** The lanes that wait for slots. */
export class FairLine {
  readonly #queues = new Map<string, Queue>();
  readonly #queueOf = new Map<string, Queue>();
  #came = 0;

  get size(): number {
    return this.#queueOf.size;
  }

  has(sessionKey: string): boolean {
    return this.#queueOf.has(sessionKey);
  }

  /** A lane that waits already keeps its place. */
  add(sessionKey: string, { agentId, pool }: WaitingLane): void {
    const known = this.#queueOf.get(sessionKey);
    if (known?.agentId === agentId && known.pool === pool) return;
    this.delete(sessionKey);
    const name = JSON.stringify([agentId, pool]);
    const queue = this.#queues.get(name) ?? { agentId, pool, lanes: new Map() };
    this.#queues.set(name, queue);
    this.#queueOf.set(sessionKey, queue);
    queue.lanes.set(sessionKey, this.#came++);
  }

  delete(sessionKey: string): void {
    const queue = this.#queueOf.get(sessionKey);
    if (queue === undefined) return;
    this.#queueOf.delete(sessionKey);
    queue.lanes.delete(sessionKey);
    if (queue.lanes.size === 0) this.#queues.delete(JSON.stringify([queue.agentId, queue.pool]));
  }

  /**
   * The lanes that get the free slots, at most `most`: each slot goes to the agent that has the fewest, and
   * of several such agents to the one whose lane has waited longest. A full pool holds back its own lanes
   * only.
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
        return first !== undefined && use.free(pool) > (dealt.byPool.get(pool) ?? 0);
      });
      const has = ({ queue: { agentId } }: (typeof rest)[number]): number =>
        use.heldBy(agentId) + (dealt.byAgent.get(agentId) ?? 0);
      const [best] = rest.sort((a, b) => has(a) - has(b) || (a.first?.[1] ?? 0) - (b.first?.[1] ?? 0));
      if (best?.first === undefined) break;
      chosen.push(best.first[0]);
      add(dealt.byAgent, best.queue.agentId);
      add(dealt.byPool, best.queue.pool);
      best.first = best.lanes.next().value;
    }
    return chosen;
  }
}
