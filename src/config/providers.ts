// Builds the list of model providers: those in the file. If the file has none, those with a key in the
// environment. The built-in offline provider is always added. Some models are predefined, so that a key is
// enough to start.

import {
  type ModelSettings,
  modelNames,
  modelsNamed,
  OFFLINE_MODEL,
  PROVIDER_APIS,
  type ProviderApi,
  type ProviderSettings,
} from "../core/shapes/settings/settings.ts";
import { nearestNames } from "../core/text/nearest.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { type ConfigFile, modelKeys, patience } from "./schema/schema.ts";
import { defaultsOf } from "./schema/setting.ts";
import type { Env, Problem } from "./source.ts";

const LISTED_MAX = 12;
type ProviderInFile = ConfigFile["models"]["providers"][string];

interface KnownProvider {
  readonly api: ProviderApi;
  readonly baseUrl: string;
  readonly keyVariable: string;
  /** The first model is the default. */
  readonly models: readonly ModelSettings[];
}

/**
 * Returns a predefined model. Prices in USD per million tokens: input, output, cache reads, cache writes. All
 * these models support thinking and pictures.
 */
function makeModel(
  id: string,
  name: string,
  contextWindow: number,
  maxOutputTokens: number,
  [input, output, cacheRead, cacheWrite]: readonly [number, number, number, number],
): ModelSettings {
  const cost = { input, output, cacheRead, cacheWrite };
  return { id, name, contextWindow, maxOutputTokens, reasoning: true, images: true, cost };
}

