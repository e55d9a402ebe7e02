// Sessions for the page's tests, put into the store at once.

import type { Session } from "../../src/core/session.ts";
import { insertSession } from "../../src/store/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { sampleSession } from "../store/samples.ts";

/** What a test says of a session. */
export type Seed = Partial<Session> & { readonly key: string };

/** The agent in a key, as the store would have it. */
function agentIn(key: string): string {
  return /^agent:([^:]+)/.exec(key)?.[1] ?? "main";
}

/** Adds sessions; one that says no more than its key is an old, idle one of its agent. */
export async function seedSessions(store: Store, seeds: readonly Seed[]): Promise<void> {
  await store.transaction(async (tx) => {
    for (const seed of seeds) {
      const { key } = seed;
      const base = { sessionId: `id of ${key}`, agentId: agentIn(key), kind: "other" as const };
      await insertSession(tx, sampleSession({ ...base, ...seed }));
    }
  });
}

/** So many conversations of different agents and kinds, the first the newest; each fifth has sub-agents. */
export function manySessions(count: number, newestAt: number): Seed[] {
  const agents = ["main", "research", "writer"];
  return Array.from({ length: count }, (_, n): Seed[] => {
    const agent = agents[n % 3] ?? "main";
    const key = n % 4 === 0 ? `agent:${agent}:telegram:group:${n}` : `agent:${agent}:chat:c${n}`;
    const at = newestAt - n * 60_000;
    const used = { totalTokens: n * 137, cost: n % 2 === 0 ? n * 0.0031 : 0 };
    const group = n % 4 === 0 ? ({ kind: "group", groupChannel: "telegram" } as const) : {};
    const label = { label: `conversation ${n}`, updatedAt: at, ...used, ...group };
    const below = Array.from({ length: n % 5 === 0 ? 3 : 0 }, (_, child) => ({
      key: `agent:${agent}:subagent:${n}-${child}`,
      label: `part ${child} of ${n}`,
      spawnedBy: key,
      spawnDepth: 1,
      updatedAt: at - child,
    }));
    return [{ key, ...label }, ...below];
  }).flat();
}
