// Checks which models the agents use, and whether each of them answers.
// MC1: one short call tests each model that an agent uses. If no agent uses a model of a provider, one model
//      of that provider is tested. The cost is reported. With --offline no model is called.
// MC2: a failure contains the provider's message, but never the key.

import type { Cli } from "../../../cli/cli.ts";
import { modelsToCall, usedModels } from "../../../cli/commands/gateway/models.ts";
import { count } from "../../../cli/layout.ts";
import { secretsOf } from "../../../config/describe.ts";
import { OFFLINE_MODEL, type Settings } from "../../../core/shapes/settings/settings.ts";
import { Redactor } from "../../../core/text/redact/redact.ts";
import type { Finding } from "../../../feature.ts";
import { bad, good, risk } from "./finding.ts";

const name = "models";
/** Maximum number of models to call, to limit the cost. Further models are only listed. */
const CALLS_MAX = 12;

function modelSummary(settings: Settings): Finding {
  const { providers } = settings;
  const used = usedModels(settings);
  const known = providers.map(({ id, models }) => `${id} (${count(models.length, "model")})`).join(", ");
  const agents = used.length === 0 ? "all agents are external programs" : `agents use ${used.join(", ")}`;
  const text = `${providers.length === 0 ? "no provider" : known}; ${agents}`;
  const offline = used.length > 0 && used.every((model) => model === OFFLINE_MODEL);
  if (!offline) return good(name, text);
  const mend = "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or configure models.providers.";
  return risk(name, `${text}: only the offline model answers`, mend);
}

export async function checkModels(cli: Cli, settings: Settings, offline: boolean): Promise<Finding[]> {
  const summary = modelSummary(settings);
  const { inspectModel } = cli.parts;
  const wanted = modelsToCall(settings);
  if (inspectModel === undefined || wanted.length === 0) return [summary];
  if (offline) {
    const text = `${wanted.map(({ ref }) => ref).join(", ")}: not called (--offline)`;
    return [summary, good(name, text)];
  }
  const called = wanted.slice(0, CALLS_MAX);
  const trials = await Promise.all(called.map(({ ref }) => inspectModel(settings.providers, ref)));
  const redactor = new Redactor(secretsOf(settings));
  const findings = trials.map(({ usable, text }, at): Finding => {
    const { ref = "", used = false } = called[at] ?? {};
    const words = redactor.mask(text.startsWith(ref) ? text : `${ref}: ${text}`);
    if (usable) return good(name, words);
    const where = `models.providers.${ref.split("/")[0]}`;
    const mend = `Check the key, address and model in ${where}, or skip this check with --offline.`;
    return (used ? bad : risk)(name, words, mend);
  });
  const rest = wanted.slice(CALLS_MAX).map(({ ref }) => ref);
  const left = `not called, because there are more than ${CALLS_MAX}: ${rest.join(", ")}`;
  return [summary, ...findings, ...(rest.length === 0 ? [] : [good(name, left)])];
}