const KNOWN: ReadonlyMap<string, KnownProvider> = new Map([
  [
    "anthropic",
    {
      api: "anthropic-messages",
      baseUrl: "https://api.anthropic.com",
      keyVariable: "ANTHROPIC_API_KEY",
      models: [
        makeModel("claude-sonnet-5", "Claude Sonnet 5", 1_000_000, 128_000, [2, 10, 0.2, 2.5]),
        makeModel("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, 128_000, [4, 20, 0.2, 5]),
        makeModel("claude-fable-5-1", "Claude Fable 5.1", 1_000_000, 128_000, [10, 50, 0.25, 12.5]),
        makeModel("claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 64_000, [1, 5, 0.1, 1.25]),
      ],
    },
  ],
  [
    "openai",
    {
      api: "openai-responses",
      baseUrl: "https://api.openai.com/v1",
      keyVariable: "OPENAI_API_KEY",
      models: [
        makeModel("gpt-6-sol", "GPT-6 Sol", 272_000, 128_000, [2, 10, 0.2, 2.5]),
        makeModel("gpt-6-astra", "GPT-6 Astra", 272_000, 128_000, [10, 50, 1, 12.5]),
        makeModel("gpt-6-luna", "GPT-6 Luna", 272_000, 128_000, [0.1, 0.5, 0.01, 0.125]),
        makeModel("gpt-5.5", "GPT-5.5", 272_000, 128_000, [5, 30, 0.5, 0]),
      ],
    },
  ],
  [
    "google",
    {
      api: "google-generative-ai",
      baseUrl: "https://generativelanguage.googleapis.com/v1beta",
      keyVariable: "GEMINI_API_KEY",
      models: [
        makeModel("gemini-3.8-flash", "Gemini 3.8 Flash", 1_048_576, 65_536, [0.75, 3.75, 0.075, 0]),
        makeModel("gemini-3.1-pro-preview", "Gemini 3.1 Pro Preview", 1_048_576, 65_536, [2, 12, 0.2, 0]),
        makeModel("gemini-3.5-flash-lite", "Gemini 3.5 Flash Lite", 1_048_576, 65_536, [0.3, 2.5, 0.03, 0]),
      ],
    },
  ],
]);

/** For each predefined provider: the environment variable that holds its key. */
export const KEY_VARIABLES: ReadonlyMap<string, string> = new Map(
  [...KNOWN].map(([id, { keyVariable }]) => [id, keyVariable]),
);

/** Returns the ids of the models that are predefined for a provider. */
export const predefinedModels = (provider: string): readonly string[] =>
  (KNOWN.get(provider)?.models ?? []).map(({ id }) => id);

function completeProvider(
  id: string,
  file: ProviderInFile,
  env: Env,
  problems: Problem[],
): ProviderSettings | undefined {
  const path: Path = ["models", "providers", id];
  const like = KNOWN.get(id);
  const api = file.api ?? like?.api;
  const baseUrl = file.baseUrl ?? like?.baseUrl;
  const report = (key: string, text: string) => problems.push({ path: [...path, key], text });
  if (id === "offline") problems.push({ path, text: "is the name of the built-in provider; choose another" });
  if (api === undefined) report("api", `is missing; must be one of ${PROVIDER_APIS.join(", ")}`);
  if (baseUrl === undefined)
    report("baseUrl", "is missing; must be the address of the API, up to its version");
  const models =
    file.models.length === 0
      ? (like?.models ?? [])
      : file.models.map((model) => {
          const known = like?.models.find(({ id }) => id === model.id);
          const whole = { ...defaultsOf(modelKeys), ...known, ...model };
          return { ...whole, maxOutputTokens: Math.min(whole.maxOutputTokens, whole.contextWindow) };
        });
  if (models.length === 0) report("models", 'must list at least one model, like [{ id: "qwen3" }]');
  for (const [index, model] of models.entries()) {
    if (models.findIndex(({ id }) => id === model.id) === index) continue;
    problems.push({ path: [...path, "models", index, "id"], text: `"${model.id}" is listed twice` });
  }
  if (api === undefined || baseUrl === undefined) return undefined;
  const apiKey = file.apiKey || (like === undefined ? undefined : env[like.keyVariable]);
  const { apiKey: _, ...own } = file;
  return { id, ...own, api, baseUrl, models, ...(apiKey && { apiKey }) };
}

/** Returns all configured providers. If the file has none, returns one for each key in the environment. */
export function providersOf(
  inFile: Readonly<Record<string, ProviderInFile>>,
  env: Env,
  problems: Problem[],
): ProviderSettings[] {
  const entries = Object.entries(inFile);
  if (entries.length === 0)
    return [...KNOWN].flatMap(([id, { api, baseUrl, keyVariable, models }]) => {
      const apiKey = env[keyVariable];
      return apiKey ? [{ id, api, baseUrl, apiKey, headers: {}, ...defaultsOf(patience), models }] : [];
    });
  return entries
    .map(([id, file]) => completeProvider(id, file, env, problems))
    .filter((provider) => provider !== undefined);
}

/** Returns the model that is used if none is configured. */
export const firstModel = (providers: readonly ProviderSettings[]): string =>
  modelNames(providers)[0] ?? OFFLINE_MODEL;

/** Reports a model that does not exist, and lists the existing ones. */
export function checkModel(
  model: string,
  path: Path,
  providers: readonly ProviderSettings[],
  problems: Problem[],
): void {
  const names = modelNames(providers);
  const meant = modelsNamed(model, names);
  if (meant.length === 1) return;
  if (meant.length > 1) {
    problems.push({ path, text: `"${model}" is a model of several providers: write ${meant.join(" or ")}` });
    return;
  }
  const nearest = nearestNames(model, names, LISTED_MAX);
  const more = names.length - nearest.length;
  const valid = `${nearest.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const variables = [...KNOWN.values()].map(({ keyVariable }) => keyVariable).join(", ");
  const why = providers.length === 0 ? ` (no provider is configured, and none of ${variables} is set)` : "";
  problems.push({ path, text: `there is no model "${model}"; valid: ${valid}${why}` });
}

/** Warns about predefined providers without a key. A local provider may not need one. */
export function keyWarnings(providers: readonly ProviderSettings[]): string[] {
  return providers.flatMap(({ id, apiKey, baseUrl }) => {
    const like = KNOWN.get(id);
    if (apiKey !== undefined || like?.baseUrl !== baseUrl) return [];
    const path = showPath(["models", "providers", id, "apiKey"]);
    return [`${path} is not set, and neither is ${like.keyVariable}: its models will not answer`];
  });
}
