// Returns settings without their secrets, in the same shape, for the record of a run (I14). The rules of
// disclosure.ts decide what stays.

import type { Settings } from "../core/shapes/settings/settings.ts";
import { applyRules, DISCLOSURE } from "./disclosure.ts";
import type { Rule } from "./schema/setting.ts";

/** Returns what stays of a value, or undefined if nothing does. */
function keepValue(rule: Rule, value: unknown): unknown {
  if (value === undefined || rule === "show") return value;
  switch (rule) {
    case "secret":
      return "";
    case "optional secret":
      return undefined;
    case "place":
    case "origin": {
      if (!URL.canParse(String(value))) return "";
      const { origin, protocol, host, pathname } = new URL(String(value));
      return rule === "origin" ? origin : `${protocol}//${host}${pathname}`;
    }
    case "program":
      return Array.isArray(value) ? value.slice(0, 1) : undefined;
    case "count":
      return [];
    case "names":
      return {};
  }
}

/** Returns the settings without secrets. A required secret is an empty text, an optional one is absent. */
export function withoutSecrets(settings: Settings): Settings {
  return applyRules(DISCLOSURE, settings, keepValue) as Settings;
}
