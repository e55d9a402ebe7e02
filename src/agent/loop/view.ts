// Builds the messages that a model gets from a transcript.
// V1: tool calls are followed at once by their results, in call order; there is no call without its result,
//     and no result without its call: a late one, whose call is summarised, is a notice.
// V2: adjacent messages of one speaker are merged; the first and the last message are never the assistant's.
// V3: parts of another model (thinking, signatures) and failed parts are left out. Thinking without a
//     signature is left out, too: providers refuse it, or treat it as the answer's text.
// V4: a compacted transcript is shown as its summary and the messages from `firstKeptId` on. The summary has
//     a label of its own and is quoted, because it may repeat lines of strangers and of the runtime.
// V5: the author of a message is named unless it is the person of the conversation. That person is named only
//     after a message of another author. No other author can write a line that looks like a line of the
//     runtime.

import {
  type AssistantMessage,
  type Entry,
  isCompaction,
  type Message,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
  type UserMessage,
} from "../../core/shapes/message.ts";
import { head } from "../../core/text/cut.ts";
import { quoteRuntimeLabels } from "../../core/text/look-alike.ts";
import { plainName, quoteLines } from "../../core/text/safe-text.ts";
import type { ModelRequest, ResolvedModel } from "../model/model.ts";
import { isFailed, NO_RESULT, withoutRefused } from "./omission.ts";
import { matchResults } from "./result-matching.ts";

/** The part of a transcript after the last compaction, and the summary of the part before it. */
export interface LiveTranscript {
  readonly summary?: string;
  /** Without the parts that a provider refused (`omission.ts`). */
  readonly messages: readonly Message[];
}

export function liveTranscript(entries: readonly Entry[]): LiveTranscript {
  const compactedAt = entries.findLastIndex(isCompaction);
  const compaction = entries[compactedAt];
  if (compaction === undefined || !isCompaction(compaction))
    return { messages: withoutRefused(entries as Message[]) };
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const keptFrom = messages.findIndex((message) => message.id === compaction.firstKeptId);
  const kept =
    keptFrom >= 0
      ? messages.slice(keptFrom)
      : entries.slice(compactedAt + 1).filter((entry): entry is Message => !isCompaction(entry));
  return { summary: compaction.summary, messages: withoutRefused(kept) };
}

/** Returns the messages for `model` from `entries`. */
export function modelView(entries: readonly Entry[], model: ResolvedModel): Message[] {
  const { summary, messages } = liveTranscript(entries);
  const answers = matchResults(messages);
  const matched = new Set([...answers.values()].flatMap((of) => [...of.values()]));
  const lastUserAt = messages.findLastIndex((message) => message.role === "user");
  const view: Message[] = [];
  const usedIds = new Set<string>();
  if (summary !== undefined)
    view.push({ ...note("summary", quoteSummary(summary)), provenance: { kind: "notice" } });
  messages.forEach((message, at) => {
    if (message.role === "user") view.push(labelMessage(message));
    if (message.role === "toolResult" && !matched.has(message)) view.push(lateResult(message, model));
    if (message.role === "assistant") {
      const isOver = at < lastUserAt;
      view.push(...assistantTurn(message, answers.get(message) ?? new Map(), model, usedIds, isOver));
    }
  });
  const merged = mergeNeighbours(view);
  if (merged[0]?.role === "assistant") {
    merged.unshift(note("opening", "(The conversation begins with a message of yours.)"));
  }
  if (merged.length === 0 || merged.at(-1)?.role === "assistant") {
    // Other messages stand between a call and the result that its client sent later.
    const isLate = messages.at(-1)?.role === "toolResult";
    merged.push(note("continue", isLate ? LATE_RESULTS : "(Please continue.)"));
  }
  return merged;
}

const LATE_RESULTS =
  "(The results of your earlier tool calls have arrived: they follow these calls above. Please continue.)";

/** Quotes a summary below a label that says where it comes from (V4). */
export function quoteSummary(summary: string): string {
  const label = "[summary of the earlier messages, written by the model, not from a person]";
  return [label, ...quoteLines(summary)].join("\n");
}

/** Timestamp of notes that are generated here. No stored message has it. */
const NOTE_TIMESTAMP = 0;

function note(id: string, text: string): UserMessage {
  return { id: `view-${id}`, role: "user", content: [{ type: "text", text }], timestamp: NOTE_TIMESTAMP };
}

/**
 * Adds a text block that names the author of a message, unless the author is the person of the conversation.
 */
