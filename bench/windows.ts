// Starts coding agents in a terminal on a model server, for bench/wake-each.ts: without the questions of a
// first start, with a trusted folder, and with a first prompt.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ProgramId } from "../src/features/join/programs.ts";
import type { ModelServer } from "../tests/kit/model-server/server.ts";

const PROMPT = "Begin.";

interface Place {
  readonly server: ModelServer;
  readonly home: string;
  /** The agent's project folder. */
  readonly folder: string;
  readonly packageFolder: string;
}

interface Start {
  /** The words that start the program, and those that open its window. */
  readonly program: readonly string[];
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  /** Arguments with which, after joining, the user gives consent to the MCP server. */
  readonly consent?: readonly string[];
}

export interface WindowProgram {
  readonly id: ProgramId;
  readonly name: string;
  readonly packageName: string;
  /** True if the agent can be woken while it is idle. */
  readonly idle: boolean;
  /** Writes the agent's configuration files, and returns its command and environment. */
  start(place: Place): Start;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const codexConfig = (baseUrl: string, folder: string): string => `model = "test-model"
model_provider = "test"
[model_providers.test]
name = "test"
base_url = "${baseUrl}"
wire_api = "responses"
env_key = "TEST_KEY"
[projects."${folder}"]
trust_level = "trusted"
`;

export const WINDOWS: readonly WindowProgram[] = [
  {
    id: "claude-code",
    name: "Claude Code",
    packageName: "@anthropic-ai/claude-code",
    idle: true,
    start({ server, home, folder, packageFolder }) {
      const projects = { [folder]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } };
      const state = { hasCompletedOnboarding: true, theme: "dark", projects };
      write(join(home, ".claude.json"), JSON.stringify(state));
      return {
        // There is no prompt, because the hook at the start delivers the first message.
        program: [join(packageFolder, "..", "..", ".bin", "claude")],
        args: [],
        env: {
          ANTHROPIC_BASE_URL: server.provider("anthropic-messages").baseUrl,
          ANTHROPIC_AUTH_TOKEN: "test",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        },
      };
    },
  },
  {
    id: "opencode",
    name: "opencode",
    packageName: "opencode-ai",
    idle: true,
    start({ server, packageFolder }) {
      const options = { baseURL: server.provider("openai-completions").baseUrl, apiKey: "none" };
      const local = { npm: "@ai-sdk/openai-compatible", options, models: { "test-model": {} } };
      const config = { model: "local/test-model", provider: { local }, autoupdate: false };
      return {
        program: [join(packageFolder, "bin", "opencode.exe")],
        args: ["--prompt", PROMPT],
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_MODELS_FETCH: "1" },
      };
    },
  },
  {
    id: "codex",
    name: "Codex",
    packageName: "@openai/codex",
    idle: true,
    start({ server, home, folder, packageFolder }) {
      const { baseUrl } = server.provider("openai-responses");
      write(join(home, ".codex", "config.toml"), codexConfig(baseUrl, folder));
      const program = [join(packageFolder, "..", "..", ".bin", "codex")];
      return { program, args: ["--dangerously-bypass-hook-trust", PROMPT], env: { TEST_KEY: "test" } };
    },
  },
  {
    id: "gemini",
    name: "Gemini CLI",
    packageName: "@google/gemini-cli",
    idle: false,
    start({ server, home, packageFolder }) {
      const settings = { security: { auth: { selectedType: "gemini-api-key" } } };
      write(join(home, ".gemini", "settings.json"), JSON.stringify(settings));
      return {
        program: [process.execPath, join(packageFolder, "bundle", "gemini.js")],
        args: ["-m", "gemini-2.5-flash", "-i", PROMPT],
        env: {
          GEMINI_API_KEY: "none",
          GOOGLE_GEMINI_BASE_URL: server.provider("google-generative-ai").baseUrl.replace("/v1beta", ""),
          GEMINI_CLI_TRUST_WORKSPACE: "true",
        },
      };
    },
  },
  {
    id: "qwen",
    name: "Qwen Code",
    packageName: "@qwen-code/qwen-code",
    idle: true,
    start({ server, packageFolder }) {
      return {
        program: [process.execPath, join(packageFolder, "cli.js")],
        args: ["--auth-type", "openai", "-i", PROMPT],
        consent: ["mcp", "approve", "parley"],
        env: {
          OPENAI_API_KEY: "none",
          OPENAI_BASE_URL: server.provider("openai-completions").baseUrl,
          OPENAI_MODEL: "test-model",
        },
      };
    },
  },
];
