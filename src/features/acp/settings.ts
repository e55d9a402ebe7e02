// Defines the settings of agents that are programs over ACP.

import {
  choice,
  DAY_SECONDS,
  flag,
  integer,
  list,
  map,
  path,
  text,
  type Values,
} from "../../config/schema/setting.ts";
import type { AgentSettings } from "../../core/shapes/settings/settings.ts";

const withoutNul = text("", {
  minLength: 0,
  checks: [[(value) => !value.includes("\0"), "must not contain NUL"]],
});

export const RUNTIME = {
  command: list(withoutNul, "The program and its arguments. Required for acp; no shell is involved.", {
    default: [],
    shown: "program",
  }),
  env: map(
    text("", { pattern: [/^[A-Za-z_][A-Za-z0-9_]*$/, "must be letters, digits and _"] }),
    withoutNul,
    "The program's environment, in addition to PATH, HOME and a few others. List its API keys here.",
    { default: {} },
  ),
  cwd: path("Working folder. Default: the agent's workspace."),
  permissions: choice(
    ["deny", "allow", "ask"],
    "Answer to the program's permission requests; ask: an operator decides. With ask and deny, a known " +
      "program is put into the mode in which it asks.",
    { default: "deny" },
  ),
  askSeconds: integer(
    "With permissions ask: requests without an answer are denied after this time.",
    [1, DAY_SECONDS],
    { default: 300 },
  ),
  sessionTools: flag("Whether the program gets the session tools, through an MCP server that it starts.", {
    default: true,
  }),
  idleMinutes: integer(
    "Time after which an idle program is stopped, for each session; 0: immediately.",
    [0, 1_440],
    { default: 10 },
  ),
};

/** Settings of an agent that is an external program, controlled over the Agent Client Protocol. */
export type AcpRuntime = Values<typeof RUNTIME>;

/** Returns the settings of an agent that is such a program, or undefined for any other agent. */
export const acpRuntimeOf = (agent: AgentSettings | undefined): AcpRuntime | undefined =>
  agent?.runtime?.type === "acp" ? (agent.runtime as unknown as AcpRuntime) : undefined;

/** Reports a command that is missing, or that another runtime has. */
export function checkRuntime(
  { type, command }: AcpRuntime & { readonly type: string },
  tell: (name: string, text: string) => void,
): void {
  if (type !== "acp" && command.length > 0) tell("command", 'is valid only with runtime.type "acp"');
  if (type === "acp" && (command[0] ?? "").trim() === "")
    tell("command", 'must name a program, like ["my-agent", "--acp"]');
}
