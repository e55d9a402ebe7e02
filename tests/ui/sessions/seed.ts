// Inserts sessions into the store in one batch, and reads the names in the page's list.

import type { Locator, Page } from "playwright-core";
import type { Session } from "../../../src/core/shapes/session.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { sampleSession } from "../../store/samples.ts";

/** Fields of a session that a test sets. */
export type Seed = Partial<Session> & { readonly key: string };

/** Returns the agent in a session key, as the store does. */
function agentIn(key: string): string {
  return /^agent:([^:]+)/.exec(key)?.[1] ?? "main";
}

/** Adds sessions. Missing fields describe an old, idle session of the agent in the key. */
export async function seedSessions(store: Store, seeds: readonly Seed[]): Promise<void> {
  await store.transaction(async (tx) => {
    for (const seed of seeds) {
      const { key } = seed;
      const base = { sessionId: `id of ${key}`, agentId: agentIn(key), kind: "other" as const };
      await insertSession(tx, sampleSession({ ...base, ...seed }));
    }
  });
}

/** Returns sessions of different agents and kinds, newest first; every fifth has sub-agents. */
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

export const MAINS = ["writer", "research", "main"];
/** The time of the newest of many sessions. */
export const NEWEST = Date.UTC(2020, 0, 1);

/** A small tree: two sessions, sub-agents below the first, and one more below one of those. */
export const FAMILY: readonly Seed[] = [
  { key: "agent:main:chat:plan", label: "plan", updatedAt: 900, totalTokens: 12_345, cost: 0.5 },
  {
    key: "agent:main:telegram:group:7",
    label: "the group",
    kind: "group",
    groupChannel: "telegram",
    updatedAt: 800,
  },
  {
    key: "agent:research:subagent:one",
    label: "look it up",
    spawnedBy: "agent:main:chat:plan",
    updatedAt: 700,
  },
  { key: "agent:main:subagent:two", label: "write it", spawnedBy: "agent:main:chat:plan", updatedAt: 600 },
  {
    key: "agent:main:subagent:deep",
    label: "check it",
    spawnedBy: "agent:main:subagent:two",
    updatedAt: 500,
  },
  { key: "agent:main:chat:past", label: "long past", archivedAt: 400, updatedAt: 400 },
];

/** Returns the visible names in the list, from top to bottom. */
export const names = (page: Page): Promise<string[]> => page.locator(".session-name").allInnerTexts();
export const row = (page: Page, name: string | RegExp): Locator =>
  page.getByRole("treeitem", { name }).first();
export const tree = (page: Page): Locator => page.getByRole("tree");

/** Opens the menu with the filters of the session list. */
export const openFilters = (page: Page) => page.getByRole("button", { name: /^Filters/ }).click();
