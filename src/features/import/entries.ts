// Converts the entries of a source transcript to messages and compactions. The result always has the shape of
// core/shapes/message.ts. Only text that a person wrote is imported as a person's (I11): a message that the
// program inserted for the model becomes a notice.

import { type Fields, fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type {
  AssistantMessage,
  ImageBlock,
  Provenance,
  TextBlock,
  ToolResultMessage,
  Usage,
} from "../../core/shapes/message.ts";
import { withoutHidden } from "../../core/text/hidden-text.ts";
import { countIn, lineIn, priceIn, pricesIn, textIn, timeIn } from "./fields.ts";

type Undated<T> = Omit<T, "id" | "timestamp">;
type OutBlock = AssistantMessage["content"][number];

/** An entry's content, before it gets an id and a parent. */
export type SourceEntry =
  | {
      readonly kind: "user";
      readonly content: readonly (TextBlock | ImageBlock)[];
      readonly provenance?: Provenance;
      readonly senderName?: string;
    }
  | { readonly kind: "assistant"; readonly message: Undated<AssistantMessage> }
  | { readonly kind: "toolResult"; readonly message: Undated<ToolResultMessage> }
  | { readonly kind: "compaction"; readonly summary: string; readonly firstKept?: string }
  /** The file's header. */
  | { readonly kind: "header" }
  /** A known entry that is skipped without a report, because it is not part of the conversation. */
  | { readonly kind: "silent" }
  | { readonly kind: "unknown"; readonly what: string };

/**
 * Position of an entry in the tree that its file contains. `parentId` is null at the root, and absent if the
 * entry names no parent.
 */
export interface EntryPosition {
  readonly id?: string;
  readonly parentId?: string | null;
}

const ID_CHARS_MAX = 200;
const SUMMARY_CHARS_MAX = 400_000;
const SILENT = new Set([
  "model_change",
  "thinking_level_change",
  "custom",
  "label",
  "session_info",
  "leaf",
  "reset",
]);

export function entryPositionOf(value: unknown): EntryPosition {
  const { id, parentId } = fieldsOf(value);
  const own = textIn(id, ID_CHARS_MAX + 1);
  const parent = parentId === null ? null : textIn(parentId, ID_CHARS_MAX + 1);
  return {
    ...(own === undefined || own.length > ID_CHARS_MAX ? {} : { id: own }),
    ...optional({ parentId: parent }),
  };
}

/** Returns the time of an entry: the time of its message, else the entry's own time. */
export function timestampOf(value: unknown, now: number): number | undefined {
  const { message, timestamp } = fieldsOf(value);
  return timeIn(fieldsOf(message).timestamp, now) ?? timeIn(timestamp, now);
}

/**
 * Reads an entry. `origin`: the provenance of its message if the session is one in which no person writes.
 */
export function readSourceEntry(value: unknown, origin: Provenance | undefined): SourceEntry {
  if (!isObject(value)) return { kind: "unknown", what: "not an object" };
  const { type } = value;
  switch (type) {
    case "session":
      return { kind: "header" };
    case "message":
      return readMessage(fieldsOf(value.message), origin);
    case "custom_message":
      return notice(contentOf(value.content));
    case "branch_summary":
      return notice(contentOf(value.summary));
    case "compaction": {
      const summary = textIn(value.summary, SUMMARY_CHARS_MAX) ?? "";
      const firstKept = textIn(value.firstKeptEntryId, ID_CHARS_MAX);
      return { kind: "compaction", summary, ...optional({ firstKept }) };
    }
  }
  if (typeof type === "string" && SILENT.has(type)) return { kind: "silent" };
  return { kind: "unknown", what: typeof type === "string" ? `entry ${type}` : "entry without a type" };
}

function notice(content: readonly (TextBlock | ImageBlock)[]): SourceEntry {
  return content.length === 0
    ? { kind: "silent" }
    : { kind: "user", content, provenance: { kind: "notice" } };
}

function readMessage(message: Fields, origin: Provenance | undefined): SourceEntry {
  const { role } = message;
  switch (role) {
    case "user": {
      const content = contentOf(message.content);
      if (content.length === 0) return { kind: "silent" };
      const from = isObject(message.provenance) ? sourceOf(message.provenance) : origin;
      const senderName = lineIn(message.senderName, 200);
      return { kind: "user", content, ...optional({ provenance: from, senderName }) };
    }
    case "assistant":
      return readAssistant(message);
    case "toolResult":
    case "tool":
      return readResult(message);
    case "custom":
    case "hookMessage":
      return notice(contentOf(message.content));
    case "branchSummary":
    case "compactionSummary":
      return notice(contentOf(message.summary));
    case "bashExecution": {
      const command = textIn(message.command, 20_000) ?? "";
      const output = textIn(message.output, 100_000) ?? "";
      return notice(contentOf(`A command was run: ${command}\n${output}`));
    }
    default:
      return {
        kind: "unknown",
        what: typeof role === "string" ? `message of role ${role}` : "message without a role",
      };
  }
}

/**
 * Converts the source's provenance of a message. If it is unreadable, the message counts as the runtime's,
 * not as a person's.
 */
function sourceOf(provenance: Fields): Provenance | undefined {
  const { kind } = provenance;
  if (kind === "external_user") return undefined;
  if (kind === "cron" || kind === "hook" || kind === "node") return { kind };
  const sourceSessionKey = textIn(provenance.sourceSessionKey, 512);
  if (kind !== "inter_session" || sourceSessionKey === undefined) return { kind: "notice" };
  const sourceTool = textIn(provenance.sourceTool, 100) ?? "sessions_send";
  return { kind, sourceSessionKey, sourceTool, chainId: "import", hop: 1 };
}

/** Returns texts and pictures; skips other content. */
function contentOf(content: unknown): (TextBlock | ImageBlock)[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown): (TextBlock | ImageBlock)[] => {
    const { type, text, data, mimeType } = fieldsOf(block);
    if (type === "text" && typeof text === "string") return [{ type, text }];
    if (type === "image" && typeof data === "string" && typeof mimeType === "string")
      return [{ type, data, mimeType }];
    return [];
  });
}

