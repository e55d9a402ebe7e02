// Owns what the doctor finds about models: which agents use which, and whether each answers.
// MC1: a model that an agent uses is called once, as a run would call it, for one word; so is one of each
//      provider that no agent uses. What that cost is said. With --offline nobody is asked.
// MC2: a failure says what the provider said, and never the key.

import { secretsOf } from "../../config/describe.ts";
import { Redactor } from "../../core/redact.ts";
import { OFFLINE_MODEL, type Settings } from "../../core/settings.ts";
import type { Cli } from "../cli.ts";
import { count } from "../layout.ts";
import type { Finding } from "./finding.ts";

const name = "models";
/** More are named and not called: a question to each of a long list is no small thing any more. */
const CALLS_MAX = 12;

/** The models of agents that Parley calls itself: an agent that is a program has its own. */
function usedModels({ agents }: Settings): string[] {
  const own = agents.filter(({ runtime }) => runtime === undefined);
  return [...new Set(own.flatMap(({ model, subagents }) => [model, subagents.model ?? model]))];
}

function sayModels(settings: Settings): Finding {
  const { providers } = settings;
  const used = usedModels(settings);
  const known = providers.map(({ id, models }) => `${id} (${count(models.length, "model")})`).join(", ");
  const agents = used.length === 0 ? "agents are programs of their own" : `agents use ${used.join(", ")}`;
  const text = `${providers.length === 0 ? "no provider" : known}; ${agents}`;
  const offline = used.length > 0 && used.every((model) => model === OFFLINE_MODEL);
  if (!offline) return { name, level: "ok", text };
  const mend = "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or configure models.providers.";
  return { name, level: "warning", text: `${text}: nobody answers but the offline model`, mend };
}

/** What there is to call: each model in use, and the first one of each provider that has none in use. */
function worthCalling(settings: Settings): { readonly ref: string; readonly used: boolean }[] {
  const used = usedModels(settings).filter((ref) => ref !== OFFLINE_MODEL);
  const spare = settings.providers
    .filter(({ id, models }) => models.length > 0 && !used.some((ref) => ref.startsWith(`${id}/`)))
    .map(({ id, models }) => `${id}/${models[0]?.id}`);
  return [...used.map((ref) => ({ ref, used: true })), ...spare.map((ref) => ({ ref, used: false }))];
}

export async function checkModels(cli: Cli, settings: Settings, offline: boolean): Promise<Finding[]> {
  const said = sayModels(settings);
  const { inspectModel } = cli.parts;
  const wanted = worthCalling(settings);
  if (inspectModel === undefined || wanted.length === 0) return [said];
  if (offline) {
    const text = `${wanted.map(({ ref }) => ref).join(", ")}: not asked (--offline)`;
    return [said, { name, level: "ok", text }];
  }
  const called = wanted.slice(0, CALLS_MAX);
  const trials = await Promise.all(called.map(({ ref }) => inspectModel(settings.providers, ref)));
  const redactor = new Redactor(secretsOf(settings));
  const findings = trials.map(({ usable, text }, at): Finding => {
    const { ref = "", used = false } = called[at] ?? {};
    const words = redactor.mask(text.startsWith(ref) ? text : `${ref}: ${text}`);
    if (usable) return { name, level: "ok", text: words };
    const where = `models.providers.${ref.split("/")[0]}`;
    const mend = `Look at key, address and model of ${where}, or ask nobody with --offline.`;
    return { name, level: used ? "problem" : "warning", text: words, mend };
  });
  const rest = wanted.slice(CALLS_MAX).map(({ ref }) => ref);
  const more: Finding = { name, level: "ok", text: `not asked, being so many: ${rest.join(", ")}` };
  return [said, ...findings, ...(rest.length === 0 ? [] : [more])];
}
