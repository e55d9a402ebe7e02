// Reads an entry from its row, which a disk error or a person may have changed.
// RE1: reading never throws. It returns a valid entry with the id of the row.
// RE2: an undamaged entry is returned exactly as it was written.
// RE3: unreadable parts are replaced by a placeholder, and never count as a person's words (I11) or as a tool
//      call that could be run.

import { isObject, ownJson } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import type {
  AssistantMessage,
  Entry,
  ImageBlock,
  Message,
  Provenance,
  TextBlock,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "../../../core/shapes/message.ts";
import { HISTORY_PARTS, ZERO_USAGE } from "../../../core/shapes/message.ts";

/** Columns that are needed to read an entry. */
export const ENTRY_COLUMNS = ["id", "role", "entry_json", "created_at"] as const;

export interface EntryRow {
  readonly id: string;
  readonly role: string;
  readonly entry_json: string;
  readonly created_at: number;
}

/** Placeholder for an unreadable part. */
const DAMAGED = "[This part of the transcript is damaged and can't be read.]";
const DAMAGED_BLOCK: TextBlock = { type: "text", text: DAMAGED };
/**
 * Maximum depth of a call's arguments and a result's details. No tool needs more, and code can safely recurse
 * to this depth.
 */
const DEPTH_MAX = 200;

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === "string";
const isTextOrNone = (value: unknown): boolean => value === undefined || isText(value);
/** Returns whether a value is a valid count, time or price. A sum of valid values is a number. */
const isAmount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;

/**
 * Returns whether a value is nested too deeply. Iterates level by level, because recursion could overflow the
 * stack.
 */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEPTH_MAX) return true;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return false;
}

const BLOCKS: Readonly<Record<string, (block: Fields) => boolean>> = {
  text: ({ text, textSignature }) => isText(text) && isTextOrNone(textSignature),
  thinking: ({ thinking, thinkingSignature, redacted }) =>
    isText(thinking) &&
    isTextOrNone(thinkingSignature) &&
    [undefined, true, false].includes(redacted as true),
  image: ({ data, mimeType }) => isText(data) && isText(mimeType),
  toolCall: ({ id, name, arguments: args, thoughtSignature }) =>
    isText(id) && isText(name) && isObject(args) && !isTooDeep(args) && isTextOrNone(thoughtSignature),
};
const ALLOWED = {
  user: ["text", "image"],
  assistant: ["text", "thinking", "toolCall"],
  toolResult: ["text", "image"],
} as const satisfies Record<Message["role"], readonly string[]>;

interface Content<B> {
  readonly blocks: readonly (B | TextBlock)[];
  readonly isWhole: boolean;
}

/**
 * Returns the content with each invalid block replaced by the placeholder. If it is not a list, returns one
 * placeholder.
 */
function contentOf<B>(role: Message["role"], content: unknown): Content<B> {
  if (!Array.isArray(content)) return { blocks: [DAMAGED_BLOCK], isWhole: false };
  const allowed: readonly string[] = ALLOWED[role];
  const fits = (block: unknown): boolean =>
    isObject(block) &&
    isText(block.type) &&
    allowed.includes(block.type) &&
    BLOCKS[block.type]?.(block) === true;
  if (content.every(fits)) return { blocks: content, isWhole: true };
  return { blocks: content.map((block) => (fits(block) ? block : DAMAGED_BLOCK)), isWhole: false };
}

/** Returns an object with this text field, or an empty object if the field is missing or invalid. */
function optionalText<N extends string>(name: N, fields: Fields): { [P in N]?: string } {
  const value = fields[name];
  return isText(value) ? ({ [name]: value } as { [P in N]?: string }) : {};
}

/** Returns the origin of a message. An unreadable origin counts as the runtime, never as a person. */
function provenanceOf(value: unknown): Provenance {
  const fields = isObject(value) ? value : {};
  const { kind, sourceSessionKey, sourceTool, chainId, hop } = fields;
  switch (kind) {
    case "cron":
    case "hook":
    case "node":
      return { kind, ...optionalText("source", fields) };
    case "inter_session":
      if (!isText(sourceSessionKey) || !isText(sourceTool) || !isText(chainId) || !isAmount(hop)) break;
      return { kind, sourceSessionKey, ...optionalText("sourceChannel", fields), sourceTool, chainId, hop };
  }
  return {
    kind: "notice",
    ...optionalText("sourceSessionKey", fields),
    ...optionalText("runId", fields),
    ...optionalText("chainId", fields),
    ...(isAmount(hop) ? { hop } : {}),
  };
}