function readAssistant(message: Fields): SourceEntry {
  const { content } = message;
  const blocks =
    typeof content === "string"
      ? contentOf(content)
      : Array.isArray(content)
        ? content.flatMap(outBlock)
        : [];
  const errorMessage = textIn(message.errorMessage, 20_000);
  if (blocks.length === 0 && errorMessage === undefined) return { kind: "silent" };
  return {
    kind: "assistant",
    message: {
      role: "assistant",
      content: withoutHidden(blocks as OutBlock[]),
      api: textIn(message.api, 100) ?? "unknown",
      provider: textIn(message.provider, 100) ?? "unknown",
      model: textIn(message.model, 200) ?? "unknown",
      usage: usageOf(message.usage),
      stopReason: textIn(message.stopReason, 40) ?? "stop",
      ...optional({ errorMessage }),
    },
  };
}

function outBlock(block: unknown): OutBlock[] {
  const fields = fieldsOf(block);
  const signature = (name: string) => (typeof fields[name] === "string" ? { [name]: fields[name] } : {});
  switch (fields.type) {
    case "text":
      return typeof fields.text === "string"
        ? [{ type: "text", text: fields.text, ...signature("textSignature") }]
        : [];
    case "thinking":
      return typeof fields.thinking === "string"
        ? [
            {
              type: "thinking",
              thinking: fields.thinking,
              ...signature("thinkingSignature"),
              ...(fields.redacted === true ? { redacted: true } : {}),
            },
          ]
        : [];
    case "toolCall": {
      const id = textIn(fields.id, 500);
      const name = textIn(fields.name, 200);
      if (id === undefined || name === undefined) return [];
      return [
        {
          type: "toolCall",
          id,
          name,
          arguments: fieldsOf(fields.arguments),
          ...signature("thoughtSignature"),
        },
      ];
    }
    default:
      return [];
  }
}

function readResult(message: Fields): SourceEntry {
  const { details, isError } = message;
  return {
    kind: "toolResult",
    message: {
      role: "toolResult",
      toolCallId: textIn(message.toolCallId, 500) ?? "",
      toolName: textIn(message.toolName, 200) ?? "unknown",
      content: contentOf(message.content),
      isError: isError === true,
      ...optional({ details }),
    },
  };
}

function usageOf(value: unknown): Usage {
  const usage = fieldsOf(value);
  const count = (name: string): number => countIn(usage[name]) ?? 0;
  const counts = {
    input: count("input"),
    output: count("output"),
    cacheRead: count("cacheRead"),
    cacheWrite: count("cacheWrite"),
  };
  const sum = Object.values(counts).reduce((one, other) => one + other);
  return {
    ...counts,
    totalTokens: countIn(usage.totalTokens) ?? sum,
    cost: { ...pricesIn(usage.cost), total: priceIn(fieldsOf(usage.cost).total) },
  };
}
