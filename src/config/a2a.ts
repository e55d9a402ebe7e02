// Checks the section `a2a` of the configuration file: which agents A2A clients can reach.

import { z } from "zod";
import type { A2aSettings } from "../core/shapes/settings/settings.ts";
import { agentProblem, texts } from "./schema/fields.ts";
import type { Problem } from "./source.ts";

const DESCRIPTION_CHARS_MAX = 1_000;

/** The section `a2a`. */
export const a2a = z
  .strictObject({
    expose: texts
      .default([])
      .describe("Agents that A2A clients with a token can reach; their cards are public. Default: none."),
    notifyHosts: texts
      .default([])
      .describe("Hosts that clients may have notified when a task ends, like `agents.example.com:8443`."),
    descriptions: z
      .record(z.string(), z.string().trim().min(1).max(DESCRIPTION_CHARS_MAX))
      .default({})
      .describe('What the card of an agent says about it, by agent id, like `{ research: "…" }`.'),
  })
  .prefault({});

/** Returns the settings, with agent ids in lower case. Reports names that are not ids of agents. */
export function a2aOf(
  file: z.output<typeof a2a>,
  agentIds: readonly string[],
  problems: Problem[],
): A2aSettings {
  const check = (name: string, path: Problem["path"]): void => {
    const text = agentProblem(name, agentIds);
    if (text !== undefined) problems.push({ path, text });
  };
  for (const [index, name] of file.expose.entries()) check(name, ["a2a", "expose", index]);
  for (const name of Object.keys(file.descriptions)) check(name, ["a2a", "descriptions", name]);
  const idOf = (name: string): string => name.trim().toLowerCase();
  return {
    expose: [...new Set(file.expose.map(idOf))],
    notifyHosts: file.notifyHosts.map(idOf),
    descriptions: Object.fromEntries(
      Object.entries(file.descriptions).map(([name, text]) => [idOf(name), text]),
    ),
  };
}