const COUNTS = ["input", "output", "cacheRead", "cacheWrite"];

function usageOf(value: unknown): Usage {
  if (!isObject(value) || !isObject(value.cost)) return ZERO_USAGE;
  const { cost } = value;
  const isWhole =
    [...COUNTS, "totalTokens"].every((name) => isAmount(value[name])) &&
    [...COUNTS, "total"].every((name) => isAmount(cost[name]));
  return isWhole ? (value as unknown as Usage) : ZERO_USAGE;
}

interface Base {
  readonly id: string;
  readonly timestamp: number;
}

function userOf(fields: Fields, base: Base): UserMessage {
  const { blocks, isWhole } = contentOf<ImageBlock>("user", fields.content);
  const isPersons = isWhole && fields.provenance === undefined;
  return {
    ...base,
    role: "user",
    content: blocks,
    ...(isPersons ? {} : { provenance: provenanceOf(fields.provenance) }),
    ...optionalText("senderName", fields),
    ...(fields.steered === true ? { steered: true } : {}),
  };
}

function assistantOf(fields: Fields, base: Base): AssistantMessage {
  const { blocks, isWhole } = contentOf<AssistantMessage["content"][number]>("assistant", fields.content);
  const { api, provider, model, stopReason, errorCode } = fields;
  const omits = HISTORY_PARTS.find((part) => part === fields.omits);
  return {
    ...base,
    role: "assistant",
    content: blocks,
    api: isText(api) ? api : "unknown",
    provider: isText(provider) ? provider : "unknown",
    model: isText(model) ? model : "unknown",
    usage: usageOf(fields.usage),
    ...(fields.earlierUsage === undefined ? {} : { earlierUsage: usageOf(fields.earlierUsage) }),
    // If a damaged answer kept its stop reason, its readable rest could end a turn or be continued.
    stopReason: isWhole && isText(stopReason) ? stopReason : "injected",
    ...optionalText("errorMessage", fields),
    ...(errorCode === "answer_too_large" ? { errorCode } : {}),
    ...optional({ omits }),
  };
}

function toolResultOf(fields: Fields, base: Base): ToolResultMessage {
  const { toolCallId, toolName, isError, details } = fields;
  return {
    ...base,
    role: "toolResult",
    toolCallId: isText(toolCallId) ? toolCallId : "",
    toolName: isText(toolName) ? toolName : "unknown",
    content: contentOf<ImageBlock>("toolResult", fields.content).blocks,
    isError: isError !== false,
    ...(details === undefined || isTooDeep(details) ? {} : { details }),
  };
}

function baseOf({ id, created_at }: EntryRow, { timestamp }: Fields): Base {
  return { id, timestamp: isAmount(timestamp) ? timestamp : created_at };
}

/**
 * Returns the fields of the stored JSON. Returns no fields if the JSON is invalid or does not match the row's
 * role.
 */
function fieldsOf(row: EntryRow): Fields {
  const value = ownJson(row.entry_json);
  if (!isObject(value)) return {};
  const said = row.role === "compaction" ? value.type : value.role;
  return said === row.role ? value : {};
}

/**
 * Returns the message of a row that is not a compaction. A row with an unknown role becomes a damaged answer
 * of a model.
 */
export function readMessage(row: EntryRow): Message {
  const fields = fieldsOf(row);
  const base = baseOf(row, fields);
  switch (row.role) {
    case "user":
      return userOf(fields, base);
    case "assistant":
      return assistantOf(fields, base);
    case "toolResult":
      return toolResultOf(fields, base);
    default:
      return assistantOf({}, base);
  }
}

/** Returns the entry of a row. */
export function readEntry(row: EntryRow): Entry {
  if (row.role !== "compaction") return readMessage(row);
  const fields = fieldsOf(row);
  const { summary, firstKeptId } = fields;
  return {
    ...baseOf(row, fields),
    type: "compaction",
    summary: isText(summary) ? summary : DAMAGED,
    firstKeptId: isText(firstKeptId) ? firstKeptId : "",
  };
}
