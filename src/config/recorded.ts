// Returns settings without their secrets, in the same shape, for the record of a run (I14). The rules of
// disclosure.ts decide what stays.

import { isObject } from "../core/json.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { DISCLOSURE, type Rules } from "./disclosure.ts";

/** Returns an address without user, password and query. */
function place(address: string): string {
  if (!URL.canParse(address)) return "";
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/** Returns what stays of a value, or undefined if nothing does. */
function kept(rule: Rules, value: unknown): unknown {
  if (value === undefined || value === null || rule === "show") return value;
  switch (rule) {
    case "secret":
      return "";
    case "optional secret":
      return undefined;
    case "place":
      return place(String(value));
    case "origin":
      return URL.canParse(String(value)) ? new URL(String(value)).origin : "";
    case "program":
      return Array.isArray(value) ? value.slice(0, 1) : undefined;
    case "count":
      return [];
    case "names":
      return {};
    default:
      return keptTree(rule, value);
  }
}

function keptTree(rule: { readonly [key: string]: Rules }, value: unknown): unknown {
  const { each } = rule;
  if (Array.isArray(value)) return each === undefined ? [] : value.map((one) => kept(each, one));
  if (!isObject(value)) return undefined;
  const names = each === undefined ? Object.keys(rule) : Object.keys(value);
  const fields = names.map((name) => [name, kept(each ?? rule[name] ?? "secret", value[name])] as const);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/** Returns the settings without secrets. A required secret is an empty text, an optional one is absent. */
export function withoutSecrets(settings: Settings): Settings {
  return kept(DISCLOSURE, settings) as Settings;
}
