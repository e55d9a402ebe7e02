// Wraps a model port so that a turn gets whole answers. An empty answer (no visible text and no call) is
// requested again; if the next one is empty, too, the call fails, and a fallback model may answer. A text
// that was cut at the output limit is continued once, as part of the same message. Nothing is stored in
// between, so after a crash the call is made anew and no tool runs again.

import {
  type AssistantMessage,
  textOf,
  toolCallsOf,
  type Usage,
  type UserMessage,
  ZERO_USAGE,
} from "../../core/shapes/message.ts";
import {
  type ModelOutcome,
  type ModelPort,
  type ModelRequest,
  usageOf,
  type WrittenMessage,
} from "../model/model.ts";

interface TurnState {
  /** Returns whether the turn has an answer without this one: the model wrote it before a tool call. */
  hasText(): boolean;
  /** Counts the usage of an answer that is not stored as a message. */
  discard(usage: Usage): void;
}

type Answered = Extract<ModelOutcome, { readonly kind: "message" }>;
/** A stored message needs an id. These messages are only part of one request. */
const UNSTORED = { id: "unstored" };

const CONTINUE: UserMessage = {
  ...UNSTORED,
  role: "user",
  content: [
    {
      type: "text",
      text:
        "Your answer was cut at the output limit. Continue it exactly where it stops, even within a word. " +
        "Repeat nothing, and do not mention this.",
    },
  ],
  timestamp: 0,
  provenance: { kind: "notice" },
};

const textIn = (message: WrittenMessage): string => textOf({ ...UNSTORED, ...message });
const hasCalls = (message: WrittenMessage): boolean => toolCallsOf({ ...UNSTORED, ...message }).length > 0;

function isEmpty({ message }: Answered): boolean {
  return (
    !["length", "error", "aborted"].includes(message.stopReason) &&
    textIn(message).trim() === "" &&
    !hasCalls(message)
  );
}

function isCutText({ message }: Answered): boolean {
  return message.stopReason === "length" && textIn(message).trim() !== "" && !hasCalls(message);
}

/** Joins an answer and its continuation. Signatures of the texts are left out: they fit neither text. */
function joinAnswers(first: WrittenMessage, second: WrittenMessage): WrittenMessage {
  const selectBlocks = (message: WrittenMessage, type: string): AssistantMessage["content"] =>
    message.content.filter((block) => block.type === type);
  const text = textIn(first) + textIn(second);
  const thoughts = [...selectBlocks(first, "thinking"), ...selectBlocks(second, "thinking")];
  return { ...second, content: [...thoughts, { type: "text", text }, ...selectBlocks(second, "toolCall")] };
}

/** Returns a port that gives whole answers to a turn. */
export function wholeAnswerPort(port: ModelPort, turn: TurnState): ModelPort {
  const ask = async (...[request, onText, ...how]: Parameters<ModelPort["call"]>): Promise<ModelOutcome> => {
    let shown = 0;
    const first = await port.call(
      request,
      (delta) => {
        shown = delta.offset + delta.text.length;
        onText(delta);
      },
      ...how,
    );
    // A format makes the model begin anew, so that the texts could not be joined.
    if (first.kind !== "message" || request.format !== undefined || !isCutText(first)) return first;
    const { message } = first;
    const begun = textIn(message);
    if (shown < begun.length) onText({ offset: shown, text: begun.slice(shown) });
    turn.discard(message.usage);
    const entries = [...request.entries, { ...UNSTORED, ...message }, CONTINUE];
    const { onThinking: _, ...rest }: ModelRequest = request;
    const next = await port.call(
      { ...rest, entries },
      ({ offset, text }) => onText({ offset: begun.length + offset, text }),
      ...how,
    );
    const adds = (more?: WrittenMessage): more is WrittenMessage =>
      more !== undefined && (textIn(more) !== "" || hasCalls(more));
    if (next.kind === "message" && adds(next.message))
      return { kind: "message", message: joinAnswers(message, next.message) };
    if ((next.kind === "failed" || next.kind === "aborted") && adds(next.partial))
      return { ...next, partial: joinAnswers(message, next.partial) };
    turn.discard(usageOf(next) ?? ZERO_USAGE);
    const counted = { ...message, usage: ZERO_USAGE };
    return next.kind === "aborted" ? { ...next, partial: counted } : { kind: "message", message: counted };
  };
  return {
    async call(request, onText, signal, log) {
      const first = await ask(request, onText, signal, log);
      if (first.kind !== "message" || !isEmpty(first) || turn.hasText()) return first;
      const { ref } = request.model;
      log?.warn({ model: ref }, "the model answered without text and is asked again");
      turn.discard(first.message.usage);
      const second = await ask(request, onText, signal, log);
      if (second.kind !== "message" || !isEmpty(second)) return second;
      const error = `${ref} answered without text twice`;
      const partial = { ...second.message, stopReason: "error", errorMessage: error };
      return { kind: "failed", error, partial };
    },
  };
}
