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

/** A number of slots, which one call of `next` changes. */
interface Count {
  slots: number;
}

/** The free slots of a pool, and the slots that one call of `next` has assigned in each pool it names. */
interface Room {
  readonly free: number;
  readonly dealt: readonly Count[];
}

/** A queue during one call of `next`. Queues share the counts of their agent and of their pools. */
interface Offer {
  readonly lanes: Iterator<readonly [sessionKey: string, came: number]>;
  first: readonly [sessionKey: string, came: number] | undefined;
  readonly isLast: boolean;
  readonly agent: Count;
  readonly room: Room;
}

const cameOf = ({ first }: Offer): number => first?.[1] ?? 0;

function isOpen({ free, dealt }: Room): boolean {
  for (const { slots } of dealt) if (slots >= free) return false;
  return free > 0;
}

/** Returns the entry of a map, and creates it at the first call. */
function known<K, V>(entries: Map<K, V>, key: K, create: () => V): V {
  const found = entries.get(key);
  if (found !== undefined) return found;
  const made = create();
  entries.set(key, made);
  return made;
}

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
    const agents = new Map<string, Count>();
    const pools = new Map<string, Count>();
    const rooms = new Map<Pool, Room>();
    const agentOf = (id: string): Count => known(agents, id, () => ({ slots: use.heldBy(id) }));
    const roomOf = (pool: Pool): Room =>
      known(rooms, pool, () => ({
        free: use.free(pool),
        dealt: namesIn(pool).map((name) => known(pools, name, () => ({ slots: 0 }))),
      }));
    const offers: Offer[] = [];
    for (const queue of this.#queues.values()) {
      const lanes = queue.lanes.entries();
      const { agentId, pool, isLast = false } = queue;
      offers.push({ lanes, first: lanes.next().value, isLast, agent: agentOf(agentId), room: roomOf(pool) });
    }
    const chosen: string[] = [];
    const count = Math.min(most, roomOf(undefined).free);
    while (chosen.length < count) {
      const best = this.#best(offers);
      if (best?.first === undefined) break;
      chosen.push(best.first[0]);
      for (const dealt of [best.agent, ...best.room.dealt]) dealt.slots += 1;
      best.first = best.lanes.next().value;
    }
    return chosen;
  }

  /** Returns the queue whose first lane gets the next slot. */
  #best(offers: readonly Offer[]): Offer | undefined {
    let best: Offer | undefined;
    for (const offer of offers) {
      if (offer.first !== undefined && isOpen(offer.room) && this.#isBefore(offer, best)) best = offer;
    }
    return best;
  }

  #isBefore(offer: Offer, other: Offer | undefined): boolean {
    if (other === undefined) return true;
    const behind = Number(this.#isBehind(offer)) - Number(this.#isBehind(other));
    const order = behind || offer.agent.slots - other.agent.slots;
    return order === 0 ? cameOf(offer) < cameOf(other) : order < 0;
  }

  /** Returns whether the queue's first lane must wait for all lanes without `isLast`. */
  #isBehind(offer: Offer): boolean {
    return offer.isLast && this.#came - 1 - cameOf(offer) <= OVERTAKEN_MAX;
  }
}
