// Owns the programs that can join: their configuration files, and the protocol of their hooks.
// PR1: only documented doors of a program are used: its MCP servers, its hooks, its plugins.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Edit } from "./change.ts";
import { openCodePlugin } from "./opencode-plugin.ts";

export const PROGRAMS = ["claude-code", "codex", "opencode", "gemini", "qwen"] as const;
export type ProgramId = (typeof PROGRAMS)[number];

/** Commands that a program's configuration names. */
export interface Commands {
  /** Words that start the MCP server. */
  readonly mcp: readonly string[];
  /** Words that start the hook. */
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
  /** Returns the changes of the configuration of a project folder. */
  edits(folder: string, commands: Commands): Edit[];
  /** Whether the hook may wait for messages in the background, in this environment of the program. */
  waits(env: Readonly<Record<string, string | undefined>>): boolean;
  /** Returns the output of a hook that has messages for the model. */
  tell(text: string, event: string): HookOutput;
}

/** Maximum wait of a background hook. The next turn starts a new hook. */
export const WAIT_MAX_SECONDS = 24 * 60 * 60;
/** Time limit of a hook that does not wait; it usually answers much sooner. */
const HOOK_SECONDS = 15;

function entryOf([command, ...args]: readonly string[]): { command: string; args: string[] } {
  return { command: command ?? "", args };
}

/** Quotes words for a shell. */
const shellLine = (words: readonly string[]): string =>
  words.map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** Tells the model of a starting program, as most programs read it. */
function contextAtStart(text: string): HookOutput {
  const hookSpecificOutput = { hookEventName: "SessionStart", additionalContext: text };
  return { stdout: JSON.stringify({ hookSpecificOutput }), code: 0 };
}

const claudeCode: Program = {
  name: "Claude Code",
  notes: [
    "Windows that are open already need a restart.",
    ".mcp.json is often shared: this entry names a program of this machine.",
  ],
  edits(folder, { mcp, hook }) {
    // In the background; its exit code 2 wakes an idle session.
    const waiting = {
      type: "command",
      command: shellLine(hook),
      asyncRewake: true,
      timeout: WAIT_MAX_SECONDS,
    };
    const hooks = [{ hooks: [waiting] }];
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
          { path: ["permissions", "allow"], value: ["mcp__parley"] },
          { path: ["enabledMcpjsonServers"], value: ["parley"] },
        ],
      },
    ];
  },
  // Without a person at the terminal it waits for its hooks.
  waits: (env) => env.CLAUDE_CODE_ENTRYPOINT === "cli",
  tell: (text) => ({ stderr: text, code: 2 }),
};

/** Blocks the end of a turn, so that the model continues with the messages. */
function goOn(text: string): HookOutput {
  return { stdout: JSON.stringify({ decision: "block", reason: text }), code: 0 };
}

const codex: Program = {
  name: "Codex",
  notes: [
    "Windows that are open already need a restart. The folder must be trusted.",
    "Codex asks you to review the hooks before it runs them: /hooks.",
  ],
  edits(folder, { mcp, hook }) {
    const { command, args } = entryOf(mcp);
    // Strings of JSON are strings of TOML, too.
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
          { path: ["hooks", "SessionStart"], value: hooks },
        ],
      },
    ];
  },
  waits: () => false,
  tell: (text, event) => (event === "SessionStart" ? contextAtStart(text) : goOn(text)),
};

const openCode: Program = {
  name: "opencode",
  notes: [
    "Windows that are open already need a restart.",
    "opencode.json is often shared: this entry names a program of this machine.",
  ],
  edits(folder, { mcp, hook }) {
    const commented = join(folder, "opencode.jsonc");
    const file = existsSync(commented) ? commented : join(folder, "opencode.json");
    // opencode adds the first to a file without it.
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
  waits: () => true,
  tell: (text) => ({ stdout: text, code: 0 }),
};

const settingsProgram = (
  name: string,
  place: { folder: string; stop: string; milliseconds: boolean },
): Program => ({
  name,
  notes: ["Windows that are open already need a restart. The folder must be trusted."],
  edits(folder, { mcp, hook }) {
    const timeout = HOOK_SECONDS * (place.milliseconds ? 1_000 : 1);
    const hooks = [{ hooks: [{ name: "parley", type: "command", command: shellLine(hook), timeout }] }];
    return [
      {
        file: join(folder, place.folder, "settings.json"),
        kind: "json",
        insertions: [
          { path: ["mcpServers", "parley"], value: { ...entryOf(mcp), trust: true } },
          { path: ["hooks", place.stop], value: hooks },
          { path: ["hooks", "SessionStart"], value: hooks },
        ],
      },
    ];
  },
  waits: () => false,
  tell: (text, event) => (event === "SessionStart" ? contextAtStart(text) : goOn(text)),
});

export const PROGRAM: Readonly<Record<ProgramId, Program>> = {
  "claude-code": claudeCode,
  codex,
  opencode: openCode,
  gemini: settingsProgram("Gemini CLI", { folder: ".gemini", stop: "AfterAgent", milliseconds: true }),
  qwen: settingsProgram("Qwen Code", { folder: ".qwen", stop: "Stop", milliseconds: true }),
};
