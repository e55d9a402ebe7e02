// Implements `parley node`: runs this machine as a node, and manages the nodes of a gateway.
// Names and answers of nodes are escaped, so that they cannot move the cursor or hide text.

import { join } from "node:path";
import type { NodeListRow } from "../../contract/methods/nodes.ts";
import { optional } from "../../core/optional.ts";
import { execPatternProblem } from "../../core/rules/node-exec.ts";
import { nodesNamed } from "../../core/shapes/node.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeJson, safeLine } from "../../core/text/safe-text.ts";
import { findAddress } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { age, table } from "../layout.ts";
import { nodeCommands } from "../node/commands.ts";
import { nodeIdentity } from "../node/identity.ts";
import { NodeProgram } from "../node/program.ts";

const ID_SHOWN_CHARS = 12;

interface RunOptions {
  readonly name?: string;
  readonly allowExec?: readonly string[];
  readonly cwd?: string;
  readonly key?: string;
}

export async function runNode(cli: Cli, _args: readonly string[], options: RunOptions): Promise<number> {
  const { parts } = cli;
  const { allowExec = [], cwd = parts.home, name = parts.machine.hostName } = options;
  for (const pattern of allowExec) {
    const problem = execPatternProblem(pattern);
    if (problem === undefined) continue;
    return cli.fail(
      { code: "usage", error: `--allow-exec ${JSON.stringify(pattern)} ${problem}` },
      EXIT.usage,
    );
  }
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const key = await nodeIdentity(options.key ?? join(parts.home, ".parley", "node.json"));
  if (!key.ok) return cli.fail(key);
  const { platform, version } = parts.machine;
  const show = (text: string): void => cli.note(text);
  const commands = nodeCommands({ parts, allowExec, cwd, platform, show });
  const runs = allowExec.length === 0 ? "none (allow some with --allow-exec)" : allowExec.join(", ");
  cli.note(safeLine(`Node "${name}" (${key.value.id.slice(0, ID_SHOWN_CHARS)}). Allowed programs: ${runs}.`));
  const stop = new AbortController();
  const offs = (["SIGINT", "SIGTERM"] as const).map((signal) => parts.onSignal(signal, () => stop.abort()));
  try {
    const program = {
      cli,
      address: address.value,
      key: key.value,
      name,
      version,
      commands,
      stop: stop.signal,
    };
    return await new NodeProgram(program).run();
  } finally {
    for (const off of offs) off();
  }
}

function seen(row: NodeListRow, nowMs: number): string {
  if (row.connected) return "connected";
  return row.lastSeenAtMs === undefined ? "never seen" : `${age(row.lastSeenAtMs, nowMs)} ago`;
}

export async function listNodes(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("node.list", {});
    if (!list.ok) return cli.fail(list);
    const { ts, nodes } = list.value;
    const rows = nodes.map((row) => [
      row.nodeId.slice(0, ID_SHOWN_CHARS),
      row.displayName,
      row.platform,
      seen(row, ts),
      row.commands.join(" "),
      row.agentId ?? "",
    ]);
    const names = ["ID", "NAME", "PLATFORM", "SEEN", "OFFERS", "AGENT"];
    if (rows.length === 0)
      cli.line("No nodes are paired. On another machine, run: npx parley-gateway node run --url ws://…");
    else for (const line of table(names, rows)) cli.line(line);
    cli.document(list.value);
    return EXIT.done;
  });
}

export async function listPending(cli: Cli): Promise<number> {
  return withLink(cli, async (link) => {
    const list = await link.request("node.pair.list", {});
    if (!list.ok) return cli.fail(list);
    const { ts, pending } = list.value;
    const rows = pending.map((row) => [
      row.code,
      row.displayName,
      row.platform,
      row.remoteIp,
      row.commands.join(" "),
      `${age(row.createdAtMs, ts)} ago`,
    ]);
    if (rows.length === 0) cli.line("No pending pairing requests.");
    else
      for (const line of table(["CODE", "NAME", "PLATFORM", "FROM", "OFFERS", "ASKED"], rows)) cli.line(line);
    cli.document({ ts, pending });
    return EXIT.done;
  });
}

/** Finds a node by its name, its id or the beginning of its id. */
async function findNode(link: Link, wanted: string): Promise<Reply<NodeListRow>> {
  const list = await link.request("node.list", {});
  if (!list.ok) return list;
  const named = list.value.nodes.map((row) => ({ row, node: { id: row.nodeId, name: row.displayName } }));
  const [first, ...others] = nodesNamed(wanted, named);
  if (first !== undefined && others.length === 0) return { ok: true, value: first.row };
  const error =
    first === undefined
      ? `no paired node has the name or id ${quoted(wanted, 80)}`
      : `${others.length + 1} nodes have the name ${quoted(wanted, 80)}; give an id`;
  return { ok: false, code: "node_not_found", error, hint: "List them: npx parley-gateway node list" };
}

