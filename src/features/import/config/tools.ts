// Maps the source's tool rules.
// CT1: an import never allows a tool that was denied: a profile becomes the list of its tools, and a rule
//      without a counterpart is reported.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf } from "../../../core/json.ts";
import { quoted } from "../../../core/text/cut.ts";
import { matchesAny } from "../../../core/text/pattern.ts";
import { textsIn } from "../fields.ts";
import { compact, noteRest, take } from "./tree.ts";

const SESSIONS = ["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "session_status"];
const FILES = ["read", "write", "edit"];

/** The tools of each group. Also the current name of each tool that had another name. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "group:sessions": [...SESSIONS, "sessions_search", "subagents"],
  "group:fs": FILES,
  "group:runtime": ["exec"],
  "group:messaging": ["message"],
  bash: ["exec"],
};

const PROFILES: Readonly<Record<string, readonly string[]>> = {
  minimal: ["session_status"],
  coding: [...FILES, "exec", ...SESSIONS, "sessions_search", "subagents"],
  messaging: ["message", "sessions_list", "sessions_history", "sessions_send", "session_status"],
};

function expand(names: readonly string[]): string[] {
  return [...new Set(names.flatMap((name) => GROUPS[name.toLowerCase()] ?? [name]))];
}

/** Removes `allow`, `deny` and `profile` from one section and returns the filter. */
export function takeFilter(tree: Tree, where: string, notes: string[]): Tree {
  const allow = expand([...textsIn(take(tree, "allow")), ...textsIn(take(tree, "alsoAllow"))]);
  const deny = expand(textsIn(take(tree, "deny")));
  const profile = take(tree, "profile");
  const ofProfile = typeof profile === "string" ? PROFILES[profile] : undefined;
  if (typeof profile === "string" && ofProfile === undefined && profile !== "full") {
    notes.push(`${where}.profile ${quoted(profile, 40)} is not known: set ${where}.allow by hand`);
    return compact({ allow: [], deny: ["*"] }) as Tree;
  }
  if (ofProfile === undefined) return lists(allow, deny);
  const both = allow.length === 0 ? ofProfile : ofProfile.filter((name) => matchesAny(allow, name));
  return both.length === 0 ? lists([], ["*"]) : lists(both, deny);
}

function lists(allow: readonly string[], deny: readonly string[]): Tree {
  return { ...(allow.length === 0 ? {} : { allow }), ...(deny.length === 0 ? {} : { deny }) };
}

/** Maps the section `tools`. `denied`: further patterns of tools that nobody may use. */
export function mapTools(tools: Tree, notes: string[], denied: readonly string[]): Tree {
  const own = takeFilter(tools, "tools", notes);
  const deny = [...textsIn(own.deny), ...denied];
  const inner = (name: string): Tree | undefined => {
    const there = { ...fieldsOf(take(tools, name, "tools")) };
    if (Object.keys(there).length === 0) return undefined;
    const filter = takeFilter(there, `tools.${name}.tools`, notes);
    noteRest(there, `tools.${name}.tools`, notes);
    return { tools: filter };
  };
  const enabled = take(tools, "agentToAgent", "enabled");
  const allow = textsIn(take(tools, "agentToAgent", "allow"));
  const visibility = take(tools, "sessions", "visibility");
  const seconds = take(tools, "exec", "timeoutSec");
  return {
    ...own,
    deny: deny.length === 0 ? undefined : deny,
    subagents: inner("subagents"),
    sandbox: inner("sandbox"),
    sessions: { visibility: typeof visibility === "string" ? visibility : undefined },
    agentToAgent: {
      enabled: typeof enabled === "boolean" ? enabled : undefined,
      allow: allow.length === 0 ? undefined : allow.map((name) => name.toLowerCase()),
    },
    exec: { timeoutSeconds: typeof seconds === "number" ? Math.round(seconds) : undefined },
  };
}
