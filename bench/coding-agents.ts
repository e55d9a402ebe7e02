// The coding agents that the benchmarks run: their npm packages, and how each one starts on the tests' model
// server, as an ACP agent or as an MCP client. Each is installed into its own folder.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ModelServer } from "../tests/kit/model-server/server.ts";

const run = promisify(execFile);
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;

/** A way to start a program: a file of its package, and arguments. */
interface Door {
  readonly packageName: string;
  readonly version: string;
  /** Path of the file inside the package. */
  readonly file: string;
  readonly args?: readonly string[];
}

/** Returns the ways to start a program over ACP and headless, if both start the same file. */
function doorsOf(
  program: Omit<Door, "args">,
  args: { readonly acp: readonly string[]; readonly headless: readonly string[] },
): { acp: Door; headless: Door } {
  return { acp: { ...program, args: args.acp }, headless: { ...program, args: args.headless } };
}

/** A program that serves MCP over standard input and output: command, arguments, environment. */
export interface McpEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The settings of a program: its environment, the configuration files in its home, and additional arguments
 * of headless runs.
 */
interface Settings {
  readonly env: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

export interface CodingAgent {
  readonly name: string;
  /** Starts the program as an ACP agent. */
  readonly acp: Door;
  /** Starts the program without a terminal; the prompt follows the arguments. */
  readonly headless: Door;
  /**
   * Returns the settings for this model server. `mcp`: the agent's only MCP server. It is named `parley`, and
   * the agent may call all of its tools.
   */
  settings(server: ModelServer, home: string, mcp?: McpEntry): Settings;
}

/**
 * Codex's configuration. It names a model that Codex knows, because answers of other models begin with a
 * warning.
 */
const codexConfig = (baseUrl: string, mcp?: McpEntry): string => `model = "gpt-5.5"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "${baseUrl}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
${
  mcp === undefined
    ? ""
    : `[mcp_servers.parley]
command = ${JSON.stringify(mcp.command)}
args = ${JSON.stringify(mcp.args)}
default_tools_approval_mode = "approve"
[mcp_servers.parley.env]
${Object.entries(mcp.env)
  .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  .join("\n")}
`
}`;

/** Returns the settings of Gemini CLI and of Qwen Code, which is derived from it. */
const geminiSettings = (own: object, mcp?: McpEntry): string =>
  JSON.stringify({
    ...own,
    ...(mcp === undefined ? {} : { mcpServers: { parley: { ...mcp, trust: true } } }),
  });

export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    name: "Claude Code",
    acp: { packageName: "@agentclientprotocol/claude-agent-acp", version: "0.101.0", file: "dist/index.js" },
    headless: {
      packageName: "@anthropic-ai/claude-code",
      version: "2.1.330",
      file: "bin/claude.exe",
      args: ["-p"],
    },
    settings: (server, _home, mcp) => ({
      env: {
        ANTHROPIC_BASE_URL: server.provider("anthropic-messages").baseUrl,
        ANTHROPIC_API_KEY: "none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      },
      ...(mcp === undefined
        ? {}
        : {
            files: { "mcp.json": JSON.stringify({ mcpServers: { parley: mcp } }) },
            args: ["--mcp-config=../mcp.json", "--strict-mcp-config", "--allowedTools=mcp__parley"],
          }),
    }),
  },
  {
    name: "Codex",
    acp: { packageName: "@agentclientprotocol/codex-acp", version: "2.6.0", file: "dist/index.js" },
    headless: {
      packageName: "@openai/codex",
      version: "0.166.0",
      file: "bin/codex.js",
      args: ["exec", "--skip-git-repo-check"],
    },
    settings: (server, home, mcp) => ({
      // Codex needs a temporary folder of its own: it creates no sandbox inside the system's temporary
      // folder, and runs no commands without a sandbox.
      env: { CODEX_HOME: join(home, ".codex"), OPENAI_API_KEY: "none", TMPDIR: join(home, "tmp") },
      files: { ".codex/config.toml": codexConfig(server.provider("openai-responses").baseUrl, mcp) },
    }),
  },
  {
    name: "opencode",
    ...doorsOf(
      { packageName: "opencode-ai", version: "1.18.33", file: "bin/opencode.exe" },
      { acp: ["acp"], headless: ["run"] },
    ),
    settings: (server, _home, mcp) => {
      const options = { baseURL: server.provider("openai-completions").baseUrl, apiKey: "none" };
      const local = { npm: "@ai-sdk/openai-compatible", options, models: { "test-model": {} } };
      const parley = mcp && {
        type: "local",
        enabled: true,
        environment: mcp.env,
        command: [mcp.command, ...mcp.args],
      };
      const config = { model: "local/test-model", provider: { local }, ...(parley && { mcp: { parley } }) };
      return { env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) } };
    },
  },
  {
    name: "Gemini CLI",
    ...doorsOf(
      { packageName: "@google/gemini-cli", version: "0.61.0", file: "bundle/gemini.js" },
      { acp: ["--acp", "-m", "gemini-2.5-flash"], headless: ["-m", "gemini-2.5-flash", "-p"] },
    ),
    settings: (server, _home, mcp) => ({
      env: {
        GEMINI_API_KEY: "none",
        GOOGLE_GEMINI_BASE_URL: server.provider("google-generative-ai").baseUrl.replace("/v1beta", ""),
        // Gemini CLI connects to MCP servers only in a trusted folder.
        GEMINI_CLI_TRUST_WORKSPACE: "true",
      },
      files: {
        ".gemini/settings.json": geminiSettings(
          { security: { auth: { selectedType: "gemini-api-key" } } },
          mcp,
        ),
      },
    }),
  },
  {
    name: "Qwen Code",
    ...doorsOf(
      { packageName: "@qwen-code/qwen-code", version: "0.24.4", file: "cli.js" },
      { acp: ["--acp", "--auth-type", "openai"], headless: ["--auth-type", "openai", "-p"] },
    ),
    settings: (server, _home, mcp) => ({
      env: {
        OPENAI_API_KEY: "none",
        OPENAI_BASE_URL: server.provider("openai-completions").baseUrl,
        OPENAI_MODEL: "test-model",
      },
      files: { ".qwen/settings.json": geminiSettings({}, mcp) },
    }),
  },
];

