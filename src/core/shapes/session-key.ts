// Parses, normalises and formats session keys, and derives facts about a session from its key alone. The
// store knows which sessions exist; visibility.ts decides about access.
// K1: parseKey(formatKey(x)) = x, and canonicalKey is idempotent, so each session has exactly one canonical
//     key.
// K2: an id from outside never changes the form of a key, because separators and invisible characters in it
//     are encoded.
// K3: older spellings are accepted but never written.
// The name of a conversation never looks like a reserved word, or like a key of a channel or of the runtime.

import { evictOldest } from "../bounded.ts";
import { FORK_KEY } from "../fork-key.ts";
import { isPeerName, peerAgentId } from "../peer.ts";
import { quoted } from "../text/cut.ts";
import { type Failure, fail, ok, type Result } from "./errors.ts";
import type { Route, Session, SessionKind } from "./session.ts";
import type { ChatType } from "./settings/settings.ts";

/** Settings that affect the meaning of a key. */
export interface KeyRules {
  /** Last part of the key of a main session. */
  readonly mainKey: string;
  readonly scope: "per-sender" | "global";
  readonly defaultAgentId: string;
}

/** Protocols of clients that have sessions of their own. */
const EXTERNAL_CLIENTS = ["mcp", "acp", "openai", "a2a"] as const;

/** A parsed key. Its ids are decoded, so they are spelled as they are outside of keys. */
export type ParsedKey =
  /** A conversation with a name, split at colons. The name of a main session is `mainKey`. */
  | { readonly form: "named"; readonly agentId: string; readonly name: readonly string[] }
  | {
      readonly form: "group" | "channel";
      readonly agentId: string;
      readonly channel: string;
      readonly id: string;
      readonly thread?: { readonly kind: "thread" | "topic"; readonly id: string };
    }
  | { readonly form: "dm"; readonly agentId: string; readonly channel: string; readonly peer: string }
  | { readonly form: "chat" | "subagent"; readonly agentId: string; readonly id: string }
  | {
      readonly form: "external";
      readonly agentId: string;
      readonly client: (typeof EXTERNAL_CLIENTS)[number];
      readonly id: string;
    }
  | { readonly form: "cron"; readonly id: string }
  /** The caller chose this name, which may contain colons. */
  | { readonly form: "hook" | "node"; readonly name: readonly string[] }
  /** A fork of another session. Its key contains the key of that session, which limits who may see it. */
  | { readonly form: "fork"; readonly of: ParsedKey; readonly id: string }
  /** A session of another gateway. `of`: its key there. */
  | { readonly form: "peer"; readonly peer: string; readonly of: ParsedKey & { readonly agentId: string } }
  | { readonly form: "global" };

export const KEY_CHARS_MAX = 512;

/** Maximum number of cached keys. A run reads the key of its session about ten times. */
const READ_MAX = 1_000;
const readKeys = new Map<string, ParsedKey>();

/** Valid forms of keys, for the hint of an error. */
const KEY_FORMS =
  "main, agent:<agentId>:main, agent:<agentId>:<channel>:(group|channel|dm):<id>, agent:<agentId>:<name>, " +
  "cron:<id>, hook:<id>, node-<id>";

const AGENT_ID = /^[a-z0-9_-]{1,64}$/;
/** Matches the format of a session id. An agent's name cannot have this format. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CHANNEL_ID = /^[a-z][a-z0-9_-]{0,63}$/;
/**
 * First words of keys. A channel or conversation whose name starts with such a word would make keys
 * ambiguous.
 */
const NEVER_A_CHANNEL: readonly string[] = [
  "agent",
  "cron",
  "hook",
  "node",
  "peer",
  "subagent",
  "global",
  "unknown",
];
const PEER_KEY = /^peer:([^/:]+)\/(.+)$/is;
/** Words that follow the channel's name in a key of that channel. */
const IN_CHANNELS: readonly string[] = ["group", "channel", "dm"];

// Matches white space, control characters, invisible characters (they would make two keys look the same) and
// lone surrogates, which no store can hold. The characters are listed explicitly, because keys must not
// change with the Unicode version.
const UNSEEN =
  "\\u00AD\\u034F\\u061C\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u200B-\\u200F\\u202A-\\u202E" +
  "\\u2060-\\u206F\\u3164\\uFE00-\\uFE0F\\uFFA0\\uFFF0-\\uFFFB" +
  "\\u{1BCA0}-\\u{1BCA3}\\u{1D173}-\\u{1D17A}\\u{E0000}-\\u{E0FFF}";
