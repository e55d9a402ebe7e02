// Agents, their prompt and memory.

import { readFile } from "node:fs/promises";
import { fail } from "../../core/shapes/errors.ts";
import { safeText } from "../../core/text/safe-text.ts";
import { count } from "../layout.ts";
import { asks, type Commands, flag, option, program } from "../row.ts";

const AGENT = { "<agent>": "Id of the agent" };

export const AGENTS: Commands = {
  list: asks({
    summary: "List the configured agents",
    isDefault: true,
    ask: (link) => link.request("agents.list", {}),
    print: (cli, { agents }) =>
      cli.table(agents, {
        AGENT: ({ id }) => id,
        MODEL: ({ model }) => model,
        "": (agent) => (agent.default ? "default" : ""),
        NAME: ({ name }) => name,
      }),
  }),
  show: asks({
    summary: "Show what the model of an agent is told, part by part with sizes",
    args: AGENT,
    ask: (link, { agent: agentId }) => link.request("agents.prompt", { agentId }),
    print(cli, { parts, skipped, tools }) {
      const rows = [...parts, { title: `Descriptions of ${count(tools.count, "tool")}`, ...tools }];
      const sum = (of: "bytes" | "tokens") => rows.reduce((total, row) => total + row[of], 0);
      const all = [...rows, { title: "Together", bytes: sum("bytes"), tokens: sum("tokens") }];
      cli.table(all, {
        PART: ({ title }) => title,
        BYTES: ({ bytes }) => bytes,
        TOKENS: ({ tokens }) => `about ${tokens}`,
        FILE: (row) => ("file" in row ? row.file : undefined),
      });
      for (const { path, why } of skipped) cli.line(safeText(`Not used: ${path}: ${why}`));
      for (const { title, file, text } of parts) {
        cli.line("");
        cli.line(safeText(`--- ${title}${file === undefined ? "" : ` (${file})`} ---`));
        cli.line(safeText(text));
      }
    },
  }),
  add: program({
    summary: "Add an agent to the configuration file",
    args: { "<id>": "Id of the agent: a-z, 0-9, _ and -" },
    options: {
      name: option("<text>", "Name for people (default: the id)"),
      model: option("<model>", "Model as <provider>/<model> (default: that of agents.defaults)"),
      workspace: option("<folder>", "Folder of the agent (default: its own folder)"),
    },
    load: async () => (await import("../commands/agents.ts")).addAgent,
  }),
  remove: program({
    summary: "Remove an agent from the configuration file, and keep its sessions and files",
    args: AGENT,
    options: { yes: flag("Remove without asking") },
    load: async () => (await import("../commands/agents.ts")).removeAgent,
  }),
  memory: asks({
    summary: "Show the memory of an agent, or replace it",
    args: AGENT,
    options: { from: option("<file>", "Replace the memory with the text of this file") },
    async ask(link, { agent: agentId, from }) {
      const known = await link.request("agents.memory.get", { agentId });
      if (!known.ok || from === undefined) return known;
      const text = await readFile(from, "utf8").catch(() => undefined);
      if (text === undefined) return fail("file_problem", `${from} could not be read`);
      const { revision } = known.value;
      return link.request("agents.memory.set", { agentId, text, revision });
    },
    print: (cli, { agentId, text }) =>
      cli.line(text === "" ? `Agent ${agentId} has no memory yet.` : safeText(text)),
  }),
};
