// Maps the source's model providers and model names.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, isObject } from "../../../core/json.ts";
import { PROVIDER_APIS } from "../../../core/shapes/settings/settings.ts";
import { countIn, pricesIn, textIn } from "../fields.ts";
import { textsByName } from "./mcp.ts";
import { noteRest, take } from "./tree.ts";

/** Providers that need only a key, with the environment variable for it. */
export const KEY_VARIABLES: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GEMINI_API_KEY",
};

/** Reads a model name: `anthropic/claude-…`, an alias, or an object with `primary`. */
export function modelNameIn(value: unknown, aliases: ReadonlyMap<string, string>): string | undefined {
  const name = textIn(value, 200) ?? textIn(fieldsOf(value).primary, 200);
  return name === undefined ? undefined : (aliases.get(name.toLowerCase()) ?? name);
}

/** Returns the aliases of models in `agents.defaults.models`. */
export function aliasesIn(models: unknown): Map<string, string> {
  const aliases = new Map<string, string>();
  for (const [name, model] of Object.entries(fieldsOf(models))) {
    const alias = textIn(fieldsOf(model).alias, 100);
    if (alias !== undefined) aliases.set(alias.toLowerCase(), name);
  }
  return aliases;
}

/**
 * Returns a plain secret, or a reference to the variable that holds it. Returns undefined for other kinds of
 * secrets.
 */
export function secretIn(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  const { source, id } = fieldsOf(value);
  return source === "env" && typeof id === "string" && /^\w+$/.test(id) ? `\${${id}}` : undefined;
}

function mapModel(value: unknown): Tree | undefined {
  const model = fieldsOf(value);
  const id = textIn(model.id, 200);
  if (id === undefined) return undefined;
  return {
    id,
    name: textIn(model.name, 200),
    contextWindow: countIn(model.contextWindow),
    maxOutputTokens: countIn(model.maxTokens),
    reasoning: typeof model.reasoning === "boolean" ? model.reasoning : undefined,
    images: Array.isArray(model.input) ? model.input.includes("image") : undefined,
    cost: isObject(model.cost) ? pricesIn(model.cost) : undefined,
  };
}

function mapProvider(id: string, value: unknown, notes: string[]): Tree | undefined {
  const { api: named, baseUrl, apiKey: key, headers: sent, models, ...rest } = fieldsOf(value);
  const api = textIn(named, 60) ?? (KEY_VARIABLES[id] === undefined ? "openai-completions" : undefined);
  if (api !== undefined && !PROVIDER_APIS.some((known) => known === api)) {
    notes.push(`models.providers.${id} uses an unsupported API and is skipped`);
    return undefined;
  }
  const apiKey = secretIn(key);
  if (key !== undefined && apiKey === undefined) {
    notes.push(`models.providers.${id}.apiKey is not in the file: set it by hand`);
  }
  noteRest(rest, `models.providers.${id}`, notes);
  return {
    api,
    baseUrl: textIn(baseUrl, 2_000),
    apiKey,
    headers: textsByName(sent),
    models: Array.isArray(models) ? models.flatMap((model) => mapModel(model) ?? []) : undefined,
  };
}

/** Maps the section `models`, and adds each known provider that occurs only in the name of a model. */
export function mapModels(tree: Tree, named: ReadonlySet<string>, notes: string[]): Tree {
  const providers = new Map<string, Tree>();
  for (const [id, value] of Object.entries(fieldsOf(take(tree, "models", "providers")))) {
    const provider = mapProvider(id, value, notes);
    if (provider !== undefined) providers.set(id, provider);
  }
  for (const [id, variable] of Object.entries(KEY_VARIABLES)) {
    const models = [...named]
      .filter((name) => name.startsWith(`${id}/`))
      .map((name) => name.slice(id.length + 1));
    if (providers.has(id) || models.length === 0) continue;
    providers.set(id, { apiKey: `\${${variable}:-}`, models: models.sort().map((model) => ({ id: model })) });
    notes.push(`keys of ${id} are not imported: set ${variable} in the gateway's environment`);
  }
  return { providers: Object.fromEntries(providers) };
}
