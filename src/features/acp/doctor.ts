// Checks the programs of ACP agents for `parley doctor`: whether each is there, and whether it asks.

import type { Cli } from "../../cli/cli.ts";
import type { AgentSettings, Settings } from "../../core/shapes/settings/settings.ts";
import type { Finding } from "../../feature.ts";
import { isProgram, SEARCH_PATH } from "../../world/programs.ts";
import { acpProgramOf } from "./programs.ts";
import { acpRuntimeOf } from "./settings.ts";

/** Looks for each program in the PATH of its runs: the agent's own PATH, else that of this process. */
async function checkPrograms({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const agent of agents) {
    const { id, workspace } = agent;
    const runtime = acpRuntimeOf(agent);
    const [program] = runtime?.command ?? [];
    if (runtime === undefined || program === undefined) continue;
    const path = runtime.env.PATH ?? parts.env.PATH ?? SEARCH_PATH;
    const isThere = await isProgram(program, { path, cwd: runtime.cwd ?? workspace });
    const missing = `agent ${id}: program ${JSON.stringify(program)} not found, so its runs fail`;
    const mend = "Install it, or set its full path in agents.list[].runtime.command.";
    findings.push(
      isThere
        ? { name: "programs", level: "ok", text: `agent ${id}: found ${program}` }
        : { name: "programs", level: "problem", text: missing, mend },
    );
  }
  return findings;
}

/** Says of an agent that is a program over ACP whether it asks before it acts. Nothing contains it. */
function checkProgram(agent: AgentSettings): Finding[] {
  const risk = { name: "approval", level: "warning" } as const;
  const runtime = acpRuntimeOf(agent);
  if (runtime === undefined) return [];
  const known = acpProgramOf(runtime);
  const about = `${agent.id}: ${known?.name ?? "its program"} runs with the rights of your user`;
  const at = `agents.list[${agent.id}].runtime`;
  const names = Object.keys(known?.variables ?? {});
  const own = names.filter((name) => name in runtime.env);
  if (runtime.permissions === "allow") {
    const text = `${about}, and everything that it asks for is allowed (${at}.permissions: "allow")`;
    const mend = `Set ${at}.permissions: "ask", so that an owner answers.`;
    return [{ ...risk, text, mend }];
  }
  if (known === undefined || own.length > 0) {
    const text = `${about}, and Parley does not know what it does without asking`;
    const mend =
      own.length > 0
        ? `Remove ${own.join(" and ")} from ${at}.env, so that Parley makes it ask.`
        : `Make it ask in its own settings, or start it in a container by ${at}.command.`;
    return [{ ...risk, text, mend }];
  }
  const how = known.mode === undefined ? names.join(", ") : `mode "${known.mode}"`;
  const then = runtime.permissions === "ask" ? "an owner approves" : "Parley denies";
  const what = `${then} what may do more than read (${how}), unless its own settings`;
  if (known.obeysFolder !== true)
    return [{ name: "approval", level: "ok", text: `${about}; ${what} allow it` }];
  const text = `${about}; ${what} or those in its folder allow it`;
  const mend = "Let only its owner write to its folder, or start it in a container.";
  return [{ ...risk, text, mend }];
}

export const check = async (cli: Cli, settings: Settings): Promise<Finding[]> => [
  ...(await checkPrograms(cli, settings)),
  ...settings.agents.flatMap(checkProgram),
];
