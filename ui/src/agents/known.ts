// Owns the list of agents on the page, which every view shows by their names and marks. It is read after each
// connect, and when the configuration has changed.

import { signal } from "@preact/signals";
import { batched } from "../clock.ts";
import { ask, on, onSignedOut, whenConnected } from "../gateway.ts";
import { type AgentList, agentIn, agentNameIn } from "./face.ts";

const READ_AFTER_MS = 300;

/** Undefined until it was read. */
export const agents = signal<AgentList | undefined>(undefined);

export function agentName(id: string): string {
  return agentNameIn(agents.value, id);
}

/** Returns the key of an agent's main session. Undefined until the agents were read. */
export function mainSessionOf(id: string): string | undefined {
  const { mainKey, scope } = agents.value ?? {};
  if (mainKey === undefined) return undefined;
  return scope === "global" ? "global" : `agent:${id}:${mainKey}`;
}

/** Returns whether another program, which chooses its own model, runs the turns of a session. */
export function isElsewhere(sessionKey: string): boolean {
  const agentId = agentIn(sessionKey);
  const model = agents.value?.agents.find(({ id }) => id === agentId)?.model;
  return sessionKey.startsWith("peer:") || model === `acp/${agentId}` || model === `a2a/${agentId}`;
}

async function readAgents(): Promise<void> {
  // Ignore an error, because the list is read again after a reconnect, and ids serve as names.
  const answer = await ask("agents.list").catch(() => undefined);
  // Every view needs the list, so it must be one whatever a gateway answers.
  if (Array.isArray(answer?.agents)) agents.value = answer;
}

whenConnected(() => void readAgents());
on(
  "config",
  batched(READ_AFTER_MS, () => void readAgents()),
);

onSignedOut(() => {
  agents.value = undefined;
});