const ENCODED_CHARS = new RegExp(`[%:\\s\\p{Cc}\\p{Cs}${UNSEEN}]`, "gu");
const BAD_ESCAPE = /%(?![0-9a-f]{2}|ud[89a-f][0-9a-f]{2})/i;
const ESCAPES = /%u([0-9a-f]{4})|(?:%[0-9a-f]{2})+/gi;

/** Returns whether a text is a canonical agent id: 1–64 of `[a-z0-9_-]`, lower case. */
export function isAgentId(text: string): boolean {
  return AGENT_ID.test(text);
}

/**
 * Encodes an id from outside (group, peer, job, node) for a key, without changing case or losing information.
 */
export function encodeOutsideId(id: string): string {
  return id.replace(ENCODED_CHARS, (char) => {
    if (char.isWellFormed()) {
      // encodeURIComponent does not encode these characters, so this code does.
      return encodeURIComponent(char);
    }
    return `%u${char.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}

function decodeOutsideId(text: string): string | undefined {
  if (text === "" || BAD_ESCAPE.test(text)) return undefined;
  if (!text.includes("%")) return text;
  try {
    return text.replace(ESCAPES, (run: string, unit: string | undefined) =>
      unit === undefined ? decodeURIComponent(run) : String.fromCharCode(Number.parseInt(unit, 16)),
    );
  } catch {
    return undefined; // The escapes are not UTF-8.
  }
}

/**
 * Returns whether a text can be the name of a channel in keys: it is in lower case, and no other kind of key
 * starts with this word.
 */
export function isChannelId(text: string): boolean {
  return CHANNEL_ID.test(text) && !NEVER_A_CHANNEL.includes(text);
}

function refuseMalformed(text: string): Failure {
  const shown = quoted(text, 80);
  const why =
    text.length > KEY_CHARS_MAX
      ? `a session key has at most ${KEY_CHARS_MAX} characters`
      : "it has no valid form";
  return fail("invalid_session_key", `${shown} is not a session key: ${why}`, {
    hint: `Valid forms: ${KEY_FORMS}. sessions_list shows the keys that you can use.`,
  });
}

/**
 * Parses a canonical key. Fixed words may have any case, and characters may be escaped without need.
 * `canonicalKey` handles aliases.
 */
export function parseKey(text: string): Result<ParsedKey> {
  const trimmed = text.trim();
  const parsed = trimmed.length > KEY_CHARS_MAX ? undefined : readKey(trimmed);
  if (parsed === undefined) return refuseMalformed(trimmed);
  const canonical = formatKey(parsed);
  return canonical.length > KEY_CHARS_MAX ? refuseMalformed(canonical) : ok(parsed);
}

function readKey(text: string): ParsedKey | undefined {
  const known = readKeys.get(text);
  if (known !== undefined) return known;
  const parsed = readNewKey(text);
  if (parsed === undefined || text.length > KEY_CHARS_MAX) return parsed;
  readKeys.set(text, parsed);
  evictOldest(readKeys, READ_MAX);
  return parsed;
}

function readNewKey(text: string): ParsedKey | undefined {
  const [, origin, forkId] = FORK_KEY.exec(text) ?? [];
  if (origin !== undefined && forkId !== undefined) {
    const of = readKey(origin);
    // `global` cannot be forked: it belongs to all agents, and a fork must belong to one. The transcript of a
    // peer's session is at the peer.
    if (of === undefined || of.form === "global" || of.form === "peer") return undefined;
    return { form: "fork", of, id: forkId.toLowerCase() };
  }
  if (text.toLowerCase() === "global") return { form: "global" };
  const parts = text.split(":");
  const head = (parts[0] ?? "").toLowerCase();
  if (head === "agent") return readAgentKey((parts[1] ?? "").toLowerCase(), parts.slice(2));
  if (head === "cron") {
    const id = parts.length === 2 ? decodeOutsideId(parts[1] ?? "") : undefined;
    return id === undefined ? undefined : { form: head, id };
  }
  if (head === "hook") return withName(parts.slice(1), (name) => ({ form: head, name }));
  if (head === "peer") return readPeerKey(text);
  if (!head.startsWith("node-")) return undefined;
  return withName(text.slice("node-".length).split(":"), (name) => ({ form: "node", name }));
}

function readPeerKey(text: string): ParsedKey | undefined {
  const [, name = "", key = ""] = PEER_KEY.exec(text) ?? [];
  const peer = name.toLowerCase();
  const of = readKey(key);
  return isPeerName(peer) && of !== undefined && "agentId" in of ? { form: "peer", peer, of } : undefined;
}

/** Returns a key with this name, or undefined if a part of the name is missing, empty or wrongly encoded. */
function withName(
  parts: readonly string[],
  make: (name: readonly string[]) => ParsedKey,
): ParsedKey | undefined {
  const name = parts.map(decodeOutsideId).filter((part) => part !== undefined);
  if (name.length === 0 || name.length !== parts.length) return undefined;
  const made = make(name);
  // Check the formatted key, because an escaped name could also end like the key of a fork.
  return FORK_KEY.test(formatKey(made)) ? undefined : made;
}

function readAgentKey(agentId: string, rest: readonly string[]): ParsedKey | undefined {
  if (!isAgentId(agentId)) return undefined;
  // Compares decoded words. Otherwise an escape could make a key of another kind look like a name.
  const [first = "", second = ""] = rest.map((part) => decodeOutsideId(part)?.toLowerCase());
  if (rest.length === 1) {
    return isReservedKey(first) ? undefined : withName(rest, (name) => ({ form: "named", agentId, name }));
  }
  if (rest.length === 2) {
    const id = decodeOutsideId(rest[1] ?? "");
    if (id === undefined) return undefined;
    if (first === "chat" || first === "subagent") return { form: first, agentId, id };
    const client = EXTERNAL_CLIENTS.find((one) => one === first);
    if (client !== undefined) return { form: "external", agentId, client, id };
  }
  if (NEVER_A_CHANNEL.includes(first)) return undefined;
  if (isChannelId(first) && IN_CHANNELS.includes(second)) return readChannelKey(agentId, first, rest);
  return withName(rest, (name) => ({ form: "named", agentId, name }));
}

function readChannelKey(agentId: string, channel: string, rest: readonly string[]): ParsedKey | undefined {
  const form = (rest[1] ?? "").toLowerCase();
  const id = decodeOutsideId(rest[2] ?? "");
  if (id === undefined) return undefined;
  if (form === "dm" && rest.length === 3) return { form, agentId, channel, peer: id };
  if (form !== "group" && form !== "channel") return undefined;
  if (rest.length === 3) return { form, agentId, channel, id };
  const kind = (rest[3] ?? "").toLowerCase();
  const threadId = decodeOutsideId(rest[4] ?? "");
  if (rest.length !== 5 || (kind !== "thread" && kind !== "topic") || threadId === undefined)
    return undefined;
  return { form, agentId, channel, id, thread: { kind, id: threadId } };
}

/** Formats a key as its canonical text. If that exceeds 512 characters, `parseKey` rejects it. */
export function formatKey(parsed: ParsedKey): string {
  const id = encodeOutsideId;
  switch (parsed.form) {
    case "named":
      return `agent:${parsed.agentId}:${parsed.name.map(id).join(":")}`;
    case "group":
    case "channel": {
      const parent = `agent:${parsed.agentId}:${parsed.channel}:${parsed.form}:${id(parsed.id)}`;
      return parsed.thread === undefined ? parent : `${parent}:${parsed.thread.kind}:${id(parsed.thread.id)}`;
    }
    case "dm":
      return `agent:${parsed.agentId}:${parsed.channel}:dm:${id(parsed.peer)}`;
    case "chat":
    case "subagent":
      return `agent:${parsed.agentId}:${parsed.form}:${id(parsed.id)}`;
    case "external":
      return `agent:${parsed.agentId}:${parsed.client}:${id(parsed.id)}`;
    case "cron":
      return `cron:${id(parsed.id)}`;
    case "hook":
      return `hook:${parsed.name.map(id).join(":")}`;
    case "node":
      return `node-${parsed.name.map(id).join(":")}`;
    case "fork":
      return `${formatKey(parsed.of)}:fork:${parsed.id}`;
    case "peer":
      return `peer:${parsed.peer}/${formatKey(parsed.of)}`;
    case "global":
      return "global";
  }
}

/**
 * Converts an older spelling to the current form, for the calling agent. Returns any other text unchanged.
 */
function modernSpelling(text: string, agentId: string): string {
  const parts = text.split(":");
  const head = (parts[0] ?? "").toLowerCase();
  const second = (parts[1] ?? "").toLowerCase();
  if (head === "subagent") return `agent:${agentId}:${text}`;
  if (head === "node") return `node-${parts.slice(1).join(":")}`;
  if (head.startsWith("node-")) return text;
  if (isChannelId(head) && (second === "group" || second === "channel")) return `agent:${agentId}:${text}`;
  return text;
}

export interface KeyCaller {
  /** The calling agent; for an operator, the default agent. */
  readonly agentId: string;
  /**
   * True if a name alone means a conversation of this agent. Only for people and clients, not for tools of
   * agents.
   */
  readonly bareNames?: boolean;
}

/**
 * Returns the canonical key for `text`: `main`, a key, an older spelling of a key, or a name alone. Accepts
 * reserved words, so that the visibility check can refuse them like any other hidden session. Fails for a
 * session id, because it is not a key.
 */
export function canonicalKey(text: string, who: KeyCaller, rules: KeyRules): Result<string> {
  const trimmed = text.trim();
  const lower = trimmed.toLowerCase();
  if (lower === "main" || trimmed === rules.mainKey) return ok(mainKeyOf(who.agentId, rules));
  if (isReservedKey(lower)) return ok(lower);
  const modern = modernSpelling(trimmed, who.agentId);
  const whole = parseKey(modern);
  const bare = !whole.ok && who.bareNames === true && mayBeBareName(modern);
  const parsed = bare ? parseKey(`agent:${who.agentId}:${modern}`) : whole;
  if (!parsed.ok) return refuseMalformed(trimmed);
  const { value } = parsed;
  return ok(
    isMainName(value, rules) ? mainKeyOf(value.agentId, rules) : formatKey(withMainKey(value, rules)),
  );
}

/** Replaces the name of a main session by its configured name, also in the key of a fork of that session. */
function withMainKey(key: ParsedKey, rules: KeyRules): ParsedKey {
  if (key.form === "fork") return { ...key, of: withMainKey(key.of, rules) };
  return isMainName(key, rules) ? { ...key, name: [rules.mainKey] } : key;
}

/** Returns whether a text that is not a key may be the name of a conversation, written without its agent. */
function mayBeBareName(text: string): boolean {
  const head = text.split(":", 1)[0]?.toLowerCase() ?? "";
  return (
    text !== "" &&
    !UUID.test(text.toLowerCase()) &&
    !(text.includes(":") && (NEVER_A_CHANNEL.includes(head) || head.startsWith("node-")))
  );
}

function isMainName(key: ParsedKey, rules: KeyRules): key is Extract<ParsedKey, { form: "named" }> {
  if (key.form !== "named" || key.name.length !== 1) return false;
  return key.name[0] === rules.mainKey || key.name[0]?.toLowerCase() === "main";
}

/**
 * Returns whether using this canonical key creates its session. True for named conversations and sessions of
 * an editor. Other sessions are created by their channel, job or spawn.
 */
export function opensOnUse(key: string, rules: KeyRules): boolean {
  const parsed = readKey(key);
  if (parsed?.form === "external") return parsed.client === "acp";
  return parsed?.form === "named" && !isMainName(parsed, rules);
}

/** Returns the key of an agent's main session. With scope `global`, all agents share one. */
export function mainKeyOf(agentId: string, rules: KeyRules): string {
  if (rules.scope === "global") return "global";
  return formatKey({ form: "named", agentId, name: [rules.mainKey] });
}

/**
 * Returns the key in the form to show. An agent sees its own main session as `main`. An operator
 * (`viewerAgentId` undefined) sees the full key.
 */
export function displayKey(key: string, viewerAgentId: string | undefined, rules: KeyRules): string {
  if (viewerAgentId === undefined) return key;
  return key === "global" || key === mainKeyOf(viewerAgentId, rules) ? "main" : key;
}

/** Returns the `kind` of a session in `sessions_list`. */
export function kindOf(key: string, rules: KeyRules): SessionKind {
  const parsed = readKey(key);
  switch (parsed?.form) {
    case "global":
      return "main";
    case "named":
      return isMainName(parsed, rules) ? "main" : "other";
    case "group":
    case "channel":
      return "group";
    case "cron":
    case "hook":
    case "node":
      return parsed.form;
    default:
      return "other";
  }
}

/** Returns the `channel` of a session in `sessions_list`. */
export function channelOf(session: Session): string {
  const parsed = readKey(session.key);
  switch (parsed?.form) {
    case "group":
    case "channel":
      return session.groupChannel ?? parsed.channel;
    case "dm":
      return session.lastRoute?.channel ?? parsed.channel;
    case "cron":
    case "hook":
    case "node":
      return "internal";
    case "fork":
      return session.groupChannel ?? "unknown";
    default:
      return session.lastRoute?.channel ?? "unknown";
  }
}

/** Returns the parsed key of the session from which a chain of forks began. */
function rootOf(parsed: ParsedKey | undefined): Exclude<ParsedKey, { form: "fork" }> | undefined {
  return parsed?.form === "fork" ? rootOf(parsed.of) : parsed;
}

/** Returns the parsed key of a session, or of the session from which its chain of forks began. */
export function rootKeyOf(key: string): ReturnType<typeof rootOf> {
  return rootOf(readKey(key));
}

/** Returns the agent id in a key. Keys of cron, hook and node sessions and `global` have none. */
export function agentIdInKey(key: string): string | undefined {
  const parsed = rootOf(readKey(key));
  if (parsed?.form === "peer") return peerAgentId(parsed.peer, parsed.of.agentId);
  return parsed !== undefined && "agentId" in parsed ? parsed.agentId : undefined;
}

/** Returns the key of a session of a peer. `key` is a key of the peer. Undefined: no agent has that key. */
export function peerKey(peer: string, key: string): string | undefined {
  const parsed = parseKey(`peer:${peer}/${key}`);
  return parsed.ok ? formatKey(parsed.value) : undefined;
}

/** Returns the peer in a key, and its agent there. Undefined: the session is one of this gateway. */
export function peerInKey(key: string): { readonly peer: string; readonly agentId: string } | undefined {
  // This is asked for every run, and only few keys need to be parsed.
  if (!PEER_KEY.test(key)) return undefined;
  const parsed = readKey(key);
  return parsed?.form === "peer" ? { peer: parsed.peer, agentId: parsed.of.agentId } : undefined;
}

/** Returns whether a key belongs to a sub-agent or to a fork of one. */
export function isSubagentKey(key: string): boolean {
  return rootOf(readKey(key))?.form === "subagent";
}

/** Returns whether a key belongs to a conversation that a person began: `agent:<agentId>:chat:<id>`. */
export function isChatKey(key: string): boolean {
  return readKey(key)?.form === "chat";
}

/**
 * Prefixes of the ids of lasting sessions: of the `user` field of HTTP requests, and of conversations. All
 * other `openai` keys belong to temporary sessions.
 */
const OPENAI_PREFIXES = { user: "user-", conversation: "conv-", request: "" };

/** Returns the key for a session of an OpenAI-compatible client. `request`: for a single request. */
export function openAiKey(agentId: string, name: string, whose: keyof typeof OPENAI_PREFIXES): string {
  const id = `${OPENAI_PREFIXES[whose]}${name}`;
  return formatKey({ form: "external", agentId, client: "openai", id });
}

/** Returns the key for a conversation of an A2A client. `owner`: a hash of the client's token. */
export function a2aKey(agentId: string, owner: string, contextId: string): string {
  return formatKey({ form: "external", agentId, client: "a2a", id: `${owner}-${contextId}` });
}

/** Returns the id of the conversation in a key of `a2aKey`. `owner`: only if this owner has the session. */
export function a2aContext(key: string, owner?: string): string | undefined {
  const parsed = readKey(key);
  if (parsed?.form !== "external" || parsed.client !== "a2a") return undefined;
  const end = parsed.id.indexOf("-");
  const isOwn = owner === undefined || parsed.id.slice(0, end) === owner;
  return end > 0 && isOwn ? parsed.id.slice(end + 1) : undefined;
}

/** Returns whether a session is only for one request of an HTTP client. It is archived after the request. */
export function isTemporaryKey(key: string): boolean {
  const parsed = readKey(key);
  if (parsed?.form !== "external" || parsed.client !== "openai") return false;
  const { user, conversation } = OPENAI_PREFIXES;
  return !parsed.id.startsWith(user) && !parsed.id.startsWith(conversation);
}

/**
 * Returns whether a key is `global` or `unknown`. Those sessions are never listed, returned or created by
 * name.
 */
export function isReservedKey(key: string): boolean {
  return key === "global" || key === "unknown";
}

/**
 * Returns the route of a group, room, thread or chat with one person, derived from the key alone. Other keys
 * have no route.
 */
export function routeOfKey(key: string): Route | undefined {
  const parsed = readKey(key);
  if (parsed?.form === "dm") return { channel: parsed.channel, to: parsed.peer };
  if (parsed?.form !== "group" && parsed?.form !== "channel") return undefined;
  const route = { channel: parsed.channel, to: parsed.id };
  return parsed.thread === undefined ? route : { ...route, threadId: parsed.thread.id };
}

/**
 * Returns the chat types by which a send rule can match this session. A thread has its own type and that of
 * its parent, and a fork those of its origin. Sub-agents, external clients, and cron, hook and node sessions
 * are not chats and have none.
 */
export function chatTypeOf(key: string): readonly ChatType[] {
  const parsed = rootOf(readKey(key));
  switch (parsed?.form) {
    case "named":
    case "global":
    case "dm":
    case "chat":
      return ["direct"];
    case "group":
      return parsed.thread === undefined ? ["group"] : ["thread", "group"];
    case "channel":
      return parsed.thread === undefined ? ["room"] : ["thread", "room"];
    default:
      return [];
  }
}
