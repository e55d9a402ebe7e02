// Owns the tool nodes: paired devices, what they offer, and a command for one of them.
// TN1: it is given only where a device is paired and nodes are on; a sandboxed session has it only if
//      nodes.allowSandboxed says so, for a node is outside of every sandbox.
// TN2: a command is asked under the call's own id: the node does the same call once.

import { fail, ok, type Result, toolFailure } from "../core/errors.ts";
import {
  allowedCommands,
  NODE_TIMEOUT_DEFAULT_MS,
  NODE_TIMEOUT_MAX_MS,
  type NodeStatus,
  nodeKey,
  nodesNamed,
} from "../core/node.ts";
import type { ToolCallRequest } from "../core/tool.ts";
import { NODES_TOOL } from "../core/tool-policy.ts";
import { countLimit, textLimit } from "./arguments.ts";
import type { NodeDoor, Tool, ToolContext, ToolResult } from "./tool.ts";

const ACTIONS = ["list", "describe", "invoke"];
const NAME_MAX_CHARS = 128;
const SECOND_MS = 1_000;
/** Seconds. */
const TIMEOUT = {
  fallback: NODE_TIMEOUT_DEFAULT_MS / SECOND_MS,
  min: 1,
  max: NODE_TIMEOUT_MAX_MS / SECOND_MS,
};

/** Devices as they are at a moment. */
export interface NodeSource extends NodeDoor {
  anyPaired(): Promise<boolean>;
}

/** The way to paired devices, if there is any: else a prompt need not speak of them. */
export async function nodesIn(source: NodeSource | undefined): Promise<NodeDoor | undefined> {
  return source !== undefined && (await source.anyPaired()) ? source : undefined;
}

type Args = Readonly<Record<string, unknown>>;

function shownNode(ctx: ToolContext, { node, connected }: NodeStatus): ToolResult {
  const { id, name, platform } = node;
  return { id, name, platform, connected, commands: allowedCommands(node, ctx.settings.nodes) };
}

/** The node that is meant; where there is one alone, it need not be named. */
async function nodeOf(door: NodeDoor, args: Args): Promise<Result<NodeStatus>> {
  const wanted = args.node as string | undefined;
  const all = await door.statuses();
  const fits = wanted === undefined ? all : nodesNamed(wanted, all);
  const [first, ...others] = fits;
  if (first !== undefined && others.length === 0) return ok(first);
  const names = (first === undefined ? all : fits).map(
    ({ node }) => `${node.name} (${node.id.slice(0, 12)})`,
  );
  const hint = `There are: ${names.join(", ")}.`;
  if (wanted === undefined) return fail("invalid_argument", "node is required: there are several", { hint });
  const shown = JSON.stringify(wanted);
  if (first === undefined) return fail("node_not_found", `no paired node ${shown}`, { hint });
  return fail("invalid_argument", `${shown} may be one of ${fits.length} nodes: give its id`, { hint });
}

async function list(ctx: ToolContext, door: NodeDoor): Promise<ToolResult> {
  const all = await door.statuses();
  return { count: all.length, nodes: all.map((one) => shownNode(ctx, one)) };
}

async function describe(ctx: ToolContext, door: NodeDoor, args: Args): Promise<ToolResult> {
  const found = await nodeOf(door, args);
  if (!found.ok) return toolFailure(found);
  const { node } = found.value;
  const { caps, version, commands, lastSeenAt } = node;
  const allowed = allowedCommands(node, ctx.settings.nodes);
  return {
    ...shownNode(ctx, found.value),
    version,
    caps,
    notAllowed: commands.filter((command) => !allowed.includes(command)),
    sessionKey: nodeKey(node.id),
    ...(lastSeenAt === undefined ? {} : { lastSeenAt }),
  };
}

async function invoke(
  ctx: ToolContext,
  door: NodeDoor,
  args: Args,
  call: ToolCallRequest,
): Promise<ToolResult> {
  const command = args.command as string | undefined;
  if (command === undefined) {
    return toolFailure(fail("invalid_argument", "invoke needs command: describe shows what a node offers"));
  }
  const seconds = args.timeoutSeconds as number;
  const found = await nodeOf(door, args);
  if (!found.ok) return toolFailure(found);
  const { id, name } = found.value.node;
  const asked = {
    nodeId: id,
    command,
    ...(args.params === undefined ? {} : { params: args.params }),
    timeoutMs: seconds * SECOND_MS,
    idempotencyKey: `tool:${call.callId}`,
  };
  const done = await door.invoke(asked, ctx.signal);
  return done.ok ? { status: "ok", node: name, command, result: done.value } : toolFailure(done);
}

export const nodesTool: Tool = {
  spec: {
    name: NODES_TOOL,
    description:
      "Use paired devices (nodes), other machines that offer commands. action list: all of them; describe: " +
      "what one offers; invoke: ask one for a command and wait for its result. Common commands: exec with " +
      "params {command: [program, argument, …], cwd?, timeoutMs?} runs a program there without a shell; " +
      "notify with params {title?, body} shows a notification. Each device decides itself what it runs.",
    parameters: {
      type: "object",
      properties: {
        action: { type: "string", enum: ACTIONS, description: "What to do." },
        node: { type: "string", description: "Its name or id. May be left out where there is only one." },
        command: { type: "string", description: "With invoke: one of the node's commands." },
        params: { type: "object", description: "With invoke: what the command takes." },
        timeoutSeconds: {
          type: "number",
          description: `With invoke: how long to wait. Default ${TIMEOUT.fallback}, at most ${TIMEOUT.max}.`,
        },
      },
      required: ["action"],
    },
    parallel: false,
    idempotent: false,
  },
  limits: {
    node: textLimit(NAME_MAX_CHARS),
    command: textLimit(NAME_MAX_CHARS),
    timeoutSeconds: countLimit(TIMEOUT),
  },
  async execute(ctx, args, call) {
    const door = ctx.nodes;
    if (door === undefined) return toolFailure(fail("node_not_found", "no node is paired with this gateway"));
    switch (args.action) {
      case "list":
        return list(ctx, door);
      case "describe":
        return describe(ctx, door, args);
      default:
        return invoke(ctx, door, args, call);
    }
  },
};
