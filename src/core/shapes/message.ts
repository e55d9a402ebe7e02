// The shape of a transcript: messages, blocks, provenance, usage.
// Provenance is a typed field that only the runtime writes (I11); it is never parsed from text.

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly textSignature?: string;
}
export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly thinkingSignature?: string;
  readonly redacted?: boolean;
}
export interface ImageBlock {
  readonly type: "image";
  readonly data: string;
  readonly mimeType: string;
  /** Size of the picture in bytes, if its data is left out. */
  readonly bytes?: number;
}
export interface ToolCallBlock {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly thoughtSignature?: string;
}

/** Tokens, and money in USD. `totalTokens` is the provider's figure, or else the sum. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  readonly cost: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
    readonly total: number;
  };
}

/** Source of a user message. Only messages of a person or an operator have no provenance (I11). */
export type Provenance =
  | {
      readonly kind: "inter_session";
      readonly sourceSessionKey: string;
      readonly sourceChannel?: string;
      readonly sourceTool: string;
      readonly chainId: string;
      readonly hop: number;
    }
  | { readonly kind: "cron" | "hook" | "node"; readonly source?: string }
  | {
      readonly kind: "notice";
      readonly sourceSessionKey?: string;
      readonly runId?: string;
      readonly chainId?: string;
      readonly hop?: number;
    };

export interface UserMessage {
  readonly id: string;
  readonly role: "user";
  readonly content: readonly (TextBlock | ImageBlock)[];
  readonly timestamp: number;
  readonly provenance?: Provenance;
  readonly senderName?: string;
  /** True if the message arrived during a run, which read it between two steps. It starts no run. */
  readonly steered?: boolean;
}

export interface AssistantMessage {
  readonly id: string;
  readonly role: "assistant";
  readonly content: readonly (TextBlock | ThinkingBlock | ToolCallBlock)[];
  readonly timestamp: number;
  readonly api: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  /** Usage of the calls for this message whose answers are not stored. Absent if there were none. */
  readonly earlierUsage?: Usage;
  /** `stop | length | toolUse | error | aborted | injected`. */
  readonly stopReason: string;
  readonly errorMessage?: string;
  /** Code of the error, for errors that have one. */
  readonly errorCode?: "answer_too_large";
  /** Part of all messages before this one that models do not get. Only in notes of the runtime. */
  readonly omits?: HistoryPart;
}

/** Parts of older messages that can be left out, because a provider refused them. */
export type HistoryPart = "pictures" | "thinking" | "tool pairs" | "long texts";
export const HISTORY_PARTS: readonly HistoryPart[] = ["pictures", "thinking", "tool pairs", "long texts"];

export interface ToolResultMessage {
  readonly id: string;
  readonly role: "toolResult";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly content: readonly (TextBlock | ImageBlock)[];
  readonly isError: boolean;
  readonly details?: unknown;
  readonly timestamp: number;
}

export type Message = UserMessage | AssistantMessage | ToolResultMessage;

/**
 * A compaction. The model sees `summary` and the entries from `firstKeptId` on. The history still has all
 * entries.
 */
export interface Compaction {
  readonly id: string;
  readonly type: "compaction";
  readonly summary: string;
  readonly firstKeptId: string;
  readonly timestamp: number;
}

/** One line of a transcript. */
export type Entry = Message | Compaction;

export function isCompaction(entry: Entry): entry is Compaction {
  return "type" in entry && entry.type === "compaction";
}

export const ZERO_USAGE: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** Returns an assistant message that the runtime writes instead of a model. */
export function injectedMessage(
  id: string,
  text: string,
  at: number,
  stopReason = "injected",
): AssistantMessage {
  return {
    id,
    role: "assistant",
    content: [{ type: "text", text }],
    timestamp: at,
    api: "parley",
    provider: "parley",
    model: "parley",
    usage: ZERO_USAGE,
    stopReason,
  };
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    totalTokens: a.totalTokens + b.totalTokens,
    cost: {
      input: a.cost.input + b.cost.input,
      output: a.cost.output + b.cost.output,
      cacheRead: a.cost.cacheRead + b.cost.cacheRead,
      cacheWrite: a.cost.cacheWrite + b.cost.cacheWrite,
      total: a.cost.total + b.cost.total,
    },
  };
}

/** Joins the text blocks of a message with newlines. Leaves out thinking, images and tool calls. */
export function textOf(message: Message): string {
  return message.content
    .filter((block): block is TextBlock => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}

/** A tool call and its position: `index` counts the calls of its message from 0. */
export interface PlacedCall {
  readonly messageId: string;
  readonly index: number;
  readonly call: ToolCallBlock;
}

/**
 * Returns the message id for the result of a call. Every attempt gets the same id, so a second result is
 * never stored.
 */
export function resultIdOf({ messageId, index }: Pick<PlacedCall, "messageId" | "index">): string {
  return `${messageId}:${index}`;
}

/**
 * Returns the index of the open call that a result answers, -1 if none. Because providers may reuse call ids,
 * it is the call at the result's place, or else the first one with its id in the latest message that has one.
 */
export function callOfResult(open: readonly PlacedCall[], { id, toolCallId }: ToolResultMessage): number {
  const placed = open.findIndex((place) => resultIdOf(place) === id);
  const latest = open.findLast(({ call }) => call.id === toolCallId)?.messageId;
  return placed >= 0
    ? placed
    : open.findIndex(({ messageId, call }) => messageId === latest && call.id === toolCallId);
}

/** Returns the calls without a result, in order. */
export function openCalls(messages: readonly Message[]): PlacedCall[] {
  const open: PlacedCall[] = [];
  for (const message of messages) {
    open.push(...toolCallsOf(message).map((call, index) => ({ messageId: message.id, index, call })));
    if (message.role !== "toolResult") continue;
    const at = callOfResult(open, message);
    if (at >= 0) open.splice(at, 1);
  }
  return open;
}

export function toolCallsOf(message: Message): readonly ToolCallBlock[] {
  return message.role === "assistant"
    ? message.content.filter((block): block is ToolCallBlock => block.type === "toolCall")
    : [];
}
