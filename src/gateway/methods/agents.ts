// Implements the methods for the settings of agents, and for the test of a model.
// AG1: folders, programs, usage and work of agents are returned only to callers whose token covers every
//      session (I9).
// AG2: test calls are limited in time and number, their usage is recorded in the ledger, and their errors
// show no key (I14).

import { chosenAgent, keyRulesOf } from "../../access/access.ts";
import { agentsFor, coversAgent, createGate, seesEverything } from "../../access/token.ts";
import type { ModelTrial } from "../../agent/model/try-model.ts";
import type {
  AGENT_METHODS,
  AgentDetails,
  AgentMemoryText,
  AgentPrompt,
  LocalServer,
  ModelTest,
} from "../../contract/methods/agents.ts";
import { optional } from "../../core/optional.ts";
import { guidanceReach } from "../../core/rules/prompt/guidance.ts";
import { countedMemory, MEMORY_MAX_BYTES } from "../../core/rules/prompt/memory.ts";
import { promptParts, type Today } from "../../core/rules/prompt/prompt.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import { mainKeyOf } from "../../core/shapes/session-key.ts";
import { type AgentSettings, agentOf, programOf } from "../../core/shapes/settings/settings.ts";
import type { AgentSources } from "../../core/shapes/settings/sources.ts";
import { splitRef } from "../../core/text/model-ref.ts";
import { changeMemory } from "../../flows/memory.ts";
import { type AgentMemory, readMemory } from "../../store/queries/agent-memory.ts";
import { type AgentWork, newestFailures, workByAgent } from "../../store/queries/agent-work.ts";
import { addUsageRow, dayStart, usageOfDay } from "../../store/queries/runs/ledger.ts";
import { describeTools, readyTools, withheldOutside } from "../../tools/catalog.ts";
import { memoryFor } from "../../tools/guidance/memory.ts";
import { promptOf } from "../../tools/guidance/prompt.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";
import type { ToolDeps } from "./tools.ts";

export interface DescribeDeps extends BasicDeps, Pick<ToolDeps, "outside" | "services" | "guidance"> {
  /** Returns the date at this time for prompts. */
  today(atMs: number): Today;
  /** Absent if the sources are unknown. */
  readonly agentSources?: AgentSources;
  checkModel(name: string): Result<string>;
  /** Returns the model servers on this machine that have models. */
  localServers(): Promise<LocalServer[]>;
  /** Makes a short test call. Refuses it if too many are in progress. */
  tryModel(ref: string, signal: AbortSignal): Promise<Result<ModelTrial>>;
}

type Context = CallContext<DescribeDeps>;

/** Agent name of test calls in the ledger. No agent and no session has this name. */
const TESTER = "models.test";
/** Rough size of a token of English text or JSON. */
const BYTES_PER_TOKEN = 4;

async function toolsOf({ deps }: Context, agent: AgentSettings, key: string) {
  const { settings, outside } = deps;
  const chain: SpawnChain = [{ key, agentId: agent.id, kind: "main", spawnDepth: 0 }];
  const guidance = await deps.guidance?.forAgent(agent, guidanceReach(chain, settings));
  const policy = { settings, chain, ready: await readyTools(deps.services), skills: guidance?.skills };
  const known = outside?.knownNames() ?? [];
  const outer = withheldOutside(policy, known);
  const ours = describeTools(policy);
  const allowed = ours.filter((tool) => tool.allowed).map(({ name }) => name);
  const isWithheld = new Set(outer.map(({ name }) => name));
  return {
    chain,
    guidance,
    specs: ours.filter((tool) => tool.allowed),
    tools: [...allowed, ...known.filter((name) => !isWithheld.has(name))],
    withheld: [
      ...ours.filter((tool) => !tool.allowed).map(({ name, reason }) => ({ name, reason })),
      ...outer,
    ],
  };
}

/** Returns the prompt of an agent's main session, as its next run would get it. */
async function prompt(ctx: Context, agent: AgentSettings): Promise<AgentPrompt> {
  const { settings, today, engine, world } = ctx.deps;
  const key = mainKeyOf(agent.id, keyRulesOf(settings));
  const { tools, specs, guidance, chain } = await toolsOf(ctx, agent, key);
  const sources = {
    settings,
    session: { key },
    agent,
    tools: tools.map((name) => ({ spec: { name } })),
    guidance,
    today: today(engine.now()),
    memory: await memoryFor(ctx.access.db, settings, chain, undefined),
  };
  const measureText = (text: string) => {
    const bytes = Buffer.byteLength(text);
    return { bytes, tokens: Math.ceil(bytes / BYTES_PER_TOKEN) };
  };
  const parts = agent.runtime === undefined ? promptParts(promptOf(sources)) : [];
  const described = specs.map(({ name, description, parameters }) => ({ name, description, parameters }));
  const answer = {
    agentId: agent.id,
    sessionKey: key,
    parts: parts.map((part) => ({ ...part, ...measureText(part.text) })),
    tools: { count: described.length, ...measureText(JSON.stringify(described)) },
    skills: (guidance?.skills ?? []).map(({ name, description, folder }) => ({ name, description, folder })),
    skipped: (guidance?.skipped ?? []).map(({ path, why }) => ({ path, why })),
  };
  return world.redactor.all(answer);
}

