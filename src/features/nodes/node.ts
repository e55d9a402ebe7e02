// The shape and limits of nodes: devices that offer commands to agents. Also decides which commands may be
// sent to a node.
// ND1: a command is sent only if the node offers it and the gateway's settings allow it. The node then makes
//      its own decision.
// ND2: the description that a device gives of itself is shortened and cleaned before it is stored.

import { readerOfAnswer } from "../../core/rules/turn-rules.ts";
import { formatKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { deviceText } from "../../core/text/label.ts";
import { matchesAny } from "../../core/text/pattern.ts";

/** The description that a device sends when it connects. */
export interface NodeFacts {
  readonly name: string;
  readonly platform: string;
  readonly version: string;
  readonly caps: readonly string[];
  readonly commands: readonly string[];
}

/**
 * Latest connection of a node. Valid only while the owning process is alive and keeps the connection open.
 */
export interface NodeConnection {
  /** Gateway process that has the connection. */
  readonly owner: string;
  readonly connId: string;
  readonly since: number;
}

export interface NodeRow extends NodeFacts {
  /** SHA-256 hash of the node's public key, in hex. */
  readonly id: string;
  /** Raw public key in base64url. */
  readonly publicKey: string;
  /** Agent of the sessions in which the node's runs execute. Absent: the default agent. */
  readonly agentId?: string;
  /** Name of the token whose rights the node has (triggers/creator.ts). Absent: the rights of the gateway. */
  readonly createdBy?: string;
  readonly pairedAt: number;
  readonly lastSeenAt?: number;
  readonly place?: NodeConnection;
}

export interface PairRequest extends NodeFacts {
  readonly requestId: string;
  /** Pairing code. The node and the list of requests both show it, so that a person can compare them. */
  readonly code: string;
  readonly nodeId: string;
  readonly publicKey: string;
  readonly remote: string;
  readonly createdAt: number;
  /** Id of the token with which the device asked. */
  readonly askedBy?: string;
}

export interface NodeStatus {
  readonly node: NodeRow;
  readonly connected: boolean;
}

export interface NodeCall {
  readonly nodeId: string;
  readonly command: string;
  readonly params?: unknown;
  readonly timeoutMs: number;
  /** While the node runs, it executes a command with the same key only once. */
  readonly idempotencyKey: string;
}

/** Maximum number of open requests of one token and of all tokens, and the time after which one expires. */
export const PAIR_REQUESTS_PER_TOKEN_MAX = 20;
export const PAIR_REQUESTS_MAX = 200;
export const PAIR_REQUEST_MS = 3_600_000;
export const NODES_MAX = 200;

export const NODE_TIMEOUT_DEFAULT_MS = 30_000;
export const NODE_TIMEOUT_MAX_MS = 600_000;
export const NODE_PARAMS_MAX_BYTES = 256 * 1024;
export const NODE_ANSWER_MAX_BYTES = 1024 * 1024;

const NAME_MAX_CHARS = 64;
const WORD_MAX_CHARS = 32;
const COMMANDS_MAX = 64;
const COMMAND = /^[a-zA-Z][a-zA-Z0-9_-]*(?:\.[a-zA-Z0-9_-]+)*$/;
const COMMAND_MAX_CHARS = 64;

function names(said: readonly string[] | undefined): string[] {
  return [...new Set(said?.slice(0, 4 * COMMANDS_MAX))]
    .filter((text) => text.length <= COMMAND_MAX_CHARS && COMMAND.test(text))
    .slice(0, COMMANDS_MAX);
}

/** Returns the parts of a device's description that are stored (ND2). */
export function nodeFacts(said: { readonly [K in keyof NodeFacts]?: NodeFacts[K] | undefined }): NodeFacts {
  return {
    name: deviceText(said.name, NAME_MAX_CHARS, "node"),
    platform: deviceText(said.platform, WORD_MAX_CHARS, "unknown"),
    version: deviceText(said.version, WORD_MAX_CHARS, "unknown"),
    caps: names(said.caps),
    commands: names(said.commands),
  };
}

export function nodeKey(nodeId: string): string {
  return formatKey({ form: "node", name: [nodeId] });
}

export function allowedCommands(node: NodeFacts, { allowCommands }: Settings["nodes"]): string[] {
  return node.commands.filter((command) => matchesAny(allowCommands, command));
}

/** Returns the reason why a command may not be sent to a node, or undefined if it may. */
export function commandRefusal(
  node: NodeFacts,
  command: string,
  settings: Settings["nodes"],
): string | undefined {
  const shown = quoted(command, COMMAND_MAX_CHARS);
  if (!node.commands.includes(command)) {
    const offered = node.commands.length === 0 ? "nothing" : node.commands.join(", ");
    return `node "${node.name}" does not offer ${shown}; it offers ${offered}`;
  }
  if (matchesAny(settings.allowCommands, command)) return undefined;
  return `${shown} is not allowed: nodes.allowCommands does not list it`;
}

/** Minimum length of an id prefix that identifies a node. */
const ID_PREFIX_MIN_CHARS = 6;

/** Finds nodes by their id, else by their name, else by the beginning of their id. */
export function nodesNamed<T extends { readonly node: Pick<NodeRow, "id" | "name"> }>(
  wanted: string,
  nodes: readonly T[],
): T[] {
  const text = wanted.trim().toLowerCase();
  const whole = nodes.filter(({ node }) => node.id === text);
  if (whole.length > 0) return whole;
  const named = nodes.filter(({ node }) => node.name.toLowerCase() === text);
  if (named.length > 0 || text.length < ID_PREFIX_MIN_CHARS) return named;
  return nodes.filter(({ node }) => node.id.startsWith(text));
}

const NODE_HEADING = "Node context";

/** Returns the context of a run that a node started: the name of the node, and who reads the answer. */
export function nodeContext(node: { name: string; spoken: boolean; delivers: boolean }): string {
  const how = node.spoken
    ? "It was spoken there, and may be misheard."
    : "A program there sent this message.";
  return [
    NODE_HEADING,
    "",
    `This message comes from the paired device ${JSON.stringify(node.name)}. ${how}`,
    readerOfAnswer(node.delivers),
  ].join("\n");
}