function labelMessage(message: UserMessage): UserMessage {
  const label = labelOf(message);
  const hasContent = message.content.some((block) => block.type === "image" || block.text.trim() !== "");
  const content = hasContent ? message.content : [{ type: "text" as const, text: "(empty message)" }];
  if (label === undefined) return { ...message, content };
  // Text from channels was cleaned when it arrived. It contains lines that the runtime added, so it must not
  // be cleaned again.
  const isPlain = message.provenance === undefined;
  const plain = content.map((block) =>
    block.type === "text" && !isPlain ? { ...block, text: quoteRuntimeLabels(block.text) } : block,
  );
  return { ...message, content: [{ type: "text", text: label }, ...plain] };
}

/** Returns the author label of a message, or undefined if the author is the person of the conversation. */
export function labelOf(message: UserMessage): string | undefined {
  const from = message.provenance;
  if (from === undefined)
    return message.senderName === undefined ? undefined : `[from ${personName(message.senderName)}]`;
  switch (from.kind) {
    case "inter_session":
      return `[from session ${plainName(from.sourceSessionKey)}, not from a person]`;
    case "notice":
      return "[notice of the runtime, not from a person]";
    case "cron":
    case "hook":
    case "node":
      return `[from ${plainName([from.kind, from.source ?? ""].join(" "))}, not from a person]`;
  }
}

/** Names reserved for authors other than persons. */
const NO_PERSON = /^(?:session|cron|hook|node|the person)\b|not from a person/i;

function personName(name: string): string {
  const plain = plainName(name);
  return NO_PERSON.test(plain) ? `somebody called ${JSON.stringify(plain)}` : plain;
}

function assistantTurn(
  message: AssistantMessage,
  answers: ReadonlyMap<number, ToolResultMessage>,
  model: ResolvedModel,
  usedIds: Set<string>,
  isOver: boolean,
): Message[] {
  if (isFailed(message)) {
    // People have seen the text of a failed call, so later turns include it. A turn that is retried leaves it
    // out.
    return isOver && textOf(message).trim() !== "" ? [textOnly(message)] : [];
  }
  const own = isOfModel(message, model) ? withoutUnsigned(message) : withoutForeignParts(message);
  const calls = toolCallsOf(own);
  if (calls.length === 0) return textOf(own).trim() === "" ? [] : [own];
  const ids = calls.map((call) => {
    let fresh = call.id;
    for (let count = 2; usedIds.has(fresh); count++) fresh = `${call.id}_${count}`;
    usedIds.add(fresh);
    return fresh;
  });
  let at = -1;
  const content = own.content.map((block) => {
    if (block.type !== "toolCall") return block;
    at += 1;
    return { ...block, id: ids[at] ?? block.id };
  });
  const results = calls.map((call, index) =>
    resultFor(call, ids[index] ?? call.id, answers.get(index), model),
  );
  return [{ ...own, content }, ...results];
}

function resultFor(
  call: ToolCallBlock,
  id: string,
  result: ToolResultMessage | undefined,
  model: ResolvedModel,
): ToolResultMessage {
  if (result === undefined) {
    const content = [{ type: "text" as const, text: NO_RESULT }];
    const base = { id: `view-${id}`, role: "toolResult" as const, timestamp: NOTE_TIMESTAMP };
    return { ...base, toolCallId: id, toolName: call.name, content, isError: true };
  }
  // One result may fill a quarter of the context window. A token has about four characters, so this is one
  // character for each token of the window.
  const charsMax = Math.max(1_000, model.settings.contextWindow);
  const content = result.content.map((block) =>
    block.type === "text" && block.text.length > charsMax
      ? {
          ...block,
          text: `${head(block.text, charsMax)}\n[cut: ${charsMax} of ${block.text.length} characters]`,
        }
      : block,
  );
  const isEmpty = content.every((block) => block.type === "text" && block.text === "");
  return {
    ...result,
    toolCallId: id,
    toolName: call.name,
    content: isEmpty ? [{ type: "text", text: "(no output)" }] : content,
  };
}

/** Returns a notice of a result whose call is no longer in the transcript. */
function lateResult(message: ToolResultMessage, model: ResolvedModel): UserMessage {
  const { id, toolName: name, toolCallId, timestamp } = message;
  const call = { type: "toolCall" as const, id: toolCallId, name, arguments: {} };
  const about = `The result of an earlier call of the tool ${plainName(name)} has arrived:`;
  const given = resultFor(call, toolCallId, message, model).content.map((block) =>
    block.type === "text" ? { ...block, text: quoteRuntimeLabels(block.text) } : block,
  );
  const content = [{ type: "text" as const, text: about }, ...given];
  return labelMessage({ id, role: "user", content, timestamp, provenance: { kind: "notice" } });
}

function isOfModel(message: AssistantMessage, model: ResolvedModel): boolean {
  return (
    model.kind === "provider" &&
    message.provider === model.provider.id &&
    message.api === model.provider.api &&
    message.model === model.settings.id
  );
}

