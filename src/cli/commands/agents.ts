// Implements `parley agents`: lists the configured agents, adds and removes them, shows what the model of one
// is told, and its memory.

import { readFile } from "node:fs/promises";
import { MAIN_AGENT } from "../../config/agents.ts";
import { parseText, valueAt } from "../../config/source.ts";
import type { AgentPrompt } from "../../contract/methods/agents.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { showPath } from "../../core/text/value-path.ts";
import { openPrompter } from "../channels/prompter.ts";
import { type Cli, EXIT } from "../cli.ts";
import { withLink } from "../gateway-link.ts";
import { count, table } from "../layout.ts";
import { type ConfigDesk, withConfigFile } from "./config/file.ts";
import { saveChange } from "./config/values.ts";

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

interface AgentList {
  readonly desk: ConfigDesk;
  readonly revision: string;
  /** The agents of the file's list, else the one that an empty list means. */
  readonly agents: readonly unknown[];
}

/** Runs `work` with the agents of the configuration file. */
function withAgentList(cli: Cli, work: (list: AgentList) => Promise<number>): Promise<number> {
  return withConfigFile(cli, async (desk) => {
    const file = await desk.read();
    if (!file.ok) return cli.fail(file);
    const { text, path, revision } = file.value;
    const tree = parseText(text, path);
    if (!tree.ok) return cli.fail(tree);
    const agents = valueAt(tree.value, ["agents", "list"]);
    return work({
      desk,
      revision,
      agents: Array.isArray(agents) && agents.length > 0 ? agents : [MAIN_AGENT],
    });
  });
}

const idOf = (agent: unknown): string => String(valueAt(agent, ["id"]));
const findAgent = (agents: readonly unknown[], id: string): unknown =>
  agents.find((agent) => idOf(agent).toLowerCase() === id.toLowerCase());
const pathOf = (id: string): string => showPath(["agents", "list", id]);

interface NewAgent {
  readonly name?: string;
  readonly model?: string;
  readonly workspace?: string;
}

export async function addAgent(
  cli: Cli,
  [id = ""]: readonly string[],
  { name, model, workspace }: NewAgent,
): Promise<number> {
  return withAgentList(cli, async ({ desk, revision, agents }) => {
    if (findAgent(agents, id) !== undefined) {
      const hint = `Change it: npx parley-gateway config set ${pathOf(id)}.model MODEL`;
      return cli.fail(fail("invalid_argument", `there is an agent ${JSON.stringify(id)} already`, { hint }));
    }
    const value = optional({ name, model, workspace });
    return saveChange(cli, desk, { path: pathOf(id), value }, { revision, dryRun: false });
  });
}

/** Asks whether to remove an agent. Fails if nobody can be asked. */
async function mayRemove(cli: Cli, id: string): Promise<Result<boolean>> {
  if (!cli.parts.isTTY || cli.options.json)
    return fail("invalid_argument", "Removing an agent needs --yes where no terminal can ask.");
  const prompter = await openPrompter(cli.parts);
  const answer = await prompter.confirm(safeLine(`Remove the agent ${id}? Its sessions and files are kept.`));
  return answer.ok || answer.code === "cancelled" ? ok(answer.ok && answer.value) : answer;
}

export async function removeAgent(
  cli: Cli,
  [id = ""]: readonly string[],
  { yes = false }: { readonly yes?: boolean },
): Promise<number> {
  return withAgentList(cli, async ({ desk, revision, agents }) => {
    const agent = findAgent(agents, id);
    if (agent === undefined) {
      const hint = `There are: ${agents.map(idOf).join(", ")}.`;
      return cli.fail(fail("agent_not_found", `there is no agent ${JSON.stringify(id)}`, { hint }));
    }
    if (agents.length === 1) {
      const hint = "Add another one first: npx parley-gateway agents add ID";
      return cli.fail(fail("invalid_argument", `${id} is the only agent, and a gateway needs one`, { hint }));
    }
    const agreed = yes ? ok(true) : await mayRemove(cli, id);
    if (!agreed.ok) return cli.fail(agreed, EXIT.usage);
    if (!agreed.value) return cli.fail({ code: "cancelled", error: "Nothing was removed." });
    const change = { path: pathOf(id), unset: true } as const;
    const code = await saveChange(cli, desk, change, { revision, dryRun: false });
    if (code !== EXIT.done) return code;
    const folder = valueAt(agent, ["workspace"]);
    const files = typeof folder === "string" ? folder : "its workspace";
    cli.note(safeLine(`Its sessions stay in the store, and its files in ${files}. Its scheduled jobs fail.`));
    return code;
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
