// Owns what the doctor finds about tool calls: which agents may run commands, and whether something contains
// them.
// EC1: containment that is configured and can't be had is a problem; one that nobody asked for is a fact.

import { containsSubagents } from "../../core/sandbox-policy.ts";
import type { AgentSettings, SandboxSettings, Settings } from "../../core/settings.ts";
import { decideTool } from "../../core/tool-policy.ts";
import type { Cli } from "../cli.ts";
import type { Finding } from "./finding.ts";

const namesOf = (agents: readonly AgentSettings[]): string => agents.map(({ id }) => id).join(", ");

/** Which agents may run commands that nothing contains. */
export function checkExec(settings: Settings): Finding[] {
  const able = settings.agents.filter(({ id, tools }) => {
    const filters = [
      { where: "tools", filter: settings.tools.filter },
      { where: `agents.list[${id}].tools`, filter: tools },
    ];
    return decideTool("exec", filters).allowed;
  });
  const name = "exec";
  if (able.length === 0) return [{ name, level: "ok", text: "no agent may run commands" }];
  const free = able.filter(({ sandbox }) => sandbox.mode !== "all");
  if (free.length === 0) {
    return [{ name, level: "ok", text: `commands of ${namesOf(able)} run in a sandbox` }];
  }
  const mainOnly = free.every(containsSubagents);
  const whose = `commands of ${namesOf(free)}${mainOnly ? " in main sessions" : ""}`;
  return [
    {
      name,
      level: "warning",
      text: `${whose} are not contained: they can do what your user can, whatever the rules say`,
      mend:
        'Contain them with agents.defaults.sandbox.mode: "all", or take exec away with ' +
        'tools.deny: ["exec"]; for one agent, with agents.list[].sandbox.mode or agents.list[].tools.deny.',
    },
  ];
}

interface Wish {
  readonly wanted: SandboxSettings;
  /** Whose sessions, or some of them, are to be contained so. */
  readonly agents: readonly AgentSettings[];
}

/** Each way of containment that agents ask for; where nobody asks for any, the one that they would get. */
function wishesOf(settings: Settings): Wish[] {
  const sandboxed = settings.agents.filter(({ sandbox }) => sandbox.mode !== "off");
  const [first] = settings.agents;
  if (sandboxed.length === 0 && first !== undefined) return [{ wanted: first.sandbox, agents: [] }];
  const ways = Map.groupBy(
    sandboxed,
    ({ sandbox }) => `${sandbox.backend} ${sandbox.network} ${sandbox.image ?? ""}`,
  );
  return [...ways.values()].flatMap((agents) => {
    const [one] = agents;
    return one === undefined ? [] : [{ wanted: one.sandbox, agents }];
  });
}

export async function checkSandbox(cli: Cli, settings: Settings): Promise<Finding[]> {
  const { parts } = cli;
  if (parts.inspectSandbox === undefined) return [];
  const findings: Finding[] = [];
  for (const { wanted, agents } of wishesOf(settings)) {
    const { usable, text, mend } = await parts.inspectSandbox(wanted);
    const whose =
      agents.length === 0 ? "off for every agent" : `for ${namesOf(agents)} (backend ${wanted.backend})`;
    const refused = usable || agents.length === 0 ? "" : "; their contained runs are refused, never run bare";
    findings.push({
      name: "sandbox",
      level: usable || agents.length === 0 ? "ok" : "problem",
      text: `${whose}: ${text}${refused}`,
      ...(usable || mend === undefined ? {} : { mend }),
    });
  }
  return findings;
}
