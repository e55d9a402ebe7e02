// Shows one agent: its work and rights, and its settings as a form, or as text for readers who may not change
// them.

import type { ComponentChildren } from "preact";
import type { AgentDetails, AgentPrompt } from "../../../src/contract/methods/agents.ts";
import { ask, coversAll, has } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { counted, size, tokens } from "../parts/format.ts";
import { Fold } from "../parts/lazy.tsx";
import { Lines, Name } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { hrefOf } from "../route.ts";
import { mayEditAgents, RemoveAgent } from "./edit.tsx";
import { AgentForm } from "./form.tsx";
import { AgentMark } from "./mark.tsx";
import { Memory } from "./memory.tsx";
import { budgetUse, Chat, Names, type RowProps, Work } from "./row.tsx";

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
          <ul class="stack withheld">
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

/** Shows the settings in force, for readers who have no form for them. */
function Values({ agent }: { agent: AgentDetails }) {
  const { model, fallbackModels, sandbox, sources = {}, spawns, budget, program, workspace } = agent;
  const { mode, backend, network } = sandbox;
  const isAcp = agent.runtime === "acp";
  const settings: readonly (readonly [name: string, path: string, value: ComponentChildren])[] = [
    isAcp
      ? ["Model", "", <>chosen by its program {program !== undefined && <Name as="code" text={program} />}</>]
      : ["Model", "model", <Name key="model" as="code" text={model} />],
    [
      "Fallbacks",
      "fallbackModels",
      !isAcp && <Name text={fallbackModels.length === 0 ? "none" : fallbackModels.join(", then ")} />,
    ],
    ["Thinking", "thinking", agent.thinking],
    [
      "Sandbox",
      "sandbox.mode",
      mode === "off" ? mode : `${mode}, ${backend}, ${network ? "with" : "without"} network`,
    ],
    [
      "Budget",
      budget?.dailyCost === undefined ? "budget.dailyTokens" : "budget.dailyCost",
      agent.today !== undefined &&
        (budget === undefined
          ? "no limit"
          : budgetUse(agent).map(({ words, full }, at) => (
              <span key={words} title={full}>
                {at > 0 && "; "}
                {words}
              </span>
            ))),
    ],
    ["Calls per run", "maxModelCalls", `at most ${agent.maxModelCalls.toLocaleString()}`],
    [
      "May spawn",
      "subagents.allowAgents",
      <Name key="spawns" text={spawns.includes("*") ? "every agent" : ["itself", ...spawns].join(", ")} />,
    ],
    ["Workspace", "workspace", workspace !== undefined && <Name as="code" text={workspace} />],
  ];
  return settings.map(([name, path, value]) => {
    const source = sources[path];
    return (
      value && (
        <Setting key={name} name={name} source={source && SOURCES[source]}>
          {value}
        </Setting>
      )
    );
  });
}

const describeSize = (part: { readonly bytes: number; readonly tokens: number }): string =>
  `${size(part.bytes)}, about ${tokens(part.tokens)} tokens`;

function PromptPart({ part }: { part: AgentPrompt["parts"][number] }) {
  const { title, text, file } = part;
  return (
    <li>
      <details>
        <summary>
          <Name text={title} /> <span class="soft">{describeSize(part)}</span>
        </summary>
        {file !== undefined && <Name as="p" class="soft" text={file} />}
        <Lines as="pre" class="sunken out-text" text={text} />
      </details>
    </li>
  );
}

function PromptParts({ agentId }: { agentId: string }) {
  const read = useReading(`prompt ${agentId}`, () => ask("agents.prompt", { agentId }));
  if (read.value === undefined) return <Awaited {...read} />;
  const { parts, tools, skipped } = read.value;
  return (
    <>
      <ul class="stack">
        {parts.map((part, at) => (
          <PromptPart key={`${at} ${part.title}`} part={part} />
        ))}
      </ul>
      <p class="soft">
        {counted(tools.count, "tool")} beside it: {describeSize(tools)}
      </p>
      {skipped.map(({ path, why }) => (
        <Name as="p" key={path} class="tone-warn" text={`${path} is not used: ${why}`} />
      ))}
    </>
  );
}

function Settings({ agent, inForm }: { agent: AgentDetails; inForm: boolean }) {
  return (
    <dl class="facts settings card">
      {!inForm && <Values agent={agent} />}
      {agent.tools !== undefined && (
        <Setting name="Tools">
          <Tools agent={agent} />
        </Setting>
      )}
      {agent.runtime === "built-in" && coversAll() && has("agents.prompt") && (
        <>
          <Setting name="Prompt">
            <Fold line={<>what the model is told</>} inside={() => <PromptParts agentId={agent.id} />} />
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
        <h2 id="agent-title" class="line fill agent-name">
          <Names agent={agent} />
        </h2>
        <Chat agent={agent} primary />
      </header>
      <Work {...props} />
      {mayEdit && <AgentForm key={agent.id} agent={agent} onSaved={() => void onChange()} />}
      <Settings agent={agent} inForm={mayEdit} />
      {mayEdit && !isOnly && <RemoveAgent agent={agent} />}
    </article>
  );
}
