// Finds out where the configuration file sets the values of each agent.

import type { AgentSources, ValueSource } from "../core/shapes/settings/sources.ts";
import { type Tree, valueAt } from "./source.ts";

/** Paths below an agent and below agents.defaults. */
const PATHS = [
  "model",
  "fallbackModels",
  "thinking",
  "workspace",
  "maxModelCalls",
  "sandbox.mode",
  "sandbox.backend",
  "sandbox.network",
  "subagents.allowAgents",
  "subagents.model",
  "budget.dailyTokens",
  "budget.dailyCost",
] as const;

/**
 * Returns whether a value is set. In a budget, `null` sets "no limit"; elsewhere `null` and an empty text set
 * nothing.
 */
function isSet(tree: unknown, path: string): boolean {
  const value = valueAt(tree, path.split("."));
  return value !== undefined && (path.startsWith("budget.") || (value !== null && value !== ""));
}

function sourcesOf(agent: unknown, defaults: unknown): Record<string, ValueSource> {
  const sources = PATHS.map((path): [string, ValueSource] => {
    if (isSet(agent, path)) return [path, "agent"];
    return [path, isSet(defaults, path) ? "defaults" : "built-in"];
  });
  return Object.fromEntries(sources);
}

/** Returns for each agent where its values come from. A file without agents has one agent, `main`. */
export function agentSourcesOf(tree: Tree): AgentSources {
  const list = valueAt(tree, ["agents", "list"]);
  const defaults = valueAt(tree, ["agents", "defaults"]);
  const agents = Array.isArray(list) && list.length > 0 ? list : [{ id: "main" }];
  return Object.fromEntries(
    agents.map((agent) => [String(valueAt(agent, ["id"])).toLowerCase(), sourcesOf(agent, defaults)]),
  );
}
