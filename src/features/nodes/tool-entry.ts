// Describes the tool `nodes`, as models and the documentation see it.

import {
  about,
  anyObject,
  anything,
  either,
  flag,
  list,
  number,
  object,
  openObject,
  text,
} from "../../contract/schema.ts";
import { choice, done, type ToolEntry } from "../../contract/tools/parts.ts";
import { fail } from "../../core/shapes/errors.ts";
import { NODE_TIMEOUT_DEFAULT_MS, NODE_TIMEOUT_MAX_MS } from "./node.ts";

/** Timeout of a node's command, in seconds. */
export const NODE_TIMEOUT = {
  fallback: NODE_TIMEOUT_DEFAULT_MS / 1_000,
  min: 1,
  max: NODE_TIMEOUT_MAX_MS / 1_000,
};

const NODE = {
  id: text(),
  name: text(),
  platform: text(),
  connected: flag(),
  commands: list(text(), "Commands that may be sent to the node."),
};

/** The answer to a call while no device is paired. */
export const NOT_PAIRED = fail("node_not_found", "no node is paired with this gateway");

export const NODES_TOOL = {
  description:
    "Use paired devices (nodes): other machines that offer commands. `list`: lists the nodes; " +
    "`describe`: lists the commands of one; `invoke`: runs a command on one and waits for its result. " +
    "Common commands: exec with params {command: [program, argument, …], cwd?, timeoutMs?} runs a " +
    "program there without a shell; notify with params {title?, body} shows a notification. Each device " +
    "decides which commands it allows.",
  params: openObject(
    { action: choice(["list", "describe", "invoke"], "Action to take.") },
    {
      node: text("Name or id of the node. Optional if there is only one."),
      command: text("With `invoke`: one of the node's commands."),
      params: about(anyObject, "With `invoke`: params of the command."),
      timeoutSeconds: number(
        `With \`invoke\`: seconds to wait. Default ${NODE_TIMEOUT.fallback}, at most ${NODE_TIMEOUT.max}.`,
      ),
    },
  ),
  result: either(
    object({ count: number(), nodes: list(object(NODE)) }),
    object(
      {
        ...NODE,
        version: text(),
        caps: list(text()),
        notAllowed: list(text(), "Commands of the node that the settings do not allow."),
        sessionKey: text("Key of the node's own session. The session might not exist yet."),
      },
      { lastSeenAt: number("Time of the node's last connection, in ms since 1970.") },
    ),
    object({
      status: done,
      node: text("Name of the node."),
      command: text(),
      result: about(anything, "Result from the node."),
    }),
  ),
  errors: [
    "node_not_found",
    "node_unavailable",
    "node_command_denied",
    "node_timeout",
    "node_failed",
    "outcome_unknown",
    "too_large",
    "rate_limited",
    "run_aborted",
  ],
  who: "If a device is paired: every session. Sandboxed sessions only with `nodes.allowSandboxed`.",
  parallel: false,
  idempotent: false,
} as const satisfies ToolEntry;
