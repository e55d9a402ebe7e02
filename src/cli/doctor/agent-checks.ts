// Checks agents with a `runtime`: whether their programs exist, and whether agents elsewhere can be used.

import { programOf, type Settings } from "../../core/shapes/settings/settings.ts";
import { isProgram, SEARCH_PATH } from "../../world/programs.ts";
import type { Cli } from "../cli.ts";
import type { Finding } from "./finding.ts";

/** Looks for each program in the PATH of its runs: the agent's own PATH, else that of this process. */
export async function checkPrograms({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const agent of agents) {
    const { id, workspace } = agent;
    const runtime = programOf(agent);
    const [program] = runtime?.command ?? [];
    if (runtime === undefined || program === undefined) continue;
    const path = runtime.env.PATH ?? parts.env.PATH ?? SEARCH_PATH;
    const isThere = await isProgram(program, { path, cwd: runtime.cwd ?? workspace });
    findings.push(
      isThere
        ? { name: "programs", level: "ok", text: `agent ${id}: found ${program}` }
        : {
            name: "programs",
            level: "problem",
            text: `agent ${id}: program ${JSON.stringify(program)} not found, so its runs fail`,
            mend: "Install it, or set its full path in agents.list[].runtime.command.",
          },
    );
  }
  return findings;
}

/** Reads the card of each agent elsewhere. */
export async function checkRemotes({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const { inspectRemote } = parts;
  if (inspectRemote === undefined) return [];
  const found = agents.map(async ({ id, runtime }): Promise<Finding[]> => {
    if (runtime?.type !== "a2a") return [];
    const { usable, text } = await inspectRemote(runtime);
    const finding = { name: "a2a", text: `agent ${id}: ${text}` };
    if (usable) return [{ ...finding, level: "ok" }];
    const mend = `Check card, key and token in agents.list[${id}].runtime.`;
    return [{ ...finding, level: "problem", mend }];
  });
  return (await Promise.all(found)).flat();
}