async function withNode(
  cli: Cli,
  wanted: string,
  work: (link: Link, node: NodeListRow) => Promise<number>,
): Promise<number> {
  return withLink(cli, async (link) => {
    const node = await findNode(link, wanted);
    return node.ok ? work(link, node.value) : cli.fail(node);
  });
}

export async function describeNode(cli: Cli, [wanted = ""]: readonly string[]): Promise<number> {
  return withNode(cli, wanted, async (link, { nodeId }) => {
    const found = await link.request("node.describe", { nodeId });
    if (!found.ok) return cli.fail(found);
    const { displayName, platform, version, commands, allowedCommands, sessionKey, agentId, ts } =
      found.value;
    const facts = [
      ["id", nodeId],
      ["name", displayName],
      ["machine", `${platform}, version ${version}`],
      ["seen", seen(found.value, ts)],
      ["offers", commands.join(", ") || "nothing"],
      ["allowed", allowedCommands.join(", ") || "no commands (set nodes.allowCommands)"],
      ["session", sessionKey],
      ["agent", agentId ?? "the default agent"],
    ];
    for (const [name = "", value = ""] of facts) cli.line(`${name.padEnd(14)}${safeLine(value)}`);
    cli.document(found.value);
    return EXIT.done;
  });
}

export async function invokeNode(
  cli: Cli,
  [wanted = "", command = "", json]: readonly string[],
  options: { readonly timeout: number; readonly key?: string },
): Promise<number> {
  let params: unknown;
  try {
    params = json === undefined ? undefined : JSON.parse(json);
  } catch (error) {
    const text = `the params must be JSON, like '{"command": ["uptime"]}': ${(error as Error).message}`;
    return cli.fail({ code: "usage", error: text }, EXIT.usage);
  }
  return withNode(cli, wanted, async (link, { nodeId }) => {
    const answer = await link.request("node.invoke", {
      nodeId,
      command,
      timeoutMs: Math.round(options.timeout * 1_000),
      ...optional({ params, idempotencyKey: options.key }),
    });
    if (!answer.ok) return cli.fail(answer);
    cli.line(safeJson(answer.value.payload));
    cli.document(answer.value);
    return EXIT.done;
  });
}

export async function approveNode(
  cli: Cli,
  [code = ""]: readonly string[],
  options: { readonly name?: string; readonly agent?: string },
): Promise<number> {
  return withLink(cli, async (link) => {
    const { name, agent } = options;
    const paired = await link.request("node.pair.approve", {
      code,
      ...optional({ name, agentId: agent }),
    });
    if (!paired.ok) return cli.fail(paired);
    const { displayName, nodeId } = paired.value.node;
    cli.line(safeLine(`${displayName} (${nodeId.slice(0, ID_SHOWN_CHARS)}) is paired.`));
    cli.document(paired.value);
    return EXIT.done;
  });
}

export async function rejectNode(cli: Cli, [code = ""]: readonly string[]): Promise<number> {
  return withLink(cli, async (link) => {
    const settled = await link.request("node.pair.reject", { code });
    if (!settled.ok) return cli.fail(settled);
    cli.line(safeLine(`Request ${code} is rejected.`));
    cli.document(settled.value);
    return EXIT.done;
  });
}

export async function removeNode(cli: Cli, [wanted = ""]: readonly string[]): Promise<number> {
  return withNode(cli, wanted, async (link, { nodeId, displayName, sessionKey }) => {
    const gone = await link.request("node.pair.remove", { nodeId });
    if (!gone.ok) return cli.fail(gone);
    cli.line(safeLine(`${displayName} is unpaired. Its session ${sessionKey} was kept.`));
    cli.document(gone.value);
    return EXIT.done;
  });
}

export async function renameNode(cli: Cli, [wanted = "", name = ""]: readonly string[]): Promise<number> {
  return withNode(cli, wanted, async (link, { nodeId }) => {
    const renamed = await link.request("node.rename", { nodeId, displayName: name });
    if (!renamed.ok) return cli.fail(renamed);
    cli.line(safeLine(`Renamed to ${renamed.value.displayName}.`));
    cli.document(renamed.value);
    return EXIT.done;
  });
}
