// The view of the agents: all of them with their work of today, and each with its settings.

import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { ask, listSessions } from "../gateway.ts";
import { usePolling } from "../operations/polling.ts";
import "../operations/rows.css";
import { DialogButton } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { Cost } from "../parts/time.tsx";
import { hrefOf, route } from "../route.ts";
import { AgentPage } from "./agent.tsx";
import "./agents.css";
import { mayEditAgents, NewAgent } from "./edit.tsx";
import { Models } from "./models.tsx";
import { AgentRow } from "./row.tsx";

/** Interval at which the agents' current work is read. */
const EVERY_MS = 5_000;
/** Maximum number of sessions with unfinished runs that are read. */
const ACTIVE_MAX = 200;

/** Shows the cost of all agents today, and how often they failed. Empty if the reader may not know. */
function Today({ agents }: { agents: readonly AgentDetails[] }) {
  const days = agents.flatMap(({ today }) => today ?? []);
  const cost = days.reduce((sum, day) => sum + day.cost, 0);
  const failed = days.reduce((sum, day) => sum + day.failed, 0);
  if (days.length === 0) return null;
  return (
    <span class="soft number">
      <Cost usd={cost} />
      {` today${failed > 0 ? `, ${failed} failed` : ""}`}
    </span>
  );
}

export function AgentsView() {
  const at = route.value;
  const read = useReading("agents", () => ask("agents.describe"));
  const running = useReading("active", () => listSessions({ only: "running", limit: ACTIVE_MAX }));
  const again = async (): Promise<void> => {
    await Promise.all([read.again(), running.again()]);
  };
  usePolling(EVERY_MS, again);
  useNews("config", () => void again());
  if (at.view !== "agents") return null;
  const { agentId } = at;
  const agents = read.value?.agents ?? [];
  const active = Map.groupBy(running.value?.sessions ?? [], (row) => row.agentId);
  const shown = agents.find(({ id }) => id === agentId);
  const rowOf = (agent: AgentDetails) => ({ agent, active: active.get(agent.id) ?? [], onChange: again });
  return (
    <div class="agents">
      {(read.value === undefined || read.problem !== undefined) && <Awaited {...read} />}
      {shown !== undefined && <AgentPage {...rowOf(shown)} isOnly={agents.length === 1} />}
      {read.value !== undefined && agentId !== undefined && shown === undefined && (
        <p class="empty">
          There is no such agent. <a href={hrefOf({ view: "agents" })}>All agents</a>
        </p>
      )}
      {read.value !== undefined && agentId === undefined && (
        <>
          <div class="bar agents-bar">
            <h2>Agents</h2>
            <Today agents={agents} />
            {mayEditAgents() && (
              <DialogButton
                text="Add agent"
                class="primary end"
                data-act=""
                dialog={(onClose) => <NewAgent taken={agents.map(({ id }) => id)} onClose={onClose} />}
              />
            )}
          </div>
          {agents.length === 0 ? (
            <p class="empty">This token covers no agent. Sign in with another one.</p>
          ) : (
            <ul class="rows card" data-list aria-label="Agents">
              {agents.map((agent) => (
                <AgentRow key={agent.id} {...rowOf(agent)} />
              ))}
            </ul>
          )}
          <Models />
        </>
      )}
    </div>
  );
}
