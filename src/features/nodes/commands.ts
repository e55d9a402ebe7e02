// Nodes of a gateway. Their names and answers are escaped, so that they cannot move the cursor or hide text.

import type { Cli } from "../../cli/cli.ts";
import type { Link, Reply } from "../../cli/gateway-link.ts";
import { count } from "../../cli/layout.ts";
import { amount, asks, type Commands, option, program, withDefault } from "../../cli/row.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeJson, safeLine } from "../../core/text/safe-text.ts";
import type { NodeListRow } from "./contract.ts";
import { nodesNamed } from "./node.ts";

const ID_SHOWN_CHARS = 12;
const NODE = { "<node>": "Name or id of the node" };
const CODE = { "<code>": "" };

function describeLastSeen(cli: Cli, { connected, lastSeenAtMs }: NodeListRow, nowMs: number): string {
  if (connected) return "connected";
  return lastSeenAtMs === undefined ? "never seen" : cli.ago(lastSeenAtMs, nowMs);
}

/** Finds a node by its name, its id or the beginning of its id. */
async function findNode(
  link: Link,
  { node: wanted }: { readonly node: string },
): Promise<Reply<NodeListRow>> {
  const list = await link.request("node.list", {});
  if (!list.ok) return list;
  const named = list.value.nodes.map((row) => ({ row, node: { id: row.nodeId, name: row.displayName } }));
  const [first, ...others] = nodesNamed(wanted, named);
  if (first !== undefined && others.length === 0) return ok(first.row);
  const error =
    first === undefined
      ? `no paired node has the name or id ${quoted(wanted, 80)}`
      : `${others.length + 1} nodes have the name ${quoted(wanted, 80)}; give an id`;
  return fail("node_not_found", error, { hint: "List them: npx parley-gateway node list" });
}

const invoke = asks({
  summary: "Run a command on a node",
  args: {
    ...NODE,
    "<command>": "Command that the node offers",
    "[json]": "Parameters as JSON",
  },
  options: {
    key: option("<key>", "Set the idempotency key: the node runs a command once per key"),
    timeout: withDefault(amount("<seconds>", "Wait at most this long", 1), 30),
  },
  misuse({ json = "null" }) {
    try {
      JSON.parse(json);
      return undefined;
    } catch (error) {
      return `the params must be JSON, like '{"command": ["uptime"]}': ${(error as Error).message}`;
    }
  },
  find: findNode,
  ask: (link, { command, json, timeout, key }, { nodeId }) =>
    link.request("node.invoke", {
      nodeId,
      command,
      timeoutMs: Math.round(timeout * 1_000),
      params: json === undefined ? undefined : JSON.parse(json),
      idempotencyKey: key,
    }),
  print: (cli, { payload }) => cli.line(safeJson(payload)),
});

const ROWS: Commands = {
  run: program({
    summary: "Run this machine as a node of a gateway",
    options: {
      name: option("<name>", "Set the name of the node (default: the host name)"),
      allowExec: option("<pattern...>", 'Allow these programs, like "git status" "df *" (default: none)'),
      cwd: option("<folder>", "Run programs in this folder or below it (default: your home folder)"),
      key: option("<file>", "Use the key in this file (default: ~/.parley/node.json)"),
    },
    load: async () => (await import("./program/run.ts")).runNode,
  }),
  list: asks({
    summary: "List paired nodes and whether they are connected",
    isDefault: true,
    async ask(link) {
      const list = await link.request("node.list", {});
      const requests = list.ok ? await link.request("node.pair.list", {}) : list;
      return list.ok ? ok({ ...list.value, pending: requests.ok ? requests.value.pending.length : 0 }) : list;
    },
    print(cli, { ts, nodes, pending }) {
      cli.table(
        nodes,
        {
          ID: ({ nodeId }) => nodeId.slice(0, ID_SHOWN_CHARS),
          NAME: ({ displayName }) => displayName,
          PLATFORM: ({ platform }) => platform,
          SEEN: (row) => describeLastSeen(cli, row, ts),
          OFFERS: ({ commands }) => commands.join(" "),
          AGENT: ({ agentId }) => agentId,
        },
        "No nodes are paired. On another machine, run: npx parley-gateway node run --url ws://…",
      );
      if (pending > 0)
        cli.note(`${count(pending, "pairing request")} waiting: npx parley-gateway node pending`);
    },
  }),
  pending: asks({
    summary: "List pending pairing requests",
    async ask(link) {
      const list = await link.request("node.pair.list", {});
      return list.ok ? ok({ ts: list.value.ts, pending: list.value.pending }) : list;
    },
    print: (cli, { ts, pending }) =>
      cli.table(
        pending,
        {
          CODE: ({ code }) => code,
          NAME: ({ displayName }) => displayName,
          PLATFORM: ({ platform }) => platform,
          FROM: ({ remoteIp }) => remoteIp,
          OFFERS: ({ commands }) => commands.join(" "),
          ASKED: ({ createdAtMs }) => cli.ago(createdAtMs, ts),
        },
        "No pending pairing requests.",
      ),
  }),
  approve: asks({
    summary: "Approve a pairing request, by its code",
    args: CODE,
    options: {
      name: option("<name>", "Set the name of the node"),
      agent: option("<id>", "Handle events of the node as this agent (default: the default agent)"),
    },
    ask: (link, { code, name, agent: agentId }) => link.request("node.pair.approve", { code, name, agentId }),
    print: (cli, { node: { displayName, nodeId } }) =>
      cli.say(`${displayName} (${nodeId.slice(0, ID_SHOWN_CHARS)}) is paired.`),
  }),
  reject: asks({
    summary: "Reject a pairing request",
    args: CODE,
    ask: (link, { code }) => link.request("node.pair.reject", { code }),
    print: (cli, _answer, _found, { code }) => cli.say(`Request ${code} is rejected.`),
  }),
  describe: asks({
    summary: "Describe a node and its commands",
    args: NODE,
    find: findNode,
    ask: (link, _, { nodeId }) => link.request("node.describe", { nodeId }),
    print(cli, node) {
      const facts = {
        id: node.nodeId,
        name: node.displayName,
        machine: `${node.platform}, version ${node.version}`,
        seen: describeLastSeen(cli, node, node.ts),
        offers: node.commands.join(", ") || "nothing",
        allowed: node.allowedCommands.join(", ") || "no commands (set nodes.allowCommands)",
        session: node.sessionKey,
        agent: node.agentId ?? "the default agent",
      };
      for (const [name, value] of Object.entries(facts)) cli.line(`${name.padEnd(14)}${safeLine(value)}`);
    },
  }),
  invoke,
  rename: asks({
    summary: "Rename a node",
    args: { ...NODE, "<name>": "New name" },
    find: findNode,
    ask: (link, { name }, { nodeId }) => link.request("node.rename", { nodeId, displayName: name }),
    print: (cli, { displayName }) => cli.say(`Renamed to ${displayName}.`),
  }),
  remove: asks({
    summary: "Unpair a node",
    args: NODE,
    find: findNode,
    ask: (link, _, { nodeId }) => link.request("node.pair.remove", { nodeId }),
    print: (cli, _, { displayName, sessionKey }) =>
      cli.say(`${displayName} is unpaired. Its session ${sessionKey} was kept.`),
  }),
};

export const NODES: Commands = {
  node: {
    summary: "Manage nodes (devices that agents may use), or run this machine as a node",
    commands: ROWS,
  },
};
