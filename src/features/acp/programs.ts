// Knows of some programs that speak ACP whether they ask before they act, and what makes them ask. A program
// decides by itself what it asks: by default Codex and opencode run most commands without a question.

import { SESSION_TOOLS } from "../../core/rules/tool-policy.ts";
import type { AcpRuntime } from "./settings.ts";

interface AcpProgram {
  readonly name: string;
  /** Names in its `agentInfo`. */
  readonly agentNames: readonly string[];
  /** Names of its executable and its packages. */
  readonly commands: readonly string[];
  /** Id of the ACP session mode in which it asks. */
  readonly mode?: string;
  /** Whether it works in that mode even if everything is allowed: its usual one refuses session tools. */
  readonly refusesInOtherModes?: true;
  /** Whether it takes MCP servers over HTTP only, although the protocol demands standard streams. */
  readonly startsNoServers?: true;
  /** Whether settings in its folder were seen to run commands without asking, also in that mode. */
  readonly obeysFolder?: true;
  /** Argument of the calls that start a sub-agent, if it does not mark the text of sub-agents. */
  readonly startsBy?: string;
  /** Variables of its environment that make it ask. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Lets opencode read and use the session tools, and ask for everything else. */
const OPENCODE_RULES = {
  "*": "ask",
  read: { "*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow" },
  ...Object.fromEntries(["glob", "grep", "list", "todowrite"].map((name) => [name, "allow"])),
  ...Object.fromEntries(SESSION_TOOLS.map((name) => [`parley_${name}`, "allow"])),
};

const PROGRAMS: readonly AcpProgram[] = [
  {
    name: "Claude Code",
    agentNames: ["@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-code-acp"],
    commands: ["claude-agent-acp", "claude-code-acp"],
    mode: "default",
    refusesInOtherModes: true,
    obeysFolder: true,
  },
  {
    name: "Codex",
    agentNames: ["@agentclientprotocol/codex-acp", "codex-acp"],
    commands: ["codex-acp"],
    mode: "read-only",
  },
  {
    name: "Gemini CLI",
    agentNames: ["gemini-cli"],
    commands: ["gemini", "gemini-cli"],
    mode: "default",
    obeysFolder: true,
  },
  {
    name: "Qwen Code",
    agentNames: ["qwen-code"],
    commands: ["qwen", "qwen-code"],
    mode: "default",
    obeysFolder: true,
  },
  {
    name: "Copilot",
    agentNames: ["Copilot"],
    commands: ["copilot"],
    mode: "https://agentclientprotocol.com/protocol/session-modes#agent",
    startsNoServers: true,
    startsBy: "agent_type",
  },
  {
    name: "opencode",
    agentNames: ["OpenCode"],
    commands: ["opencode", "opencode-ai"],
    // Without the second one, the configuration in the workspace has more rank than the rules.
    variables: {
      OPENCODE_PERMISSION: JSON.stringify(OPENCODE_RULES),
      OPENCODE_DISABLE_PROJECT_CONFIG: "true",
    },
  },
];

/** Returns the program that a command starts, if it is known. */
export function acpProgramOf({ command }: Pick<AcpRuntime, "command">): AcpProgram | undefined {
  // The executable or the package that a word of a command means.
  const names = command.map((word) => {
    const inPackage = /\/node_modules\/(?:@[^/]+\/)?([^/]+)\//.exec(word)?.[1];
    return inPackage ?? /(?:^|\/)([^/@]+?)(?:\.exe|\.cmd)?(?:@[^/]*)?$/.exec(word)?.[1];
  });
  return PROGRAMS.find(({ commands }) => commands.some((name) => names.includes(name)));
}

const byAgentName = (agentName: string | undefined): AcpProgram | undefined =>
  PROGRAMS.find(({ agentNames }) => agentNames.some((name) => name === agentName));

/**
 * Returns the mode to put a program into: the one in which it asks. Undefined for an unknown program, and for
 * one without such a mode. `agentName`: the name in its `agentInfo`. `mustAsk`: not everything is allowed.
 */
export function modeFor(agentName: string | undefined, mustAsk: boolean): string | undefined {
  const program = byAgentName(agentName);
  return mustAsk || program?.refusesInOtherModes === true ? program?.mode : undefined;
}

/** Returns whether a program gets the session tools over HTTP, because it starts no MCP servers. */
export function needsHttpTools(agentName: string | undefined): boolean {
  return byAgentName(agentName)?.startsNoServers === true;
}

/** Returns the argument of the calls that start a sub-agent, if the program does not mark its text. */
export function subagentArgument(agentName: string | undefined): string | undefined {
  return byAgentName(agentName)?.startsBy;
}

/** Returns the variables that make the program ask. The settings of the agent may replace them. */
export function askingVariables(
  runtime: Pick<AcpRuntime, "command" | "permissions">,
): Readonly<Record<string, string>> {
  return runtime.permissions === "allow" ? {} : (acpProgramOf(runtime)?.variables ?? {});
}
