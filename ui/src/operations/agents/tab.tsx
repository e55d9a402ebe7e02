// The tab that shows each agent with its effective settings and current work, and each model with a test.

import type { AgentDetails } from "../../../../src/contract/methods/agents.ts";
import { ask } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import { usePolling } from "../polling.ts";
import "../rows.css";
import { AgentRow } from "./agent.tsx";
import "./agents.css";
import { AddAgent, mayEditAgents } from "./edit.tsx";
import { Models } from "./models.tsx";

/** Interval at which the agents' current work is read. */
const EVERY_MS = 5_000;

/** Returns for each model the ids of the agents that use it. */
function usersOf(agents: readonly AgentDetails[]): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>();
  for (const { id, model, fallbackModels, subagentModel } of agents) {
    for (const used of new Set([model, ...fallbackModels, subagentModel ?? model]))
      users.set(used, [...(users.get(used) ?? []), id]);
  }
  return users;
}

export function AgentsTab({ about }: { about: string | undefined }) {
  const read = useReading("agents", () => ask("agents.describe"));
  usePolling(EVERY_MS, read.again);
  useNews("config", read.again);
  const agents = read.value?.agents ?? [];
  return (
    <>
      <div class="bar head-bar">
        <h2>Agents</h2>
        {mayEditAgents() && read.value !== undefined && <AddAgent taken={agents.map(({ id }) => id)} />}
      </div>
      <p class="soft">The effective settings of each agent, where they come from, and its current work.</p>
      <Awaited {...read} />
      {read.value !== undefined && (
        <ul class="out-rows card" aria-label="Agents">
          {agents.map((agent) => (
            <AgentRow
              key={agent.id}
              agent={agent}
              opens={agent.id === about || agents.length === 1}
              mayRemove={agents.length > 1 && mayEditAgents()}
            />
          ))}
        </ul>
      )}
      {read.value !== undefined && <Models users={usersOf(agents)} />}
    </>
  );
}
