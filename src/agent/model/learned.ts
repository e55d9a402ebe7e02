// Keeps what the servers of models have taught about the form of requests. It imports nothing of a provider,
// so that the list of models costs nothing at start.
// QK2: corrections last until the settings of the provider change or the process ends.

import type { ProviderSettings } from "../../core/shapes/settings/settings.ts";
import type { ProviderModel } from "./call.ts";

/** The corrections of a model, by the settings of its provider. */
const learned = new WeakMap<ProviderSettings, Map<string, Set<string>>>();

export function learnedFor({ provider, settings }: ProviderModel): Set<string> {
  const models = learned.get(provider) ?? new Map<string, Set<string>>();
  learned.set(provider, models);
  const own = models.get(settings.id) ?? new Set<string>();
  models.set(settings.id, own);
  return own;
}

/** Returns the corrections that a model's server has taught, for people. */
export function learnedQuirks(provider: ProviderSettings, id: string): readonly string[] {
  return [...(learned.get(provider)?.get(id) ?? [])];
}
