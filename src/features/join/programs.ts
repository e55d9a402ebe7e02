// The coding agents that can join: how to configure each of them, and the protocol of its hooks.
// PR1: only documented interfaces of a program are used: its MCP servers, its hooks, its plugins.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { shellLine } from "../../cli/shell-words.ts";
import type { Edit } from "./change.ts";
import { openCodePlugin } from "./opencode-plugin.ts";
import type { PROGRAMS } from "./words.ts";

export type ProgramId = (typeof PROGRAMS)[number];

/** The commands that joining writes into a program's configuration. */
export interface Commands {
  /** The words of the command that starts the MCP server. */
  readonly mcp: readonly string[];
  /** The words of the command that runs the hook. */
  readonly hook: readonly string[];
}

/** Output of a hook: text and exit code. */
export interface HookOutput {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly code: number;
}

export interface Program {
  readonly name: string;
  /** Lines for the user after joining. */
  readonly notes: readonly string[];
  /**
   * How an idle window is woken: by its own hook or plugin, by a command that queues a prompt, by its socket,
   * or not at all.
   */
  readonly door: "own" | "queue" | "socket" | "none";
  /** Returns the edits with which the program joins in a project folder. */
  edits(folder: string, commands: Commands): Edit[];
  /**
   * Returns whether the hook may wait in the background for messages. `env`: the environment of the program.
   */
  waits(env: Readonly<Record<string, string | undefined>>, event: string): boolean;
  /** Returns the output with which a hook passes messages to the model. */
  tell(text: string, event: string): HookOutput;
  /** Returns the command that continues a conversation without a window. */
  resume(conversation: string, prompt: string): readonly string[];
}

/**
 * The prompt that starts a turn for waiting messages. The prompt does not contain the messages, because other
 * users of the machine can read a command's arguments.
 */
export const NUDGE =
  "New messages wait in your Parley inbox. If they are not shown here, read them with the Parley tool " +
  "sessions_inbox. Answer with sessions_send, with the id of the message as inReplyTo.";

/** Names of the hook events with which a turn begins. */
const TURN_STARTS = ["UserPromptSubmit", "BeforeAgent"];

export const startsTurn = (event: string): boolean => TURN_STARTS.includes(event);

/** Maximum time for which a background hook waits. The next turn starts a new hook. */
export const WAIT_MAX_SECONDS = 24 * 60 * 60;
/** Time limit of a hook that does not wait; it usually answers much sooner. */
const HOOK_SECONDS = 15;

function entryOf([command, ...args]: readonly string[]): { command: string; args: string[] } {
  return { command: command ?? "", args };
}

/**
 * Formats a hook's output that adds text for the model, at the start of the program or of a turn. Most
 * programs have this format.
 */
function contextAt(hookEventName: string, text: string): HookOutput {
  const hookSpecificOutput = { hookEventName, additionalContext: text };
  return { stdout: JSON.stringify({ hookSpecificOutput }), code: 0 };
}

/**
 * Formats a hook's output that blocks a prompt, or the end of a turn. At the end of a turn, the model
 * continues with `reason` as its input.
 */
export function blocked(reason: string): HookOutput {
  return { stdout: JSON.stringify({ decision: "block", reason }), code: 0 };
}

/** Formats a hook's output that adds text for the model, in the format of Codex, Gemini CLI and Qwen Code. */
const tellInTurn = (text: string, event: string): HookOutput =>
  event === "SessionStart" || startsTurn(event) ? contextAt(event, text) : blocked(text);

/** Parley's tools, of its entry in `.mcp.json` and of its plugin. */
const CLAUDE_TOOLS = "mcp__parley,mcp__plugin_parley_parley";

const claudeCode: Program = {
  name: "Claude Code",
  notes: [
    "Restart windows that are already open. Claude Code asks you to trust this folder and what was added.",
    "Do not commit this entry of .mcp.json: it names a program on this machine.",
  ],
  edits(folder, { mcp, hook }) {
    // A hook that runs in the background. If it exits with code 2, the program wakes its idle session.
    const waiting = {
      type: "command",
      command: shellLine(hook),
      asyncRewake: true,
      timeout: WAIT_MAX_SECONDS,
    };
    const hooks = [{ hooks: [waiting] }];
    const atStart = { type: "command", command: shellLine(hook), timeout: HOOK_SECONDS };
    return [
      {
        file: join(folder, ".mcp.json"),
        kind: "json",
        insertions: [{ path: ["mcpServers", "parley"], value: { type: "stdio", ...entryOf(mcp) } }],
      },
      {
        file: join(folder, ".claude", "settings.local.json"),
        kind: "json",
        insertions: [
          { path: ["hooks", "Stop"], value: hooks },
          { path: ["hooks", "SessionStart"], value: hooks },
          { path: ["hooks", "UserPromptSubmit"], value: [{ hooks: [atStart] }] },
          { path: ["permissions", "allow"], value: ["mcp__parley"] },
          { path: ["enabledMcpjsonServers"], value: ["parley"] },
        ],
      },
    ];
  },
  door: "own",
  // Wait only if there is a window. Otherwise Claude Code would wait for its background hooks before it
  // exits.
  waits: (env, event) => env.CLAUDE_CODE_ENTRYPOINT === "cli" && !startsTurn(event),
  tell: (text, event) => (startsTurn(event) ? contextAt(event, text) : { stderr: text, code: 2 }),
  // A continued conversation may use these tools without a person: a plugin cannot allow them itself.
  resume: (id, prompt) => ["claude", "-p", prompt, "--resume", id, `--allowedTools=${CLAUDE_TOOLS}`],
};