/** Copilot as an ACP agent. It has no headless run with an MCP server here. */
export const COPILOT: CodingAgent = {
  name: "Copilot",
  ...doorsOf(
    { packageName: "@github/copilot", version: "1.0.102", file: "npm-loader.js" },
    { acp: ["--acp"], headless: ["-p"] },
  ),
  settings: (server) => ({
    env: {
      COPILOT_OFFLINE: "true",
      COPILOT_PROVIDER_BASE_URL: server.provider("openai-completions").baseUrl,
      COPILOT_PROVIDER_API_KEY: "none",
      COPILOT_MODEL: "test-model",
    },
  }),
};

/** Returns the id of a coding agent. Its folder, and the Parley agent that runs it, have this name. */
export const idOf = ({ name }: CodingAgent): string => name.toLowerCase().replaceAll(" ", "-");

/** The fields of a package.json that determine the installation. */
export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** Installs packages into a folder, unless they are already there. */
export async function install(
  folder: string,
  manifest: Manifest,
  flags: readonly string[] = [],
): Promise<void> {
  if (Object.keys(manifest.dependencies).every((name) => existsSync(join(folder, "node_modules", name))))
    return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, ...manifest }));
  process.stderr.write(`installing ${Object.keys(manifest.dependencies).join(", ")} into ${folder} …\n`);
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  await run("nice", ["-n", "15", "npm", "install", ...quiet, ...flags], {
    cwd: folder,
    maxBuffer: OUTPUT_MAX_BYTES,
  });
}

/** Installs a coding agent into a subfolder of `folder`. */
export async function installAgent(agent: CodingAgent, folder: string): Promise<void> {
  const doors = [agent.acp, agent.headless];
  const dependencies = Object.fromEntries(doors.map((door) => [door.packageName, door.version]));
  await install(join(folder, idOf(agent)), { dependencies });
}

/** A command with its environment. */
interface Started {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Writes the settings of a program into its home, and returns the command that starts it. */
function prepare(door: Door, { env, files = {} }: Settings, folder: string, home: string): Started {
  mkdirSync(join(home, "tmp"), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const file = join(folder, "node_modules", door.packageName, door.file);
  const command = [...(file.endsWith(".js") ? [process.execPath] : []), file, ...(door.args ?? [])];
  return { command, env: { HOME: home, ...env } };
}

/** Returns the setting `runtime` of a Parley agent that runs this program. */
export function runtimeOf(agent: CodingAgent, folder: string, server: ModelServer, home: string) {
  const settings = agent.settings(server, home);
  return { type: "acp", ...prepare(agent.acp, settings, join(folder, idOf(agent)), home) };
}

/** A program with its settings in its home: the command alone, and the arguments of a headless run. */
export interface Installed extends Started {
  readonly args: readonly string[];
}

/** Writes the settings of a program into its home, without an MCP server. */
export function installedOf(
  agent: CodingAgent,
  folder: string,
  server: ModelServer,
  home: string,
): Installed {
  const { args = [], ...door } = agent.headless;
  return { ...prepare(door, agent.settings(server, home), join(folder, idOf(agent)), home), args };
}

/** Returns the command that runs this program for one prompt, with the tools of one MCP server. */
export function headlessOf(
  agent: CodingAgent,
  folder: string,
  server: ModelServer,
  home: string,
  mcp: McpEntry,
): Started {
  const settings = agent.settings(server, home, mcp);
  const { command, env } = prepare(agent.headless, settings, join(folder, idOf(agent)), home);
  return { command: [...command, ...(settings.args ?? [])], env };
}
