// Owns which tools a session has, from the filters that apply to it.
// TP1: a matching deny in any filter always wins.
// TP2: every filter with a non-empty allow list must list the tool.

import { matchesPattern } from "./pattern.ts";
import type { ToolFilter } from "./settings.ts";

/** One filter and where it stands in the settings, e.g. `tools` or `agents.list[research].tools`. */
export interface PlacedFilter {
  readonly where: string;
  readonly filter: ToolFilter;
}

/** `error` names the setting that decided. */
export type ToolVerdict = { readonly allowed: true } | { readonly allowed: false; readonly error: string };

function matching(patterns: readonly string[], name: string): string | undefined {
  return patterns.find((pattern) => matchesPattern(pattern.toLowerCase(), name.toLowerCase()));
}

/** May a tool of this name be used under all these filters? Letter case does not matter. */
export function decideTool(name: string, filters: readonly PlacedFilter[]): ToolVerdict {
  for (const { where, filter } of filters) {
    const pattern = matching(filter.deny, name);
    if (pattern !== undefined) {
      return {
        allowed: false,
        error: `tool "${name}" is denied: ${where}.deny has ${JSON.stringify(pattern)}`,
      };
    }
  }
  for (const { where, filter } of filters) {
    if (filter.allow.length > 0 && matching(filter.allow, name) === undefined) {
      return {
        allowed: false,
        error: `tool "${name}" is not allowed: ${where}.allow is set and does not list it`,
      };
    }
  }
  return { allowed: true };
}
