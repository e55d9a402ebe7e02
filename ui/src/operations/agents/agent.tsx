// Shows one agent: a row with its work and, while the row is open, its settings.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { AgentDetails } from "../../../../src/contract/methods/agents.ts";
import { tick } from "../../clock.ts";
import { ask, coversAll, has } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { ago, counted, money, tokens } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { RemoveAgent } from "./edit.tsx";
import { Memory } from "./memory.tsx";
import { Prompt } from "./prompt.tsx";

/** Maximum number of running sessions that are listed. A link leads to the others. */
const RUNNING_MAX = 5;
const SOURCES = { agent: "this agent", defaults: "agents.defaults", "built-in": "default" };

const sessionsHref = (agentId: string, only = ""): string =>
  `#/sessions?${new URLSearchParams({ agent: agentId, ...(only && { only }) }).toString()}`;

function workWords({ work }: AgentDetails): { state: string; text: string } {
  if (work === undefined) return { state: "idle", text: "agent" };
  const { running, waiting, queued } = work;
  const words = [
    running > 0 ? `${running} running` : "",
    waiting > 0 ? `${waiting} waiting` : "",
    queued > 0 ? `${queued} queued` : "",
  ].filter((one) => one !== "");
  const state = running > 0 ? "running" : waiting > 0 ? "waiting" : queued > 0 ? "queued" : "idle";
  return { state, text: words.join(", ") || "idle" };
}

/** Returns today's usage and limits of the agent, like `12.3k of 100k tokens`. */
function budgetWords({ budget = {}, today }: AgentDetails): string[] {
  const { dailyTokens, dailyCost } = budget;
  const used = (spent: string | undefined, limit: string): string =>
    spent === undefined ? `at most ${limit} a day` : `${spent} of ${limit} today`;
  const spentTokens = today && tokens(today.totalTokens);
  const spentCost = today && money(today.cost);
  return [
    dailyTokens === undefined ? "" : `${used(spentTokens, `${tokens(dailyTokens)} tokens`)}`,
    dailyCost === undefined ? "" : used(spentCost, money(dailyCost)),
    budget.dailyTokens === undefined && budget.dailyCost === undefined && today
      ? `${spentTokens} tokens, ${spentCost} today`
      : "",
  ].filter((one) => one !== "");
}

/** Returns true if the agent has used up today's budget. */
function isSpent({ budget, today }: AgentDetails): boolean {
  if (budget === undefined || today === undefined) return false;
  const { dailyTokens = Number.POSITIVE_INFINITY, dailyCost = Number.POSITIVE_INFINITY } = budget;
  return today.totalTokens >= dailyTokens || today.cost >= dailyCost;
}

function Setting(props: { name: string; source?: string | undefined; children: ComponentChildren }) {
  const { name, source, children } = props;
  return (
    <div class="setting">
      <dt>{name}</dt>
      <dd>
        {children}
        {source !== undefined && <span class="setting-source soft"> · {source}</span>}
      </dd>
    </div>
  );
}

