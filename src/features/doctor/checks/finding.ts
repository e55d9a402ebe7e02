// The findings of `parley doctor`: `good` reports a fact, `risk` a warning, `bad` that something does not
// work.

import type { Finding } from "../../../feature.ts";

export const good = (name: string, text: string): Finding => ({ name, level: "ok", text });
export const risk = (name: string, text: string, mend: string): Finding => ({
  name,
  level: "warning",
  text,
  mend,
});
export const bad = (name: string, text: string, mend?: string): Finding => ({
  name,
  level: "problem",
  text,
  ...(mend === undefined ? {} : { mend }),
});

/**
 * Reports a database schema that was changed: for example, an unknown trigger could change what the gateway
 * stores.
 */
export function alteredSchema(differences: readonly string[]): Finding[] {
  if (differences.length === 0) return [];
  const text = `the store's schema differs from the one that Parley creates: ${differences.join(", ")}`;
  const mend =
    "Find out who changed the schema. To get the right schema, restore a backup into an empty store.";
  return [bad("store schema", text, mend)];
}
