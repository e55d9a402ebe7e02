// The changes of a replay: other models, instructions, settings, or another first message. Applies them to
// the settings and the prompts of a record.

import { resolveModel } from "../../../agent/model/model.ts";
import { isObject } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { filePart, type PromptPart, settingsPart } from "../../../core/rules/prompt/prompt.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Variation } from "../../../core/shapes/record/variation.ts";
import type { AgentSettings, ProviderSettings, Settings } from "../../../core/shapes/settings/settings.ts";
import type { Script } from "./script.ts";

type Tree = Readonly<Record<string, unknown>>;

/** Tools whose effects are inside of the replay. They always run. */
export const SESSION_TOOLS = /^(sessions?_|agents_list$|subagents$)/;

/** Tools that can really run in a replay. Programs and messages to people never do. */
const LIVE_TOOLS: readonly string[] = ["read", "grep", "glob", "fetch", "write", "edit"];

/** Returns the model that replaces the one of an agent, if there is one. */
export const modelFor = ({ models }: Variation, agentId: string): string | undefined =>
  models[agentId] ?? models["*"];

export function changesAgent(
  variation: Variation,
  { id, model }: Pick<AgentSettings, "id" | "model">,
): boolean {
  const { instructions, files, settings } = variation;
  const own = isObject(settings.agents) ? settings.agents[id] : undefined;
  const other = modelFor(variation, id);
  return (
    (other !== undefined && other !== model) ||
    [instructions[id], files[id], own].some((one) => one !== undefined)
  );
}

/** Replaces values of `base`. A name that `base` does not have is an error. */
function mergeSettings(base: Tree, patch: Tree, path: string): Result<Tree> {
  const next: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(patch)) {
    const at = path === "" ? name : `${path}.${name}`;
    const before = base[name];
    if (!(name in base)) {
      const known = Object.keys(base).join(", ");
      return fail("invalid_argument", `the recorded settings have no "${at}"; there is: ${known}`);
    }
    if (isObject(before) && isObject(value)) {
      const inner = mergeSettings(before, value, at);
      if (!inner.ok) return inner;
      next[name] = inner.value;
    } else if (typeof before !== typeof value || Array.isArray(before) !== Array.isArray(value)) {
      return fail("invalid_argument", `"${at}" has another type than in the record`);
    } else next[name] = value;
  }
  return ok(next);
}

/** Returns the recorded settings with the changes, and with providers that have keys. */
export function changedSettings(
  settings: Settings,
  variation: Variation,
  providers: readonly ProviderSettings[],
): Result<Settings> {
  const { agents: ofAgents = {}, ...rest } = variation.settings;
  const whole = mergeSettings(settings as unknown as Tree, rest, "");
  if (!whole.ok) return whole;
  const agents: AgentSettings[] = [];
  for (const agent of settings.agents) {
    const own = isObject(ofAgents) && isObject(ofAgents[agent.id]) ? (ofAgents[agent.id] as Tree) : {};
    const next = mergeSettings(agent as unknown as Tree, own, `agents.${agent.id}`);
    if (!next.ok) return next;
    const model = modelFor(variation, agent.id);
    const instructions = variation.instructions[agent.id];
    agents.push({ ...(next.value as unknown as AgentSettings), ...optional({ model, instructions }) });
  }
  const known = new Set(providers.map(({ id }) => id));
  const all = [...providers, ...settings.providers.filter(({ id }) => !known.has(id))];
  return ok({ ...(whole.value as unknown as Settings), agents, providers: all });
}

/** Returns why the changes do not fit the record, or the settings of its first run with the changes. */
export function checkVariation(
  script: Script,
  settings: Settings,
  variation: Variation,
  providers: readonly ProviderSettings[],
): Result<Settings> {
  const { models, instructions, files, live, message, from } = variation;
  const known = settings.agents.map(({ id }) => id);
  const ofSettings = isObject(variation.settings.agents) ? Object.keys(variation.settings.agents) : [];
  const named = [...[models, instructions, files].flatMap((one) => Object.keys(one)), ...ofSettings];
  const unknown = named.find((id) => id !== "*" && !known.includes(id));
  if (unknown !== undefined) {
    return fail("invalid_argument", `the record has no agent "${unknown}"; it has: ${known.join(", ")}`);
  }
  const wrong = live.find((name) => !LIVE_TOOLS.includes(name));
  if (wrong !== undefined) {
    return fail(
      "invalid_argument",
      `"${wrong}" can't run in a replay; these tools can: ${LIVE_TOOLS.join(", ")}`,
    );
  }
  const contained = settings.agents.find(({ sandbox }) => sandbox.mode !== "off");
  if (live.length > 0 && contained !== undefined) {
    return fail(
      "invalid_argument",
      `agent "${contained.id}" has a sandbox, so tools can't run in this replay`,
    );
  }
  if (from !== undefined && message !== undefined) {
    return fail("invalid_argument", "the first message cannot be changed if the replay begins later (from)");
  }
  if (from !== undefined && script.placeOf(from) === undefined) {
    const most = script.record.entries.length;
    return fail("invalid_argument", `the record has no step "${from}": name a message id, or 1 to ${most}`);
  }
  const changed = changedSettings(settings, variation, providers);
  if (!changed.ok) return changed;
  for (const ref of Object.values(models)) {
    const model = resolveModel(changed.value.providers, ref);
    if (!model.ok) return model;
  }
  return changed;
}

/** Replaces the part with this title and file, or adds it after the first part. */
function replacePart(parts: readonly PromptPart[], next: PromptPart): PromptPart[] {
  const isSame = ({ title, file }: PromptPart): boolean =>
    title === next.title && (next.file === undefined || file?.endsWith(next.file) === true);
  if (parts.some(isSame)) return parts.map((part) => (isSame(part) ? { ...part, text: next.text } : part));
  return [...parts.slice(0, 1), next, ...parts.slice(1)];
}

export function changedPrompt(
  { instructions, files }: Variation,
  agentId: string,
  parts: readonly PromptPart[],
): readonly PromptPart[] {
  let next = parts;
  const own = instructions[agentId];
  if (own !== undefined) next = replacePart(next, settingsPart(own));
  for (const [path, text] of Object.entries(files[agentId] ?? {}))
    next = replacePart(next, filePart({ path, text }));
  return next.filter(({ text }) => text !== "");
}
