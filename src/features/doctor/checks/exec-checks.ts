// Checks which agents may run commands, and whether a sandbox contains them.
// A broken sandbox is a problem if an agent uses it. Otherwise it is only reported.

import type { Cli } from "../../../cli/cli.ts";
import { approvalOfAgent } from "../../../core/rules/approval/policy.ts";
import { containsSubagents } from "../../../core/rules/sandbox-policy.ts";
import { decideTool } from "../../../core/rules/tool-policy.ts";
import {
  type AgentSettings,
  type ApprovalMode,
  programOf,
  type SandboxSettings,
  type Settings,
} from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { good, risk } from "./finding.ts";

const namesOf = (agents: readonly AgentSettings[]): string => agents.map(({ id }) => id).join(", ");

/** Warns about agents that may run commands outside a sandbox. */
export function checkExec(settings: Settings): Finding[] {
  const able = settings.agents.filter(({ id, tools, runtime }) => {
    if (runtime !== undefined) return false;
    const filters = [
      { where: "tools", filter: settings.tools.filter },
      { where: `agents.list[${id}].tools`, filter: tools },
    ];
    return decideTool("exec", filters).allowed;
  });
  if (able.length === 0) {
    if (settings.agents.some((agent) => programOf(agent) !== undefined)) return [];
    return [good("exec", "no agent may run commands")];
  }
  const free = able.filter(({ sandbox }) => sandbox.mode !== "all");
  if (free.length === 0) {
    const text = `commands of ${namesOf(able)} run in a sandbox`;
    return [good("exec", text), ...approvals(settings, able)];
  }
  const mainOnly = free.every(containsSubagents);
  const whose = `commands of ${namesOf(free)}${mainOnly ? " in main sessions" : ""}`;
  const text = `${whose} run outside a sandbox: they can do everything that your user can`;
  const mend =
    'Set agents.defaults.sandbox.mode: "all", or forbid exec with tools.deny: ["exec"]; ' +
    "for one agent, set agents.list[].sandbox.mode or agents.list[].tools.deny.";
  return [risk("exec", text, mend), ...approvals(settings, able)];
}

const APPROVED: Readonly<Record<ApprovalMode, string>> = {
  always: "an owner approves every command",
  risky: "an owner approves commands that may do more than read in the workspace",
  never: "commands run without approval",
};

/** Says which commands of each agent an owner approves. */
function approvals(settings: Settings, able: readonly AgentSettings[]): Finding[] {
  const modeOf = (agent: AgentSettings): ApprovalMode =>
    approvalOfAgent(settings, agent, agent.sandbox.mode === "all").mode;
  return [...Map.groupBy(able, modeOf)].map(([mode, agents]) =>
    good("approval", `${namesOf(agents)}: ${APPROVED[mode]} (tools.exec.approval: "${mode}")`),
  );
}

interface SandboxUse {
  readonly wanted: SandboxSettings;
  /** The agents that run sessions in this kind of sandbox. Empty if there are none. */
  readonly agents: readonly AgentSettings[];
}

/** Returns each kind of sandbox that agents use. If no agent uses one, returns the default kind. */
function sandboxUses(settings: Settings): SandboxUse[] {
  const sandboxed = settings.agents.filter(({ sandbox }) => sandbox.mode !== "off");
  const [first] = settings.agents;
  if (sandboxed.length === 0 && first !== undefined) return [{ wanted: first.sandbox, agents: [] }];
  const kinds = Map.groupBy(
    sandboxed,
    ({ sandbox }) => `${sandbox.backend} ${sandbox.network} ${sandbox.image ?? ""}`,
  );
  return [...kinds.values()].flatMap((agents) => {
    const [one] = agents;
    return one === undefined ? [] : [{ wanted: one.sandbox, agents }];
  });
}

export async function checkSandbox(cli: Cli, settings: Settings): Promise<Finding[]> {
  const { parts } = cli;
  if (parts.inspectSandbox === undefined) return [];
  const findings: Finding[] = [];
  for (const { wanted, agents } of sandboxUses(settings)) {
    const { usable, text, mend } = await parts.inspectSandbox(wanted);
    const whose =
      agents.length === 0 ? "off for every agent" : `for ${namesOf(agents)} (backend ${wanted.backend})`;
    const refused = usable || agents.length === 0 ? "" : "; runs that need it are refused";
    findings.push({
      name: "sandbox",
      level: usable || agents.length === 0 ? "ok" : "problem",
      text: `${whose}: ${text}${refused}`,
      ...(usable || mend === undefined ? {} : { mend }),
    });
  }
  return findings;
}