const codex: Program = {
  name: "Codex",
  notes: [
    "Restart windows that are already open. The program must trust this folder.",
    "With its first prompt, Codex asks you to review the hooks. Before that, no message reaches it.",
  ],
  edits(folder, { mcp, hook }) {
    const { command, args } = entryOf(mcp);
    // JSON strings are used, because each is also a valid TOML string.
    const lines = [
      "[mcp_servers.parley]",
      `command = ${JSON.stringify(command)}`,
      `args = ${JSON.stringify(args)}`,
      'default_tools_approval_mode = "approve"',
    ];
    const hooks = [{ hooks: [{ type: "command", command: shellLine(hook), timeout: HOOK_SECONDS }] }];
    return [
      {
        file: join(folder, ".codex", "config.toml"),
        kind: "toml",
        table: ["mcp_servers", "parley"],
        text: `${lines.join("\n")}\n`,
      },
      {
        file: join(folder, ".codex", "hooks.json"),
        kind: "json",
        insertions: [
          { path: ["hooks", "Stop"], value: hooks },
          { path: ["hooks", "UserPromptSubmit"], value: hooks },
          { path: ["hooks", "SessionStart"], value: hooks },
        ],
      },
    ];
  },
  door: "queue",
  waits: () => false,
  tell: tellInTurn,
  // Skips Codex's check for a Git repository, because Codex would refuse a folder without one.
  resume: (id, prompt) => ["codex", "exec", "resume", "--skip-git-repo-check", id, prompt],
};

const openCode: Program = {
  name: "opencode",
  notes: [
    "Restart windows that are already open.",
    "Do not commit this entry of opencode.json: it names a program on this machine.",
  ],
  edits(folder, { mcp, hook }) {
    const commented = join(folder, "opencode.jsonc");
    const file = existsSync(commented) ? commented : join(folder, "opencode.json");
    // Set `$schema`, because opencode would add it itself and so change the file.
    const schema = { path: ["$schema"], value: "https://opencode.ai/config.json" };
    const server = { path: ["mcp", "parley"], value: { type: "local", command: mcp, enabled: true } };
    return [
      { file, kind: "json", insertions: existsSync(file) ? [server] : [server, schema] },
      {
        file: join(folder, ".opencode", "plugins", "parley.js"),
        kind: "new",
        text: openCodePlugin(hook),
      },
    ];
  },
  door: "own",
  waits: () => true,
  tell: (text) => ({ stdout: text, code: 0 }),
  resume: (id, prompt) => ["opencode", "run", "--session", id, prompt],
};

const settingsProgram = (
  name: string,
  place: { command: string; start: string; stop: string; door: Program["door"]; tools: string },
): Program => ({
  name,
  notes: ["Restart windows that are already open. The program must trust this folder."],
  edits(folder, { mcp, hook }) {
    const timeout = HOOK_SECONDS * 1_000;
    const hooks = [{ hooks: [{ name: "parley", type: "command", command: shellLine(hook), timeout }] }];
    return [
      {
        file: join(folder, `.${place.command}`, "settings.json"),
        kind: "json",
        insertions: [
          { path: ["mcpServers", "parley"], value: { ...entryOf(mcp), trust: true } },
          { path: ["hooks", place.stop], value: hooks },
          { path: ["hooks", place.start], value: hooks },
          { path: ["hooks", "SessionStart"], value: hooks },
        ],
      },
    ];
  },
  door: place.door,
  waits: () => false,
  tell: tellInTurn,
  // A continued conversation may use these tools without a person: a plugin cannot allow them itself.
  resume: (id, prompt) => [place.command, "--resume", id, "-p", prompt, `--allowed-tools=${place.tools}`],
});

export const PROGRAM: Readonly<Record<ProgramId, Program>> = {
  "claude-code": claudeCode,
  codex,
  opencode: openCode,
  gemini: settingsProgram("Gemini CLI", {
    command: "gemini",
    start: "BeforeAgent",
    stop: "AfterAgent",
    door: "none",
    tools: "mcp_parley_*",
  }),
  qwen: settingsProgram("Qwen Code", {
    command: "qwen",
    start: "UserPromptSubmit",
    stop: "Stop",
    door: "socket",
    tools: "mcp__parley",
  }),
};
