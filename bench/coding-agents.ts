// Owns the coding agents that are tried with a gateway: their packages, and how each is started as an ACP
// agent on a model server of the tests. They come from the npm registry, into a folder of their own.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ModelServer } from "../tests/kit/model-server.ts";

const run = promisify(execFile);
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;

export interface CodingAgent {
  readonly name: string;
  readonly packageName: string;
  readonly version: string;
  /** Its program, below its package. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Its environment, and files below its home. */
  start(server: ModelServer, home: string): { env: Record<string, string>; files?: Record<string, string> };
}

/** With a model that it knows: it begins each answer of another one with a warning. */
const codexConfig = (baseUrl: string): string => `model = "gpt-5.5"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "${baseUrl}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`;

export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    name: "Claude Code",
    packageName: "@agentclientprotocol/claude-agent-acp",
    version: "0.100.0",
    file: "dist/index.js",
    start: (server) => ({
      env: {
        ANTHROPIC_BASE_URL: server.provider("anthropic-messages").baseUrl,
        ANTHROPIC_API_KEY: "none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      },
    }),
  },
  {
    name: "Codex",
    packageName: "@agentclientprotocol/codex-acp",
    version: "2.6.0",
    file: "dist/index.js",
    start: (server, home) => ({
      env: { CODEX_HOME: join(home, ".codex"), OPENAI_API_KEY: "none" },
      files: { ".codex/config.toml": codexConfig(server.provider("openai-responses").baseUrl) },
    }),
  },
  {
    name: "opencode",
    packageName: "opencode-ai",
    version: "1.18.33",
    file: "bin/opencode.exe",
    args: ["acp"],
    start: (server) => {
      const options = { baseURL: server.provider("openai-completions").baseUrl, apiKey: "none" };
      const local = { npm: "@ai-sdk/openai-compatible", options, models: { "test-model": {} } };
      return {
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ model: "local/test-model", provider: { local } }) },
      };
    },
  },
  {
    name: "Gemini CLI",
    packageName: "@google/gemini-cli",
    version: "0.61.0",
    file: "bundle/gemini.js",
    args: ["--acp", "-m", "gemini-2.5-flash"],
    start: (server) => ({
      env: {
        GEMINI_API_KEY: "none",
        GOOGLE_GEMINI_BASE_URL: server.provider("google-generative-ai").baseUrl.replace("/v1beta", ""),
        // It connects to MCP servers only in a folder that it trusts.
        GEMINI_CLI_TRUST_WORKSPACE: "true",
      },
      files: { ".gemini/settings.json": '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' },
    }),
  },
  {
    name: "Qwen Code",
    packageName: "@qwen-code/qwen-code",
    version: "0.24.4",
    file: "cli.js",
    args: ["--acp", "--auth-type", "openai"],
    start: (server) => ({
      env: {
        OPENAI_API_KEY: "none",
        OPENAI_BASE_URL: server.provider("openai-completions").baseUrl,
        OPENAI_MODEL: "test-model",
      },
    }),
  },
];

/** The parts of a package.json that say what to install. */
export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** Installs packages into a folder, unless they are there. */
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

/** Returns the `runtime` of an agent that is this program. */
export function runtimeOf(agent: CodingAgent, folder: string, server: ModelServer, home: string) {
  const { env, files = {} } = agent.start(server, home);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const file = join(folder, "node_modules", agent.packageName, agent.file);
  const command = [...(file.endsWith(".js") ? [process.execPath] : []), file, ...(agent.args ?? [])];
  return { type: "acp", command, env: { HOME: home, ...env } };
}