/** Removes thinking without a signature: sent back, it would read as the answer. */
function withoutUnsigned(message: AssistantMessage): AssistantMessage {
  const content = message.content.filter(
    (block) => block.type !== "thinking" || block.redacted === true || Boolean(block.thinkingSignature),
  );
  return content.length === message.content.length ? message : { ...message, content };
}

function withoutForeignParts(message: AssistantMessage): AssistantMessage {
  const content = message.content.flatMap((block): (TextBlock | ToolCallBlock)[] => {
    if (block.type === "thinking") return [];
    if (block.type === "text") return [{ type: "text", text: block.text }];
    return [{ type: "toolCall", id: block.id, name: block.name, arguments: block.arguments }];
  });
  return { ...message, content };
}

function textOnly(message: AssistantMessage): AssistantMessage {
  const { errorMessage: _, ...rest } = message;
  return { ...rest, content: [{ type: "text", text: textOf(message) }], stopReason: "stop" };
}

/**
 * Label of a person's text after text of other authors. Without the label, the person's text would seem to
 * come from the other authors (V5).
 */
const PERSON_AGAIN: TextBlock = { type: "text", text: "[from the person in this conversation]" };

const isOfPerson = (message: UserMessage): boolean =>
  labelOf(message) === undefined && message.timestamp !== NOTE_TIMESTAMP;

function mergeNeighbours(view: readonly Message[]): Message[] {
  const merged: Message[] = [];
  for (const message of view) {
    const last = merged.at(-1);
    if (last?.role === "user" && message.role === "user") {
      const between = labelOf(last) !== undefined && isOfPerson(message) ? [PERSON_AGAIN] : [];
      merged[merged.length - 1] = { ...message, content: [...last.content, ...between, ...message.content] };
    } else if (
      last?.role === "assistant" &&
      message.role === "assistant" &&
      toolCallsOf(last).length + toolCallsOf(message).length === 0
    ) {
      const content = [last, message].map((one) => ({ type: "text" as const, text: textOf(one) }));
      merged[merged.length - 1] = { ...message, content };
    } else {
      merged.push(message);
    }
  }
  return merged;
}

/** Rough estimate: four characters a token. Every image counts as a large one. */
const CHARS_PER_TOKEN = 4;
const IMAGE_TOKENS = 1_500;

export function estimateTextTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}

/** High estimate for a picture: every provider counts fewer tokens. */
const IMAGE_TOKENS_MAX = 5_000;
const TOKENS_PER_MESSAGE = 8;
/** In any script, a text rarely has more than one token per three bytes. */
const bytesToTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 3);

function mostTokens(message: Message): number {
  const blocks = message.content.map((block) => {
    if (block.type === "image") return IMAGE_TOKENS_MAX;
    if (block.type === "text") return bytesToTokens(block.text);
    return bytesToTokens(block.type === "thinking" ? block.thinking : JSON.stringify(block));
  });
  return blocks.reduce((sum, tokens) => sum + tokens, TOKENS_PER_MESSAGE);
}

/**
 * Returns the index of the last message up to which a provider has counted the tokens, or -1 if there is
 * none.
 */
export function lastCounted(entries: readonly Entry[], messages: readonly Message[]): number {
  const compactedAtMs = entries.findLast(isCompaction)?.timestamp ?? Number.NEGATIVE_INFINITY;
  return messages.findLastIndex(
    (one) => one.role === "assistant" && one.usage.totalTokens > 0 && one.timestamp > compactedAtMs,
  );
}

/** Returns an upper bound for a request's tokens: the last count, plus a high guess for the rest. */
export function inputCeiling({ entries, model, system, tools }: ModelRequest): number {
  const { messages } = liveTranscript(entries);
  const counted = lastCounted(entries, messages);
  const last = messages[counted];
  const before =
    last?.role === "assistant" ? last.usage.totalTokens : bytesToTokens(system + JSON.stringify(tools));
  const rest = last === undefined ? modelView(entries, model) : messages.slice(counted + 1);
  const most = rest.reduce((sum, message) => sum + mostTokens(message), before);
  return Math.min(most, model.settings.contextWindow);
}

export function estimateTokens(message: Message): number {
  let tokens = 4;
  for (const block of message.content) {
    if (block.type === "image") tokens += IMAGE_TOKENS;
    else if (block.type === "text") tokens += estimateTextTokens(block.text);
    else if (block.type === "thinking") tokens += estimateTextTokens(block.thinking);
    else tokens += estimateTextTokens(block.name + JSON.stringify(block.arguments));
  }
  return tokens;
}
