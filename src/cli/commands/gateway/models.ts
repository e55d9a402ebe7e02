// Implements `parley models`: lists the configured models, the agents that use them, and where each key comes
// from. It reads the configuration of this machine and needs no gateway.

import { secretsOf } from "../../../config/describe.ts";
import { KEY_VARIABLES } from "../../../config/providers.ts";
import { loadSettings } from "../../../config.ts";
import { optional } from "../../../core/optional.ts";
import {
  modelNames,
  OFFLINE_MODEL,
  type ProviderSettings,
  type Settings,
} from "../../../core/shapes/settings/settings.ts";
import { Redactor } from "../../../core/text/redact/redact.ts";
import { type Cli, EXIT, loadOptionsOf } from "../../cli.ts";

/**
 * Returns the models that Parley itself calls. Agents that run as external programs call their own models.
 */
export function usedModels({ agents }: Settings): string[] {
  const own = agents.filter(({ runtime }) => runtime === undefined);
  return [...new Set(own.flatMap(({ model, subagents }) => [model, subagents.model ?? model]))];
}

/** Returns the models to call: each model that an agent uses, and the first model of each other provider. */
export function modelsToCall(settings: Settings): { readonly ref: string; readonly used: boolean }[] {
  const used = usedModels(settings).filter((ref) => ref !== OFFLINE_MODEL);
  const spare = settings.providers
    .filter(({ id, models }) => models.length > 0 && !used.some((ref) => ref.startsWith(`${id}/`)))
    .map(({ id, models }) => `${id}/${models[0]?.id}`);
  return [...used.map((ref) => ({ ref, used: true })), ...spare.map((ref) => ({ ref, used: false }))];
}

/** Maximum number of models to call, to limit the cost. */
const CALLS_MAX = 12;

/** Names the source of a provider's key, but never the key. */
function keySource(env: Cli["parts"]["env"], { id, apiKey, baseUrl }: ProviderSettings): string {
  if (apiKey === undefined)
    return /^https?:\/\/(localhost|127\.|\[::1\])/.test(baseUrl) ? "none needed" : "missing";
  const known = KEY_VARIABLES.get(id);
  const names = Object.keys(env).filter((name) => env[name] === apiKey);
  const name = names.find((one) => one === known) ?? names[0];
  return name ?? "configuration file";
}

async function testModels(cli: Cli, settings: Settings) {
  const { inspectModel } = cli.parts;
  const wanted = inspectModel === undefined ? [] : modelsToCall(settings).slice(0, CALLS_MAX);
  const redactor = new Redactor(secretsOf(settings));
  return Promise.all(
    wanted.map(async ({ ref }) => {
      const report = await inspectModel?.(settings.providers, ref);
      return { model: ref, ok: report?.usable === true, text: redactor.mask(report?.text ?? "") };
    }),
  );
}

export async function listModels(cli: Cli, { test = false }: { readonly test?: boolean }): Promise<number> {
  const loaded = loadSettings(loadOptionsOf(cli));
  if (!loaded.ok) return cli.fail(loaded);
  const { settings, path } = loaded.value;
  const named = settings.providers.length === 0 ? [OFFLINE_MODEL] : modelNames(settings.providers);
  const models = named.map((model) => {
    const provider = settings.providers.find(({ id }) => model.startsWith(`${id}/`));
    const usedBy = settings.agents.filter((agent) => agent.runtime === undefined && agent.model === model);
    const key = provider === undefined ? "none needed" : keySource(cli.parts.env, provider);
    const baseUrl = provider?.baseUrl;
    return { model, key, agents: usedBy.map(({ id }) => id), ...optional({ baseUrl }) };
  });
  cli.table(models, {
    MODEL: ({ model }) => model,
    "USED BY": ({ agents }) => agents.join(", "),
    KEY: ({ key }) => key,
    ADDRESS: ({ baseUrl }) => baseUrl,
  });
  if (settings.providers.length === 0)
    cli.note("No key was found: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY.");
  const tests = test ? await testModels(cli, settings) : [];
  for (const { model, ok, text } of tests)
    cli.verdict(ok, text.startsWith(model) ? text : `${model}: ${text}`);
  const ok = tests.every((one) => one.ok);
  cli.document({ ok, path, models, ...(test ? { tests } : {}) });
  return ok ? EXIT.done : EXIT.failed;
}
