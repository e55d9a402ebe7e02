// Adds agents to the configuration file, and removes them from it.

import { MAIN_AGENT } from "../../config/agents.ts";
import { parseText, valueAt } from "../../config/source.ts";
import { optional } from "../../core/optional.ts";
import { fail } from "../../core/shapes/errors.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { showPath } from "../../core/text/value-path.ts";
import { type Cli, EXIT } from "../cli.ts";
import { refusal } from "../prompter.ts";
import { type ConfigDesk, withConfigFile } from "./config/file.ts";
import { saveChange } from "./config/values.ts";

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
  readonly id: string;
  readonly name?: string;
  readonly model?: string;
  readonly workspace?: string;
}

export async function addAgent(cli: Cli, { id, name, model, workspace }: NewAgent): Promise<number> {
  return withAgentList(cli, async ({ desk, revision, agents }) => {
    if (findAgent(agents, id) !== undefined) {
      const hint = `Change it: npx parley-gateway config set ${pathOf(id)}.model MODEL`;
      return cli.fail(fail("invalid_argument", `there is an agent ${JSON.stringify(id)} already`, { hint }));
    }
    const value = optional({ name, model, workspace });
    return saveChange(cli, desk, { path: pathOf(id), value }, { revision, dryRun: false });
  });
}

export async function removeAgent(
  cli: Cli,
  { agent: id, yes = false }: { readonly agent: string; readonly yes?: boolean },
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
    const question = `Remove the agent ${id}? Its sessions and files are kept.`;
    const refused = yes
      ? undefined
      : await refusal(cli, question, "Removing an agent", "Nothing was removed.");
    if (refused !== undefined) return refused;
    const change = { path: pathOf(id), unset: true } as const;
    const code = await saveChange(cli, desk, change, { revision, dryRun: false });
    if (code !== EXIT.done) return code;
    const folder = valueAt(agent, ["workspace"]);
    const files = typeof folder === "string" ? folder : "its workspace";
    cli.note(safeLine(`Its sessions stay in the store, and its files in ${files}. Its scheduled jobs fail.`));
    return code;
  });
}
