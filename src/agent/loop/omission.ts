// Leaves parts of older messages out of what models get, after a provider refused them. A note in the
// transcript says so to people, and to every later turn: a compaction, a restart and a copy keep it.
// O1: a note concerns only the messages before it: a newer picture is sent again.
// O2: after a note nothing of its part is left, so a request is never repeated twice for the same part.
// O3: a text takes the place of a part, so that the model can tell people about it.

import {
  type AssistantMessage,
  type HistoryPart,
  injectedMessage,
  type Message,
  type TextBlock,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
  type UserMessage,
} from "../../core/shapes/message.ts";
import type { ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import type { World } from "../../world.ts";
import { matchResults } from "./result-matching.ts";

const LINES: Record<HistoryPart, string> = {
  pictures: "The provider refused a picture. The pictures above are no longer sent to the model.",
  thinking: "The provider refused earlier thinking. The thinking above is no longer sent to the model.",
  "tool pairs": "The provider refused earlier tool calls. Those above are now sent to the model as text.",
  "long texts": "The conversation is too long for the model. Long texts above are now sent to it shortened.",
};

const PICTURE: TextBlock = {
  type: "text",
  text: "[a picture was here: the provider refused the pictures of this conversation, so it is left out]",
};
/** Replaces a message's model if its thinking is left out: thinking of other models is never sent. */
const NO_MODEL = "";
/** Maximum characters of a long text, if long texts are shortened. */
const TEXT_CHARS_MAX = 4_000;
const HEAD_CHARS = 2_600;
const TAIL_CHARS = 1_300;

export const NO_RESULT =
  "No result was recorded: the run ended before this call did. Its outcome is unknown.";

/** Creates the note from which on a part of all earlier messages is left out. */
export function omissionNote({ ids, clock }: World, omits: HistoryPart): AssistantMessage {
  return { ...injectedMessage(ids.orderedUuid(), LINES[omits], clock.now()), omits };
}

export function isFailed(message: AssistantMessage): boolean {
  return message.stopReason === "error" || message.stopReason === "aborted";
}

/** Returns the messages for models: without the notes, and without the parts that these leave out. */
export function withoutRefused(messages: readonly Message[]): readonly Message[] {
  const notes = messages.flatMap((message, at) => {
    const omits = message.role === "assistant" ? message.omits : undefined;
    return omits === undefined ? [] : [{ at, omits }];
  });
  if (notes.length === 0) return messages;
  const results = matchResults(messages);
  const matched = new Set([...results.values()].flatMap((of) => [...of.values()]));
  return messages.flatMap((message, at) => {
    if (notes.some((note) => note.at === at)) return [];
    const parts = new Set(notes.flatMap((note) => (note.at > at ? [note.omits] : [])));
    if (parts.has("tool pairs") && message.role === "toolResult" && matched.has(message)) return [];
    const own = parts.has("tool pairs") ? withCallsAsText(message, results.get(message)) : [message];
    return own.map((one) => withoutParts(one, parts));
  });
}

function withoutParts(message: Message, parts: ReadonlySet<HistoryPart>): Message {
  const content = message.content.map((block) => {
    if (block.type === "image" && parts.has("pictures")) return PICTURE;
    return block.type === "text" && parts.has("long texts") ? shortenText(block) : block;
  });
  const changed = { ...message, content } as Message;
  return changed.role === "assistant" && parts.has("thinking") ? { ...changed, model: NO_MODEL } : changed;
}

function shortenText(block: TextBlock): TextBlock {
  const { length } = block.text;
  if (length <= TEXT_CHARS_MAX) return block;
  const left = length - HEAD_CHARS - TAIL_CHARS;
  const end = block.text.slice(-TAIL_CHARS).toWellFormed();
  return { type: "text", text: `${head(block.text, HEAD_CHARS)}\n[${left} characters left out]\n${end}` };
}

/**
 * Returns a message without tool calls, and a notice of its calls and results. The notice is not the
 * assistant's, because models imitate calls that they seem to have written as text.
 */
function withCallsAsText(
  message: Message,
  results: ReadonlyMap<number, ToolResultMessage> = new Map(),
): Message[] {
  const calls = toolCallsOf(message);
  if (message.role !== "assistant" || calls.length === 0 || isFailed(message)) return [message];
  const content = calls.flatMap((call, index) => {
    const called = `You called the tool ${call.name} with ${JSON.stringify(call.arguments)}. It answered:`;
    const missing: TextBlock = { type: "text", text: NO_RESULT };
    return [{ type: "text" as const, text: called }, ...(results.get(index)?.content ?? [missing])];
  });
  const { id, timestamp } = message;
  const notice: UserMessage = { id, role: "user", content, timestamp, provenance: { kind: "notice" } };
  const said = message.content.filter(({ type }) => type !== "toolCall");
  return textOf(message).trim() === "" ? [notice] : [{ ...message, content: said }, notice];
}

/**
 * Returns whether something of a part is left in these messages, so that a request can be repeated without
 * it. `thinking`: the level of the request.
 */
export function hasPart(messages: readonly Message[], part: HistoryPart, thinking: ThinkingLevel): boolean {
  const has = (fits: (block: Message["content"][number]) => boolean): boolean =>
    messages.some(({ content }) => content.some(fits));
  switch (part) {
    case "pictures":
      return has(({ type }) => type === "image");
    case "long texts":
      return has((block) => block.type === "text" && block.text.length > TEXT_CHARS_MAX);
    case "tool pairs":
      return messages.some(
        (one) => one.role === "assistant" && !isFailed(one) && toolCallsOf(one).length > 0,
      );
    case "thinking":
      // A provider may also miss thinking before the calls of the current turn.
      return messages.some(hasThinking) || (thinking !== "off" && messages.at(-1)?.role === "toolResult");
  }
}

function hasThinking(message: Message): boolean {
  if (message.role !== "assistant" || message.model === NO_MODEL) return false;
  return message.content.some(
    (block) => block.type === "thinking" || "textSignature" in block || "thoughtSignature" in block,
  );
}
