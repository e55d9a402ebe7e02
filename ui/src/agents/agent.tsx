// Shows one agent: its work and rights, and its settings as a form, or as text for readers who may not change
// them.

import type { ComponentChildren } from "preact";
import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { coversAll, has } from "../gateway.ts";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { hrefOf } from "../route.ts";
import { mayEditAgents, RemoveAgent } from "./edit.tsx";
import { AgentForm } from "./form.tsx";
import { AgentMark } from "./mark.tsx";
import { Memory } from "./memory.tsx";
import { Prompt } from "./prompt.tsx";
import { Chat, Names, type RowProps, Work } from "./row.tsx";
import { budgetWords } from "./words.ts";

const SOURCES = { agent: "this agent", defaults: "all agents", "built-in": "default" };

function Setting(props: { name: string; source?: string | undefined; children: ComponentChildren }) {
  const { name, source, children } = props;
  return (
    <div class="setting">
      <dt>{name}</dt>
      <dd>
        {children}
        {source !== undefined && <span class="small soft"> · {source}</span>}
      </dd>
    </div>
  );
}

function Tools({ agent: { tools = [], withheld = [] } }: { agent: AgentDetails }) {
  return (
    <>
      <span class="line chips">
        {tools.map((name) => (
          <Name as="code" key={name} class="chip" text={name} />
        ))}
        {tools.length === 0 && "none"}
      </span>
      {withheld.length > 0 && (
        <details>
          <summary>{counted(withheld.length, "other tool")} withheld</summary>
          <ul class="withheld">
            {withheld.map(({ name, reason }) => (
              <li key={name}>
                <Name as="code" text={name} /> <Name as="span" class="soft" text={reason} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Code({ text }: { text: string }) {
  return <Name as="code" text={text} />;
}

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

/** Shows the settings in force, for readers who have no form for them. */
function Values({ agent }: { agent: AgentDetails }) {
  const { sandbox, sources = {}, spawns, budget } = agent;
  const source = (path: string): string | undefined => {
    const from = sources[path];
    return from === undefined ? undefined : SOURCES[from];
  };
  const isAcp = agent.runtime === "acp";
  return (
    <>
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
    </>
  );
}

function Settings({ agent, inForm }: { agent: AgentDetails; inForm: boolean }) {
  return (
    <dl class="settings card">
      {!inForm && <Values agent={agent} />}
      {agent.tools !== undefined && (
        <Setting name="Tools">
          <Tools agent={agent} />
        </Setting>
      )}
      {agent.runtime === "built-in" && coversAll() && has("agents.prompt") && (
        <>
          <Setting name="Prompt">
            <Prompt agentId={agent.id} />
          </Setting>
          <Setting name="Memory">
            <Memory agentId={agent.id} />
          </Setting>
        </>
      )}
    </dl>
  );
}

export function AgentPage(props: RowProps & { isOnly: boolean }) {
  const { agent, isOnly, onChange } = props;
  const mayEdit = mayEditAgents();
  return (
    <article class="agent-page" aria-labelledby="agent-title">
      <header class="bar agent-head">
        <a class="back" href={hrefOf({ view: "agents" })} aria-label="All agents">
          ←
        </a>
        <AgentMark id={agent.id} />
        <h2 id="agent-title" class="line">
          <Names agent={agent} />
        </h2>
        <Chat agent={agent} primary />
      </header>
      <Work {...props} />
      {mayEdit && <AgentForm key={agent.id} agent={agent} onSaved={() => void onChange()} />}
      <Settings agent={agent} inForm={mayEdit} />
      {mayEdit && !isOnly && (
        <p>
          <RemoveAgent agent={agent} />
        </p>
      )}
    </article>
  );
}
