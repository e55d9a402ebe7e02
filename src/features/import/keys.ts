// Converts the source's session keys to canonical keys. The same source key always gives the same key. A key
// of an unknown form becomes the name of a conversation. If it is not a valid name, it becomes the
// conversation's label.

import {
  encodeOutsideId,
  formatKey,
  isAgentId,
  isChannelId,
  type KeyRules,
  mainKeyOf,
  parseKey,
} from "../../core/shapes/session-key.ts";
import { derivedUuid } from "./ids.ts";

/** Facts about a session that its key does not contain. */
export interface KeyHints {
  /** The agent to whose store the session belongs. */
  readonly agentId: string;
  /** The channel in the session's entry. */
  readonly channel?: string;
  /** Last part of the source's keys of main sessions. */
  readonly mainName: string;
  /** True if the source keeps all chats in one session. */
  readonly isGlobal: boolean;
}

export type KeyVerdict =
  | {
      readonly kind: "key";
      readonly key: string;
      readonly agentId: string;
      readonly accountId?: string;
    }
  /** A key of an unknown form, which becomes the name of a conversation. */
  | { readonly kind: "conversation"; readonly key: string; readonly agentId: string }
  | { readonly kind: "reserved" };

const KINDS: Readonly<Record<string, "group" | "channel" | "dm">> = {
  group: "group",
  channel: "channel",
  room: "channel",
  dm: "dm",
  direct: "dm",
};
/** A phone number. Older keys of direct chats consist only of one. */
const PHONE = /^\+?\d{4,}$/;
const JID = /@g\.us$/i;

/** Returns an agent's id in Parley's spelling, or undefined if nothing valid remains. */
export function agentIdOf(text: string): string | undefined {
  const id = text
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
  return isAgentId(id) ? id : undefined;
}

export function canonicalSourceKey(text: string, hints: KeyHints, rules: KeyRules): KeyVerdict {
  const source = text.trim();
  const lower = source.toLowerCase();
  if (lower === "unknown") return { kind: "reserved" };
  if (lower === "global") {
    return hints.isGlobal || rules.scope === "global"
      ? main(rules.defaultAgentId, rules)
      : { kind: "reserved" };
  }
  const own = /^agent:([^:]+):(.+)$/is.exec(source);
  const agentId = (own === null ? hints.agentId : agentIdOf(own[1] ?? "")) ?? hints.agentId;
  const rest = own?.[2] ?? source;
  const isMain = [rest.toLowerCase(), lower].some((name) => name === "main" || name === hints.mainName);
  if (isMain) return main(agentId, rules);
  const spelled = readRest(rest.split(":"), agentId, hints);
  const key = spelled === undefined ? undefined : canonical(spelled.text);
  if (spelled !== undefined && key !== undefined) {
    const { text: _, ...account } = spelled;
    return { kind: "key", key, agentId, ...account };
  }
  // Parts that are not valid in a key are encoded.
  const encoded = rest.split(":").map(encodeOutsideId).join(":");
  const name = canonical(`agent:${agentId}:${rest}`) ?? canonical(`agent:${agentId}:${encoded}`);
  if (name !== undefined) return { kind: "key", key: name, agentId };
  const id = derivedUuid("conversation", agentId, source);
  return { kind: "conversation", key: formatKey({ form: "chat", agentId, id }), agentId };
}

function canonical(text: string): string | undefined {
  const parsed = parseKey(text);
  return parsed.ok ? formatKey(parsed.value) : undefined;
}

function main(agentId: string, rules: KeyRules): KeyVerdict {
  return { kind: "key", key: mainKeyOf(agentId, rules), agentId };
}

interface Spelled {
  readonly text: string;
  readonly accountId?: string;
}

/** Reads the part of a key after `agent:<id>:`, or a whole key of an earlier form. */
function readRest(parts: readonly string[], agentId: string, hints: KeyHints): Spelled | undefined {
  const [first = "", second = ""] = parts;
  const head = first.toLowerCase();
  const tail = (from: number): string => encodeOutsideId(parts.slice(from).join(":"));
  const withColons = (start: string): Spelled => ({
    text: `${start}${parts.slice(1).map(encodeOutsideId).join(":")}`,
  });
  if (parts.length === 1) {
    if (head.startsWith("node-")) return { text: `node-${encodeOutsideId(first.slice(5))}` };
    if (JID.test(first)) return group(agentId, "whatsapp", first);
    return PHONE.test(first) ? direct(agentId, hints.channel, first) : undefined;
  }
  switch (head) {
    case "cron":
      return { text: `cron:${tail(1)}` };
    case "hook":
      return withColons("hook:");
    case "node":
      return withColons("node-");
    case "subagent":
      // The source key of a nested sub-agent contains the ids of both sub-agents, so join them.
      return { text: `agent:${agentId}:subagent:${encodeOutsideId(parts.slice(1).join("."))}` };
    case "mcp":
    case "acp":
    case "openai":
    case "chat":
      return { text: `agent:${agentId}:${head}:${tail(1)}` };
    case "group":
      return group(
        agentId,
        JID.test(parts.at(-1) ?? "") ? "whatsapp" : hints.channel,
        parts.slice(1).join(":"),
      );
    case "dm":
    case "direct":
      return direct(agentId, hints.channel, parts.slice(1).join(":"));
  }
  if (!isChannelId(head)) return undefined;
  if (KINDS[second.toLowerCase()] !== undefined) return inChannel(agentId, head, parts.slice(1));
  if (KINDS[(parts[2] ?? "").toLowerCase()] !== undefined) {
    const spelled = inChannel(agentId, head, parts.slice(2));
    return spelled === undefined ? undefined : { ...spelled, accountId: second };
  }
  if (parts.length !== 2) return undefined;
  return JID.test(second) ? group(agentId, head, second) : undefined;
}

function group(agentId: string, channel: string | undefined, id: string): Spelled | undefined {
  return channel === undefined
    ? undefined
    : { text: `agent:${agentId}:${channel}:group:${encodeOutsideId(id)}` };
}

function direct(agentId: string, channel: string | undefined, peer: string): Spelled | undefined {
  return channel === undefined
    ? undefined
    : { text: `agent:${agentId}:${channel}:dm:${encodeOutsideId(peer)}` };
}

/** Reads `<kind>:<id>`. The id may contain colons, and a thread may follow. */
function inChannel(agentId: string, channel: string, parts: readonly string[]): Spelled | undefined {
  const kind = KINDS[(parts[0] ?? "").toLowerCase()];
  if (kind === undefined) return undefined;
  const mark = parts.findLastIndex((part, index) => index > 1 && /^(thread|topic)$/i.test(part));
  const id = parts.slice(1, mark === -1 ? undefined : mark).join(":");
  const parent = `agent:${agentId}:${channel}:${kind}:${encodeOutsideId(id)}`;
  if (id === "") return undefined;
  if (mark === -1) return { text: parent };
  const thread = parts.slice(mark + 1).join(":");
  if (thread === "" || kind === "dm") return undefined;
  return { text: `${parent}:${(parts[mark] ?? "").toLowerCase()}:${encodeOutsideId(thread)}` };
}
