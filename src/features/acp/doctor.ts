// Checks the programs of ACP agents for `parley doctor`: whether each is there, and whether it asks.

import type { Cli } from "../../cli/cli.ts";
import type { AgentSettings, Settings } from "../../core/shapes/settings/settings.ts";
import type { Finding } from "../../feature.ts";
import { isProgram, SEARCH_PATH } from "../../world/programs.ts";
import { acpProgramOf } from "./programs.ts";
import { type AcpRuntime, acpRuntimeOf } from "./settings.ts";

/** Looks for a program in the PATH of its runs: the agent's own PATH, else that of this process. */
async function findProgram(
  { parts }: Cli,
  { id, workspace }: AgentSettings,
  runtime: AcpRuntime,
): Promise<Finding> {
  const [program = ""] = runtime.command;
  const path = runtime.env.PATH ?? parts.env.PATH ?? SEARCH_PATH;
  if (await isProgram(program, { path, cwd: runtime.cwd ?? workspace }))
    return { name: "programs", level: "ok", text: `agent ${id}: found ${program}` };
  const text = `agent ${id}: program ${JSON.stringify(program)} not found, so its runs fail`;
  const mend = "Install it, or set its full path in agents.list[].runtime.command.";
  return { name: "programs", level: "problem", text, mend };
}

/** Says whether a program asks before it acts. Nothing contains it. */
function judgeProgram({ id }: AgentSettings, runtime: AcpRuntime): Finding {
  const risk = { name: "approval", level: "warning" } as const;
  const known = acpProgramOf(runtime);
  const about = `${id}: ${known?.name ?? "its program"} runs with the rights of your user`;
  const at = `agents.list[${id}].runtime`;
  const names = Object.keys(known?.variables ?? {});
  const own = names.filter((name) => name in runtime.env);
  if (runtime.permissions === "allow") {
    const text = `${about}, and everything that it asks for is allowed (${at}.permissions: "allow")`;
    const mend = `Set ${at}.permissions: "ask", so that an owner answers.`;
    return { ...risk, text, mend };
  }
  if (known === undefined || own.length > 0) {
    const text = `${about}, and Parley does not know what it does without asking`;
    const mend =
      own.length > 0
        ? `Remove ${own.join(" and ")} from ${at}.env, so that Parley makes it ask.`
        : `Make it ask in its own settings, or start it in a container by ${at}.command.`;
    return { ...risk, text, mend };
  }
  const how = known.mode === undefined ? names.join(", ") : `mode "${known.mode}"`;
  const then = runtime.permissions === "ask" ? "an owner approves" : "Parley denies";
  const what = `${then} what may do more than read (${how}), unless its own settings`;
  if (known.obeysFolder !== true)
    return { name: "approval", level: "ok", text: `${about}; ${what} allow it` };
  const text = `${about}; ${what} or those in its folder allow it`;
  const mend = "Let only its owner write to its folder, or start it in a container.";
  return { ...risk, text, mend };
}

export async function check(cli: Cli, { agents }: Settings): Promise<Finding[]> {
  const programs = agents.flatMap((agent) => {
    const runtime = acpRuntimeOf(agent);
    return runtime === undefined ? [] : [[agent, runtime] as const];
  });
  const there = await Promise.all(programs.map((program) => findProgram(cli, ...program)));
  return [...there, ...programs.map((program) => judgeProgram(...program))];
}
