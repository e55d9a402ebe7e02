// Implements `parley agents`: lists the configured agents, shows what the model of one is told, and its
// memory.

import { readFile } from "node:fs/promises";
import type { AgentPrompt } from "../../contract/methods/agents.ts";
import { fail } from "../../core/shapes/errors.ts";
import { safeText } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { withLink } from "../gateway-link.ts";
import { count, table } from "../layout.ts";

export async function listAgents(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("agents.list", {});
    if (!answer.ok) return cli.fail(answer);
    const rows = answer.value.agents.map((agent) => [
      agent.id,
      agent.model,
      agent.default ? "default" : "",
      agent.name ?? "",
    ]);
    for (const line of table(["AGENT", "MODEL", "", "NAME"], rows)) cli.line(line);
    cli.document(answer.value);
    return EXIT.done;
  });
}

/** Returns the sizes of all parts as a table, with their sum. */
function sizes({ parts, tools }: AgentPrompt): string[] {
  const rows = [
    ...parts.map(({ title, file, bytes, tokens }) => ({ title, file, bytes, tokens })),
    { title: `Descriptions of ${count(tools.count, "tool")}`, file: undefined, ...tools },
  ];
  const sum = (of: "bytes" | "tokens") => rows.reduce((total, row) => total + row[of], 0);
  const all = [...rows, { title: "Together", file: undefined, bytes: sum("bytes"), tokens: sum("tokens") }];
  return table(
    ["PART", "BYTES", "TOKENS", "FILE"],
    all.map(({ title, file = "", bytes, tokens }) => [title, String(bytes), `about ${tokens}`, file]),
  );
}

export async function showAgent(cli: Cli, [agentId = ""]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("agents.prompt", { agentId });
    if (!answer.ok) return cli.fail(answer);
    const { parts, skipped } = answer.value;
    for (const line of sizes(answer.value)) cli.line(line);
    for (const { path, why } of skipped) cli.line(safeText(`Not used: ${path}: ${why}`));
    for (const { title, file, text } of parts) {
      cli.line("");
      cli.line(safeText(`--- ${title}${file === undefined ? "" : ` (${file})`} ---`));
      cli.line(safeText(text));
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function agentMemory(
  cli: Cli,
  [agentId = ""]: readonly string[],
  { from }: { readonly from?: string },
): Promise<number> {
  const text = from === undefined ? undefined : await readFile(from, "utf8").catch(() => undefined);
  if (from !== undefined && text === undefined) {
    return cli.fail(fail("file_problem", `${from} could not be read`));
  }
  return withLink(cli, async (link) => {
    const known = await link.request("agents.memory.get", { agentId });
    if (!known.ok) return cli.fail(known);
    const { revision } = known.value;
    const answer =
      text === undefined ? known : await link.request("agents.memory.set", { agentId, text, revision });
    if (!answer.ok) return cli.fail(answer);
    const { value } = answer;
    cli.line(value.text === "" ? `Agent ${value.agentId} has no memory yet.` : safeText(value.text));
    cli.document(value);
    return EXIT.done;
  });
}