function Tools({ agent: { tools = [], withheld = [] } }: { agent: AgentDetails }) {
  return (
    <>
      <span class="chips">
        {tools.map((name) => (
          <code key={name} class="chip">
            <Name text={name} />
          </code>
        ))}
        {tools.length === 0 && "none"}
      </span>
      {withheld.length > 0 && (
        <details>
          <summary>{counted(withheld.length, "other tool")} withheld</summary>
          <ul class="withheld">
            {withheld.map(({ name, reason }) => (
              <li key={name}>
                <code>
                  <Name text={name} />
                </code>{" "}
                <span class="soft">
                  <Name text={reason} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Running({ agentId, running }: { agentId: string; running: number | undefined }) {
  const key = `${agentId} ${running}`;
  const list = useReading(key, () => ask("sessions.list", { agentId, only: "running", limit: RUNNING_MAX }));
  const sessions = list.value?.sessions ?? [];
  if (list.value === undefined) return <Awaited {...list} />;
  return (
    <>
      {sessions.length === 0 && "none"}
      <ul class="running-sessions">
        {sessions.map(({ key: sessionKey, state, updatedAt }) => (
          <li key={sessionKey}>
            <State state={state} /> <SessionLink sessionKey={sessionKey} />{" "}
            <span class="soft">{ago(updatedAt, tick.value)}</span>
          </li>
        ))}
      </ul>
      {sessions.length > 0 && <a href={sessionsHref(agentId, "running")}>All running sessions</a>}
    </>
  );
}

function Code({ text }: { text: string }) {
  return (
    <code>
      <Name text={text} />
    </code>
  );
}

/** Explains that the model of an ACP agent is chosen by its own program. */
function ChosenModel({ agent: { program } }: { agent: AgentDetails }) {
  return (
    <>
      chosen by its program
      {program !== undefined && (
        <>
          , <Code text={program} />
        </>
      )}
    </>
  );
}

function Settings({ agent }: { agent: AgentDetails }) {
  const { sandbox, sources = {}, spawns, budget } = agent;
  const source = (path: string): string | undefined => {
    const from = sources[path];
    return from === undefined ? undefined : SOURCES[from];
  };
  const isAcp = agent.runtime === "acp";
  return (
    <dl class="settings">
      <Setting name="Model" source={isAcp ? undefined : source("model")}>
        {isAcp ? <ChosenModel agent={agent} /> : <Code text={agent.model} />}
      </Setting>
      {!isAcp && (
        <Setting name="Fallbacks" source={source("fallbackModels")}>
          {agent.fallbackModels.length === 0 ? "none" : <Name text={agent.fallbackModels.join(", then ")} />}
        </Setting>
      )}
      <Setting name="Thinking" source={source("thinking")}>
        {agent.thinking}
      </Setting>
      <Setting name="Sandbox" source={source("sandbox.mode")}>
        {sandbox.mode}
        {sandbox.mode !== "off" && `, ${sandbox.backend}, ${sandbox.network ? "with" : "without"} network`}
      </Setting>
      {agent.today !== undefined && (
        <Setting
          name="Budget"
          source={
            budget && source(budget.dailyCost === undefined ? "budget.dailyTokens" : "budget.dailyCost")
          }
        >
          {budget === undefined ? "no limit" : budgetWords(agent).join("; ")}
        </Setting>
      )}
      <Setting name="Calls per run" source={source("maxModelCalls")}>
        at most {agent.maxModelCalls.toLocaleString()}
      </Setting>
      <Setting name="May spawn" source={source("subagents.allowAgents")}>
        <Name text={spawns.includes("*") ? "every agent" : ["itself", ...spawns].join(", ")} />
      </Setting>
      {agent.workspace !== undefined && (
        <Setting name="Workspace" source={source("workspace")}>
          <Code text={agent.workspace} />
        </Setting>
      )}
      {agent.tools !== undefined && (
        <Setting name="Tools">
          <Tools agent={agent} />
        </Setting>
      )}
      {!isAcp && coversAll() && has("agents.prompt") && (
        <>
          <Setting name="Prompt">
            <Prompt agentId={agent.id} />
          </Setting>
          <Setting name="Memory">
            <Memory agentId={agent.id} />
          </Setting>
        </>
      )}
      <Setting name="Running">
        <Running agentId={agent.id} running={agent.work?.running} />
      </Setting>
    </dl>
  );
}

export function AgentRow(props: {
  agent: AgentDetails;
  opens: boolean;
  /** Whether the open row has a button that removes the agent. */
  mayRemove: boolean;
}) {
  const { agent, opens, mayRemove } = props;
  const [isOpen, setOpen] = useState(opens);
  const { id, name, work } = agent;
  const { state, text } = workWords(agent);
  return (
    <li class="out-row out-wide agent-row">
      <div class="row-state">
        {work !== undefined && <State state={state} text={text} />}
        {isSpent(agent) && <span class="chip tone-bad">budget used</span>}
      </div>
      <div class="row-main">
        <p class="row-title">
          <button
            type="button"
            class="row-text agent-name"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Name text={name ?? id} />
          </button>
          {name !== undefined && name !== id && (
            <span class="soft">
              <Name text={id} />
            </span>
          )}
          {agent.default && <span class="chip">default</span>}
          {agent.runtime === "acp" && <span class="chip">ACP</span>}
        </p>
        <p class="soft">
          <Name text={[agent.model, ...budgetWords(agent)].join(" · ")} />
        </p>
        {isOpen && <Settings agent={agent} />}
        {isOpen && mayRemove && <RemoveAgent agent={agent} />}
      </div>
      <div class="row-actions">
        <a href={sessionsHref(id)}>
          Sessions
          <span class="visually-hidden"> of {id}</span>
        </a>
      </div>
    </li>
  );
}
