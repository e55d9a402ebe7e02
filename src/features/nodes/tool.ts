// Implements the tool `nodes`, which lists paired devices and their commands, and invokes a command. A
// command is sent with the call's id, so that the node runs a repeated call only once.
// TN1: a session has the tool only if a device is paired and nodes are enabled. A sandboxed session also
//      needs `nodes.allowSandboxed`, because a node is outside of every sandbox.

import type { ArgumentsOf, ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { quoted } from "../../core/text/cut.ts";
import { countLimit, textLimit } from "../../tools/arguments.ts";
import type { ToolContext } from "../../tools/catalog.ts";
import { readLabel } from "../../tools/labels/sinks.ts";
import { tool as createTool, type Tool } from "../../tools/tool.ts";
import type { NodeHub } from "./hub.ts";
import { allowedCommands, type NodeRow, type NodeStatus, nodeKey, nodesNamed } from "./node.ts";
import { NODE_TIMEOUT, NOT_PAIRED } from "./tool-entry.ts";

type NodesContext = Pick<ToolContext, "settings" | "signal" | "ready">;

const NAME_MAX_CHARS = 128;
const SECOND_MS = 1_000;
/** A node and the commands that are allowed for it. */
type ShownNode = Pick<NodeRow, "id" | "name" | "platform" | "commands"> & { readonly connected: boolean };
type Args = Omit<ArgumentsOf<"nodes">, "timeoutSeconds"> & { readonly timeoutSeconds: number };
type Answer = Promise<Result<ToolResultOf<"nodes">>>;

function shownNode(ctx: NodesContext, { node, connected }: NodeStatus): ShownNode {
  const { id, name, platform } = node;
  return { id, name, platform, connected, commands: allowedCommands(node, ctx.settings.nodes) };
}

/** Returns the node that the call names. A single node need not be named. */
async function nodeOf(door: NodeHub, args: Args): Promise<Result<NodeStatus>> {
  const wanted = args.node;
  const all = await door.statuses();
  const fits = wanted === undefined ? all : nodesNamed(wanted, all);
  const [first, ...others] = fits;
  if (first !== undefined && others.length === 0) return ok(first);
  const names = (first === undefined ? all : fits).map(
    ({ node }) => `${node.name} (${node.id.slice(0, 12)})`,
  );
  const hint = `There are: ${names.join(", ")}.`;
  if (wanted === undefined)
    return fail("invalid_argument", "node is required: several nodes are paired", { hint });
  const shown = JSON.stringify(wanted);
  if (first === undefined) return fail("node_not_found", `no paired node ${shown}`, { hint });
  return fail("invalid_argument", `${shown} matches ${fits.length} nodes: give an id`, { hint });
}

async function describe(ctx: NodesContext, door: NodeHub, args: Args): Answer {
  const found = await nodeOf(door, args);
  if (!found.ok) return found;
  const { node } = found.value;
  const { caps, version, commands, lastSeenAt } = node;
  const allowed = allowedCommands(node, ctx.settings.nodes);
  return ok({
    ...shownNode(ctx, found.value),
    version,
    caps,
    notAllowed: commands.filter((command) => !allowed.includes(command)),
    sessionKey: nodeKey(node.id),
    ...optional({ lastSeenAt }),
  });
}

async function invoke(ctx: NodesContext, door: NodeHub, args: Args, call: ToolCallRequest): Answer {
  const { command, params, timeoutSeconds } = args;
  if (command === undefined) {
    return fail("invalid_argument", "command is required for invoke; use describe to list a node's commands");
  }
  const found = await nodeOf(door, args);
  if (!found.ok) return found;
  const { id, name } = found.value.node;
  const asked = {
    nodeId: id,
    command,
    ...optional({ params }),
    timeoutMs: timeoutSeconds * SECOND_MS,
    idempotencyKey: `tool:${call.callId}`,
  };
  const done = await door.invoke(asked, ctx.signal);
  return done.ok ? ok({ status: "ok", node: name, command, result: done.value }) : done;
}

export const tool: Tool<NodesContext> = createTool("nodes", {
  limits: {
    node: textLimit(NAME_MAX_CHARS),
    command: textLimit(NAME_MAX_CHARS),
    timeoutSeconds: countLimit(NODE_TIMEOUT),
  },
  sink: (_ctx, { action, node = "of this gateway", command, params }) =>
    action === "invoke"
      ? {
          kind: "node",
          to: quoted(node, NAME_MAX_CHARS),
          payload: JSON.stringify({ command, params }),
          reads: "node",
        }
      : undefined,
  reads: (ctx, { action }) => (action === "invoke" ? readLabel(ctx, "private", "node") : undefined),
  async execute(ctx, args, call) {
    const door = ctx.ready?.get("nodes") as NodeHub | undefined;
    if (door === undefined) return { ...NOT_PAIRED, hint: "An operator can pair one: see docs/NODES.md." };
    switch (args.action) {
      case "list": {
        const all = await door.statuses();
        return ok({ count: all.length, nodes: all.map((one) => shownNode(ctx, one)) });
      }
      case "describe":
        return describe(ctx, door, args);
      case "invoke":
        return invoke(ctx, door, args, call);
    }
  },
});
