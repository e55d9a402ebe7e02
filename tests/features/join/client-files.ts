// Makes the files with which other programs and registries find and install Parley: server.json, agent.json,
// and the plugins in `clients`. The MCP servers and the hooks are those of `parley join`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "smol-toml";
import { type Commands, PROGRAM, type ProgramId } from "../../../src/features/join/programs.ts";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

export const PACKAGE = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly mcpName: string;
};

const { name: PACKAGE_NAME, version, license } = PACKAGE;
const NAME = "parley";
const REPOSITORY = "https://github.com/parley-gateway/parley";
const WEBSITE = "https://parley-gateway.github.io/parley/";
const OWNER = { name: "Parley", url: REPOSITORY };
/** At most 100 characters, for the MCP registry. */
const DESCRIPTION = "Lets AI agents list, read and message each other's sessions, and hand out jobs.";
const ABOUT = { name: NAME, version, description: DESCRIPTION };

/** The skill of all plugins. It is written by hand in the first one. */
const SKILL = "skills/parley/SKILL.md";
const SKILL_SOURCE = `clients/claude-code/${SKILL}`;

/**
 * Returns the commands in a program's plugin. Its hooks run a script that its MCP server writes: npx would
 * ask the registry before each prompt. Before the first start of the server they do nothing.
 */
export function pluginCommands(id: ProgramId): Commands {
  const script = "~/.parley/joined/hook.sh";
  return {
    mcp: ["npx", "-y", PACKAGE_NAME, "mcp", "--plugin", id],
    hook: ["sh", "-c", `[ ! -f ${script} ] || exec sh ${script} "$0"`, id],
  };
}

/** Returns the MCP server and the hooks of a program's plugin: those that `parley join` writes. */
function partsOf(id: ProgramId): { server: object; hooks: object } {
  const { mcp, hook } = pluginCommands(id);
  const [command, ...args] = mcp;
  const edits = PROGRAM[id].edits("", { mcp, hook });
  const insertions = edits.flatMap((edit) => (edit.kind === "json" ? edit.insertions : []));
  const hooks = insertions.flatMap(({ path: [section, event], value }) =>
    section === "hooks" && event !== undefined ? [[event, value]] : [],
  );
  return {
    server: { mcpServers: { parley: { command, args } } },
    hooks: { hooks: Object.fromEntries(hooks) },
  };
}

const optionalInput = (name: string, description: string, more: object = {}) => ({
  type: "named",
  name,
  description,
  ...more,
});

/** The entry of the MCP registry. */
const SERVER = {
  $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  name: PACKAGE.mcpName,
  title: "Parley",
  description: DESCRIPTION,
  version,
  websiteUrl: WEBSITE,
  repository: { url: REPOSITORY, source: "github" },
  packages: [
    {
      registryType: "npm",
      identifier: PACKAGE_NAME,
      version,
      runtimeHint: "npx",
      runtimeArguments: [{ type: "positional", value: "-y" }],
      transport: { type: "stdio" },
      packageArguments: [
        { type: "positional", value: "mcp" },
        optionalInput("--handle", "Name of the client's session. Default: the client's name.", {
          placeholder: "laptop",
        }),
        optionalInput("--agent", "Agent of the client's session. Default: the default agent."),
        optionalInput("--url", "Address of a gateway elsewhere. Default: the one that runs here.", {
          placeholder: "ws://127.0.0.1:7275",
        }),
      ],
      environmentVariables: [
        { name: "PARLEY_TOKEN", description: "Token of the gateway, with --url.", isSecret: true },
        {
          name: "PARLEY_CONFIG",
          description: "Configuration file. Default: ~/.parley/parley.json5.",
          format: "filepath",
        },
      ],
    },
  ],
};

/** The entry of the ACP registry. Its icon is that of the extension for Zed. */
const AGENT = {
  id: NAME,
  name: "Parley",
  version,
  description: "Opens sessions of a Parley gateway, whose agents work with each other.",
  repository: REPOSITORY,
  website: WEBSITE,
  authors: [OWNER.name],
  license,
  distribution: { npx: { package: `${PACKAGE_NAME}@${version}`, args: ["acp"] } },
};

/** For each platform of Zed, the name of its archive. */
const ARCHIVES = {
  "darwin-aarch64": "macos-arm64",
  "darwin-x86_64": "macos-x64",
  "linux-aarch64": "linux-arm64",
  "linux-x86_64": "linux-x64",
  "windows-aarch64": "windows-arm64",
  "windows-x86_64": "windows-x64",
};

const targets = Object.entries(ARCHIVES).map(([platform, system]) => {
  const folder = `${PACKAGE_NAME}-${version}-${system}`;
  const [end, program] = system.startsWith("windows") ? ["zip", "parley.cmd"] : ["tar.gz", "parley"];
  const archive = `${REPOSITORY}/releases/download/v${version}/${folder}.${end}`;
  return [platform, { archive, cmd: `./${folder}/${program}`, args: ["acp"] }];
});

const ZED = {
  id: NAME,
  name: "Parley",
  version,
  schema_version: 1,
  authors: [OWNER.name],
  description: AGENT.description,
  repository: REPOSITORY,
  agent_servers: {
    [NAME]: { name: "Parley", icon: "./icon.svg", targets: Object.fromEntries(targets) },
  },
};

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

/** Returns the text of each file, by its path. */
export function clientFiles(): Record<string, string> {
  const skill = readFileSync(join(ROOT, SKILL_SOURCE), "utf8");
  const [claude, codex, gemini, qwen] = (["claude-code", "codex", "gemini", "qwen"] as const).map(partsOf);
  const about = { ...ABOUT, author: OWNER, homepage: WEBSITE, repository: REPOSITORY, license };
  return {
    "server.json": json(SERVER),
    "agent.json": json(AGENT),
    ".claude-plugin/marketplace.json": json({
      name: NAME,
      owner: OWNER,
      description: "The plugin of Parley for Claude Code.",
      plugins: [{ name: NAME, source: "./clients/claude-code", description: DESCRIPTION }],
    }),
    "clients/claude-code/.claude-plugin/plugin.json": json(about),
    "clients/claude-code/.mcp.json": json(claude?.server ?? {}),
    "clients/claude-code/hooks/hooks.json": json(claude?.hooks ?? {}),
    ".agents/plugins/marketplace.json": json({
      name: NAME,
      interface: { displayName: "Parley" },
      plugins: [
        {
          name: NAME,
          source: { source: "local", path: "./clients/codex" },
          policy: { installation: "AVAILABLE", authentication: "ON_INSTALL" },
          category: "Productivity",
        },
      ],
    }),
    "clients/codex/.codex-plugin/plugin.json": json(about),
    "clients/codex/.mcp.json": json(codex?.server ?? {}),
    "clients/codex/hooks/hooks.json": json(codex?.hooks ?? {}),
    [`clients/codex/${SKILL}`]: skill,
    "clients/gemini/gemini-extension.json": json({ ...ABOUT, ...gemini?.server }),
    "clients/gemini/hooks/hooks.json": json(gemini?.hooks ?? {}),
    [`clients/gemini/${SKILL}`]: skill,
    "clients/qwen/qwen-extension.json": json({ ...ABOUT, ...qwen?.server }),
    "clients/qwen/hooks/hooks.json": json(qwen?.hooks ?? {}),
    [`clients/qwen/${SKILL}`]: skill,
    "clients/zed/extension.toml": `${stringify(ZED)}\n`,
  };
}