/** Returns the fields that only callers with a token for every session get (AG1). */
async function insightOf(
  ctx: Context,
  agent: AgentSettings,
  work: ReadonlyMap<string, AgentWork>,
  failures: readonly { readonly agentId: string }[],
) {
  const { deps } = ctx;
  const used = await usageOfDay(ctx.access.db, agent.id, deps.engine.now());
  const [purpose] = /^.+?(?:[.!?。।؟](?=\s|$)|$)/mu.exec(agent.instructions?.trim() ?? "") ?? [];
  return {
    ...optional({ purpose: purpose && deps.world.redactor.mask(purpose) }),
    workspace: agent.workspace,
    today: { ...used, failed: failures.filter(({ agentId }) => agentId === agent.id).length },
    work: work.get(agent.id) ?? { running: 0, waiting: 0, queued: 0 },
    ...optional({ program: programOf(agent)?.[0], budget: agent.budget }),
  };
}

async function describe(ctx: Context, agent: AgentSettings): Promise<AgentDetails> {
  const { id, name, model, fallbackModels, thinking, maxModelCalls, sandbox, subagents } = agent;
  const { settings } = ctx.deps;
  const mainKey = mainKeyOf(id, keyRulesOf(settings));
  const seesMain = createGate(settings, ctx.caller, "read")(mainKey);
  const found = seesMain ? await toolsOf(ctx, agent, mainKey) : undefined;
  const { mode, backend, network } = sandbox;
  return {
    id,
    default: agent.default,
    model,
    fallbackModels,
    thinking,
    maxModelCalls,
    sandbox: { mode, backend, network },
    spawns: subagents.allowAgents.filter((other) => other === "*" || coversAgent(ctx.caller, other)),
    ...optional({ tools: found?.tools, withheld: found?.withheld }),
    runtime: agent.runtime?.type ?? "built-in",
    ...optional({ approval: agent.tools.exec?.approval ?? settings.tools.exec.approval }),
    ...optional({ name, subagentModel: subagents.model, sources: ctx.deps.agentSources?.[id] }),
  };
}

function shownMemory({ deps }: Context, agentId: string, memory: AgentMemory): AgentMemoryText {
  const text = deps.world.redactor.mask(countedMemory(memory));
  return { agentId, text, revision: memory.revision, maxBytes: MEMORY_MAX_BYTES };
}

async function describeAll(ctx: Context): Promise<AgentDetails[]> {
  const all = seesEverything(ctx.caller);
  const work = all ? await workByAgent(ctx.access.db) : new Map<string, AgentWork>();
  const since = dayStart(ctx.deps.engine.now());
  const failures = all ? (await newestFailures(ctx.access.db)).filter(({ at }) => at >= since) : [];
  const rows: AgentDetails[] = [];
  for (const agent of agentsFor(ctx.deps.settings, ctx.caller)) {
    const more = all ? await insightOf(ctx, agent, work, failures) : {};
    rows.push({ ...(await describe(ctx, agent)), ...more });
  }
  return rows;
}

async function test(ctx: Context, model: string): Promise<Result<ModelTest>> {
  const { engine, world } = ctx.deps;
  const trial = await ctx.deps.tryModel(model, ctx.signal);
  if (!trial.ok) return trial;
  const { usable, text, durationMs, hint, answer, usage } = trial.value;
  if (usage !== undefined) {
    await engine.commit((unit) => {
      const row = { runId: unit.newId(), sessionKey: TESTER, agentId: TESTER, ...splitRef(model), usage };
      return addUsageRow(unit.tx, { ...row, at: unit.now });
    });
  }
  const told = world.redactor.all(
    usable ? optional({ text: answer }) : { error: text, ...optional({ hint }) },
  );
  const spent = { totalTokens: usage?.totalTokens ?? 0, cost: usage?.cost.total ?? 0 };
  return ok({ model, ok: usable, durationMs, ...spent, ...told });
}

export const agentSettingsMethods: Methods<keyof typeof AGENT_METHODS, DescribeDeps> = {
  "agents.describe": {
    handle: async (ctx) => ok({ ts: ctx.deps.engine.now(), agents: await describeAll(ctx) }),
  },
  "agents.prompt": {
    async handle(ctx, { agentId }) {
      const id = chosenAgent(ctx.deps.settings, agentId);
      return id.ok ? ok(await prompt(ctx, agentOf(ctx.deps.settings, { agentId: id.value }))) : id;
    },
  },
  "agents.memory.get": {
    async handle(ctx, { agentId }) {
      const id = chosenAgent(ctx.deps.settings, agentId);
      return id.ok ? ok(shownMemory(ctx, id.value, await readMemory(ctx.access.db, id.value))) : id;
    },
  },
  "agents.memory.set": {
    async handle(ctx, { agentId, text, revision }) {
      const id = chosenAgent(ctx.deps.settings, agentId);
      if (!id.ok) return id;
      const changed = await changeMemory(ctx.deps.engine, id.value, { action: "set", text }, { revision });
      return changed.ok ? ok(shownMemory(ctx, id.value, changed.value)) : changed;
    },
  },
  "models.discover": {
    handle: async ({ deps }) => ok({ servers: deps.world.redactor.all(await deps.localServers()) }),
  },
  "models.test": {
    async handle(ctx, params) {
      const model = ctx.deps.checkModel(params.model);
      return model.ok ? test(ctx, model.value) : model;
    },
  },
};
