// Changes the gateway's configuration file for the dialogs of the first visit.

import type { ConfigChange } from "../../../src/contract/methods/configuration.ts";
import { ask } from "../gateway.ts";

/** Returns a string for the file, in which "${" would refer to an environment variable. */
export const literal = (text: string): string => text.trim().replaceAll("${", () => "$${");

/** Changes the file as it is now. Returns a function that undoes this, unless it has changed since. */
export async function change(changes: readonly ConfigChange[]): Promise<() => Promise<void>> {
  const { text, revision } = await ask("config.get");
  const saved = await ask("config.patch", { changes: [...changes], revision });
  return async () => {
    await ask("config.set", { text, revision: saved.revision });
  };
}
