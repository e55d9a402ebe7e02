// Completes the names of settings in the text of the configuration file.

import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { json5Places } from "../../../../src/core/text/json5-places.ts";
import { groupsIn, type Setting, settingPath, settingsIn } from "./places.ts";

/** Returns the settings and groups of the object around the caret, if a key can stand at the caret. */
export function completeSetting(
  context: CompletionContext,
  settings: readonly Setting[],
): CompletionResult | null {
  const { doc } = context.state;
  const from = context.matchBefore(/\w*/)?.from ?? context.pos;
  const line = doc.lineAt(from);
  const before = line.text.slice(0, from - line.from);
  const [, quote] = /(?:^|[{,])\s*(["']?)$/.exec(before) ?? [];
  if (quote === undefined || (from === context.pos && !context.explicit)) return null;
  const around = json5Places(doc.toString()).findLast(
    ({ kind, start, end }) => (kind === "object" || kind === "list") && start < from && from < end,
  );
  if (around?.kind !== "object") return null;
  const path = settingPath(around.path, settings);
  const names = new Map(groupsIn(path, settings).map((name) => [name, "group of settings"]));
  for (const { path: whole, meaning } of settingsIn(path, settings))
    names.set(whole.slice(path === "" ? 0 : path.length + 1).replace("[]", ""), meaning);
  const options = [...names].filter(([name]) => !name.startsWith("<"));
  return {
    from,
    options: options.map(([label, info]) => ({ label, info, apply: `${label}${quote}: ` })),
    validFor: /^\w*$/,
  };
}
