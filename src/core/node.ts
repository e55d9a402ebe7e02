// Owns what a node is: a device elsewhere that offers commands to agents. Its shapes, its limits, what may be
// asked of it, and what its runs are told.
// ND1: a command is asked only if the node offers it and the gateway's settings allow it; the node itself
//      decides once more.
// ND2: what a device says of itself is cut and made safe to show before it is kept.

import { matchesAny } from "./pattern.ts";
import { safeLine } from "./safe-text.ts";
import { formatKey } from "./session-key.ts";
import type { NodeSettings } from "./settings.ts";
import { readerOfAnswer } from "./turn-rules.ts";

/** What a device says of itself when it connects. */
export interface NodeFacts {
  readonly name: string;
  readonly platform: string;
  readonly version: string;
  readonly caps: readonly string[];
  readonly commands: readonly string[];
}

/** The connection that a node was last seen on. It is one only while its process lives and knows it. */
export interface NodePlace {
  /** The gateway process that holds it. */
  readonly owner: string;
  readonly connId: string;
  readonly since: number;
}

/** A paired device. */
export interface NodeRow extends NodeFacts {
  /** The SHA-256 of its public key, in hex. */
  readonly id: string;
  /** The raw key in base64url. */
  readonly publicKey: string;
  /** Whose sessions its runs are. Absent: the default agent's. */
  readonly agentId?: string;
  /** The name of the token whose rights it has (triggers/creator.ts); absent: the gateway's own. */
  readonly createdBy?: string;
  readonly pairedAt: number;
  readonly lastSeenAt?: number;
  readonly place?: NodePlace;
}

/** A device that asks to be paired. */
export interface PairRequest extends NodeFacts {
  readonly requestId: string;
  /** What people compare: the node shows it, and so does the list of requests. */
  readonly code: string;
  readonly nodeId: string;
  readonly publicKey: string;
  /** The address that it came from. */
  readonly remote: string;
  readonly createdAt: number;
}

/** A paired node, and whether it is there. */
export interface NodeStatus {
  readonly node: NodeRow;
  readonly connected: boolean;
}

/** A command for a node. */
export interface NodeCall {
  readonly nodeId: string;
  readonly command: string;
  readonly params?: unknown;
  readonly timeoutMs: number;
  /** The node does the same key once, as long as it runs. */
  readonly idempotencyKey: string;
}

/** Requests that are open at once; a request lives so long. */
export const PAIR_REQUESTS_MAX = 20;
export const PAIR_REQUEST_MS = 3_600_000;
/** Paired nodes. */
export const NODES_MAX = 200;

export const NODE_TIMEOUT_DEFAULT_MS = 30_000;
export const NODE_TIMEOUT_MAX_MS = 600_000;
/** Bytes of the params of a command, as JSON. */
export const NODE_PARAMS_MAX_BYTES = 256 * 1024;
/** Bytes of what a node answers, as JSON. */
export const NODE_ANSWER_MAX_BYTES = 1024 * 1024;

const NAME_MAX_CHARS = 64;
const WORD_MAX_CHARS = 32;
const COMMANDS_MAX = 64;
const COMMAND = /^[a-zA-Z][a-zA-Z0-9_-]*(?:\.[a-zA-Z0-9_-]+)*$/;
const COMMAND_MAX_CHARS = 64;

/** Whether a text can be the name of a command. */
function isNodeCommand(text: string): boolean {
  return text.length <= COMMAND_MAX_CHARS && COMMAND.test(text);
}

/** One line of bounded length; `otherwise` where nothing is left. */
export function nodeWord(text: string | undefined, charsMax: number, otherwise: string): string {
  const line = safeLine((text ?? "").trim().slice(0, charsMax));
  return line === "" ? otherwise : line.slice(0, 4 * charsMax);
}

interface Said {
  readonly name?: string | undefined;
  readonly platform?: string | undefined;
  readonly version?: string | undefined;
  readonly caps?: readonly string[] | undefined;
  readonly commands?: readonly string[] | undefined;
}

function names(said: readonly string[] | undefined): string[] {
  return [...new Set(said?.slice(0, 4 * COMMANDS_MAX))].filter(isNodeCommand).slice(0, COMMANDS_MAX);
}

/** What is kept of what a device says of itself (ND2). */
export function nodeFacts(said: Said): NodeFacts {
  return {
    name: nodeWord(said.name, NAME_MAX_CHARS, "node"),
    platform: nodeWord(said.platform, WORD_MAX_CHARS, "unknown"),
    version: nodeWord(said.version, WORD_MAX_CHARS, "unknown"),
    caps: names(said.caps),
    commands: names(said.commands),
  };
}

/** The session of a node. */
export function nodeKey(nodeId: string): string {
  return formatKey({ form: "node", name: [nodeId] });
}

/** The commands of a node that the settings allow. */
export function allowedCommands(node: NodeFacts, { allowCommands }: NodeSettings): string[] {
  return node.commands.filter((command) => matchesAny(allowCommands, command));
}

/** Why a command may not be asked of a node; undefined: it may. */
export function commandRefusal(node: NodeFacts, command: string, settings: NodeSettings): string | undefined {
  const shown = JSON.stringify(command.slice(0, COMMAND_MAX_CHARS));
  if (!node.commands.includes(command)) {
    const offered = node.commands.length === 0 ? "nothing" : node.commands.join(", ");
    return `node "${node.name}" does not offer ${shown}; it offers ${offered}`;
  }
  if (matchesAny(settings.allowCommands, command)) return undefined;
  return `${shown} may not be asked of nodes: nodes.allowCommands does not list it`;
}

/** The shortest beginning of an id that names a node. */
const ID_PREFIX_MIN_CHARS = 6;

/** The nodes that a text may mean: an id, else a name, else the beginning of an id. */
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

/** The first line of what the runtime tells the model of a node's run. */
const NODE_HEADING = "Node context";

/** For a run that a node set off: which one, and who reads the answer. */
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
