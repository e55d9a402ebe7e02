// Shows one agent in the list: its purpose, its work, today's cost and failures, its rights, and its model.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { may } from "../gateway.ts";
import { Doing } from "../parts/doing.tsx";
import { FIGURES } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { ModelChoice, mayEditAgents } from "./edit.tsx";
import { mainSessionOf } from "./known.ts";
import { AgentMark } from "./mark.tsx";
import { rightsWords } from "./rights.ts";

/** Maximum number of active sessions that are listed. A link leads to the others. */
const ACTIVE_MAX = 3;

export interface RowProps {
  readonly agent: AgentDetails;
  /** Sessions with an unfinished run. */
  readonly active: readonly ListedRow[];
  readonly onChange: () => Promise<void>;
}

const sessionsHref = (agentId: string, only: string): string =>
  `#/sessions?${new URLSearchParams({ agent: agentId, only }).toString()}`;

/** Leads to the main session of an agent. A reader who may not see it has no link. */
export function Chat({ agent: { id, name = id, tools }, primary }: { agent: AgentDetails; primary?: true }) {
  const key = mainSessionOf(id);
  if (tools === undefined || key === undefined) return null;
  const action = may("operator.write") ? "Chat" : "Read";
  return (
    <a
      class={primary ? "button primary" : "button"}
      href={hrefOf({ view: "sessions", key })}
      aria-label={`${action} with ${safeLine(name)}`}
    >
      {action}
    </a>
  );
}

export function Names({ agent: { id, name = id, default: isDefault, runtime } }: { agent: AgentDetails }) {
  return (
    <>
      <Name text={name} />
      {name !== id && <Name as="span" class="soft small" text={id} />}
      {isDefault && <span class="chip">default</span>}
      {runtime !== "built-in" && <span class="chip">{runtime.toUpperCase()}</span>}
    </>
  );
}

/** Returns today's usage and limits, like `12.3k of 100k tokens today`, and whether a limit is reached. */
export function budgetUse({ budget: { dailyTokens, dailyCost } = {}, today }: AgentDetails) {
  const describeUse = (of: keyof typeof FIGURES, used: number | undefined, max: number | undefined) => {
    const { write, writeFull, unit } = FIGURES[of];
    const limit = max === undefined ? "" : `${used === undefined ? "at most" : " of"} ${write(max)}`;
    const words =
      used === undefined ? limit && `${limit}${unit} a day` : `${write(used)}${limit}${unit} today`;
    const full = used === undefined ? undefined : writeFull(used) + unit;
    return { words, full, isSpent: used !== undefined && max !== undefined && used >= max };
  };
  return [
    describeUse("cost", today?.cost, dailyCost),
    describeUse("tokens", today?.totalTokens, dailyTokens),
  ].filter(({ words }) => words !== "");
}

function Today({ agent }: { agent: AgentDetails }) {
  const { id, name = id, today, work } = agent;
  const states = (["running", "waiting", "queued"] as const).filter((state) => (work?.[state] ?? 0) > 0);
  const words = states.map((state) => `${work?.[state]} ${state}`).join(", ");
  const failed = today?.failed ?? 0;
  return (
    <p class="line soft">
      {work !== undefined && <State state={states[0] ?? "idle"} text={words || "idle"} />}
      {budgetUse(agent).map(({ words, full, isSpent }) => (
        <span key={words} class={isSpent ? "tone-bad toned" : ""} title={full}>
          {words}
        </span>
      ))}
      {failed > 0 && (
        <a
          class="tone-bad toned"
          href={sessionsHref(id, "failed")}
          aria-label={`${failed} failed today of ${safeLine(name)}`}
        >
          {failed} failed today
        </a>
      )}
    </p>
  );
}

export function Work({ agent, active }: RowProps) {
  const rights = rightsWords(agent);
  return (
    <>
      {agent.purpose !== undefined && <Name as="p" class="agent-purpose" text={agent.purpose} />}
      <Today agent={agent} />
      {active.length > 0 && (
        <ul class="agent-active">
          {active.slice(0, ACTIVE_MAX).map((row) => (
            <li key={row.key} class="line">
              <SessionLink sessionKey={row.key} /> <Doing row={row} />
            </li>
          ))}
          {active.length > ACTIVE_MAX && (
            <li>
              <a href={sessionsHref(agent.id, "running")}>{active.length - ACTIVE_MAX} more</a>
            </li>
          )}
        </ul>
      )}
      {rights !== undefined && (
        <p class="soft small agent-rights" title={rights}>
          {rights}
        </p>
      )}
    </>
  );
}

export function AgentRow(props: RowProps) {
  const { agent, onChange } = props;
  const mayChoose = mayEditAgents() && agent.runtime === "built-in";
  return (
    <li class="bar agent-row" data-item>
      <AgentMark id={agent.id} />
      <div class="stack agent-main">
        <h3>
          <a class="line agent-name" href={hrefOf({ view: "agents", agentId: agent.id })}>
            <Names agent={agent} />
          </a>
        </h3>
        <Work {...props} />
      </div>
      <div class="row end">
        {mayChoose && <ModelChoice agent={agent} onSaved={onChange} />}
        {!mayChoose && <Name as="span" class="soft" text={agent.model} />}
        <Chat agent={agent} />
      </div>
    </li>
  );
}
