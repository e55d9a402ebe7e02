// Implements the tool `nodes`, which lists paired devices and their commands, and invokes a command. A
// command is sent with the call's id, so that the node runs a repeated call only once.
// TN1: a session has the tool only if a device is paired and nodes are enabled. A sandboxed session also
//      needs `nodes.allowSandboxed`, because a node is outside of every sandbox.

import { NODE_TIMEOUT } from "../contract/tools/work.ts";
import type { ArgumentsOf, ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { allowedCommands, type NodeRow, type NodeStatus, nodeKey, nodesNamed } from "../core/shapes/node.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import { countLimit, textLimit } from "./arguments.ts";
import { type NodeDoor, type ReadingContext, type RunContext, type Tool, tool } from "./tool.ts";

export interface NodesContext extends Pick<ReadingContext, "settings">, Pick<RunContext, "signal"> {
  /** Absent if no device is paired or nodes are disabled. */
  readonly nodes?: NodeDoor | undefined;
}

const NAME_MAX_CHARS = 128;
const SECOND_MS = 1_000;
/** Access to the paired devices, and whether any is paired now. */
export interface NodeSource extends NodeDoor {
  anyPaired(): Promise<boolean>;
}

/**
 * Returns access to the paired devices. Returns undefined if none is paired, so that prompts don't mention
 * them.
 */
export async function nodesIn(source: NodeSource | undefined): Promise<NodeDoor | undefined> {
  return source !== undefined && (await source.anyPaired()) ? source : undefined;
}

/** A node and the commands that are allowed for it. */
type ShownNode = Pick<NodeRow, "id" | "name" | "platform" | "commands"> & { readonly connected: boolean };
type Args = Omit<ArgumentsOf<"nodes">, "timeoutSeconds"> & { readonly timeoutSeconds: number };
type Answer = Promise<Result<ToolResultOf<"nodes">>>;

function shownNode(ctx: NodesContext, { node, connected }: NodeStatus): ShownNode {
  const { id, name, platform } = node;
  return { id, name, platform, connected, commands: allowedCommands(node, ctx.settings.nodes) };
}

/** Returns the node that the call names. A single node need not be named. */
async function nodeOf(door: NodeDoor, args: Args): Promise<Result<NodeStatus>> {
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

async function list(ctx: NodesContext, door: NodeDoor): Answer {
  const all = await door.statuses();
  return ok({ count: all.length, nodes: all.map((one) => shownNode(ctx, one)) });
}

async function describe(ctx: NodesContext, door: NodeDoor, args: Args): Answer {
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

async function invoke(ctx: NodesContext, door: NodeDoor, args: Args, call: ToolCallRequest): Answer {
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

export const nodesTool: Tool<NodesContext> = tool("nodes", {
  isUsable: ({ nodes }) => nodes !== undefined,
  limits: {
    node: textLimit(NAME_MAX_CHARS),
    command: textLimit(NAME_MAX_CHARS),
    timeoutSeconds: countLimit(NODE_TIMEOUT),
  },
  async execute(ctx, args, call) {
    const door = ctx.nodes;
    if (door === undefined)
      return fail("node_not_found", "no node is paired with this gateway", {
        hint: "An operator can pair one: see docs/NODES.md.",
      });
    switch (args.action) {
      case "list":
        return list(ctx, door);
      case "describe":
        return describe(ctx, door, args);
      case "invoke":
        return invoke(ctx, door, args, call);
    }
  },
});
