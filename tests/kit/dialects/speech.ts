// Writes an answer as a server of chat completions does, in the style of one dialect.

import { fieldsOf } from "../../../src/core/json.ts";
import type { ChatStyle, Json } from "./dialect.ts";

export interface SpokenCall {
  readonly name: string;
  readonly arguments: Json;
}

/** An answer of a model. */
export interface Speech {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly SpokenCall[];
  /** How the answer ends. Default: `stop`, or `calls` if there are calls. */
  readonly end?: "stop" | "length";
  /** A stream (default), a stream without its end mark, or one JSON document. */
  readonly form?: "stream" | "endless" | "json";
}

/** The part of a stream's writer that depends on the connection. */
export interface Sent {
  readonly pieces: readonly string[];
  /** The connection stays open behind the last piece. */
  readonly isOpen: boolean;
}

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
const REASONS = { stop: "stop", calls: "tool_calls", length: "length" };
const PIECES = 3;

export function piecesOf(text: string, count = PIECES): string[] {
  const chars = Array.from(text);
  const size = Math.max(1, Math.ceil(chars.length / count));
  return Array.from({ length: Math.ceil(chars.length / size) }, (_, at) =>
    chars.slice(at * size, (at + 1) * size).join(""),
  );
}

const reasonOf = ({ end, calls = [] }: Speech, { reasons = {} }: ChatStyle): string => {
  if (end === "length") return reasons.length ?? REASONS.length;
  return calls.length > 0 ? (reasons.calls ?? REASONS.calls) : (reasons.stop ?? REASONS.stop);
};

/** Returns the deltas of the thinking. */
function thinkingDeltas(thinking: string, { thinking: form }: ChatStyle): Json[] {
  return piecesOf(thinking).map((piece): Json => {
    switch (form) {
      case "reasoning":
        return { reasoning: piece };
      case "both":
        return { reasoning: piece, reasoning_content: piece };
      case "details":
        return { reasoning: piece, reasoning_details: [{ type: "reasoning.text", text: piece, index: 0 }] };
      case "parts":
        return { content: [{ type: "thinking", thinking: [{ type: "text", text: piece }] }] };
      default:
        return { reasoning_content: piece };
    }
  });
}

function textDeltas({ thinking = "", text = "" }: Speech, style: ChatStyle): Json[] {
  const isTagged = style.thinking === "tags" && thinking !== "";
  const whole = isTagged ? `<think>\n${thinking}\n</think>\n\n${text}` : text;
  // A list of parts is only written when there is thinking, as Mistral does.
  const isList = style.content === "list" && thinking !== "";
  return whole === ""
    ? []
    : piecesOf(whole).map((piece) => ({ content: isList ? [{ type: "text", text: piece }] : piece }));
}

const idOf = (style: ChatStyle, number: number): string =>
  style.id === undefined || style.id === null ? `call_${number}` : style.id(number);

function headOf({ name }: SpokenCall, at: number, number: number, style: ChatStyle): Json {
  const index = style.index === "zero" ? 0 : at;
  return {
    ...(style.index === "none" ? {} : { index }),
    ...(style.id === null ? {} : { id: idOf(style, number) }),
    ...{ type: "function", function: { name, arguments: "" }, ...style.callMore },
  };
}

/** Returns the deltas of all calls. `first`: number of the first call, so that ids of a session differ. */
function callDeltas(calls: readonly SpokenCall[], style: ChatStyle, first: number): Json[] {
  return calls.flatMap((call, at): Json[] => {
    const head = headOf(call, at, first + at, style);
    const given = JSON.stringify(call.arguments);
    const filled = (value: unknown): Json => ({ ...head, function: { name: call.name, arguments: value } });
    if (style.given === "object") return [{ tool_calls: [filled(call.arguments)] }];
    if (style.given === "whole") return [{ tool_calls: [filled(given)] }];
    const empty = style.hasEmptyHeads === true ? { id: "" } : {};
    const name = style.hasEmptyHeads === true ? { name: "" } : {};
    const index = head.index === undefined ? {} : { index: head.index };
    const tails = piecesOf(given, 2).map((piece) => ({
      tool_calls: [{ ...index, ...empty, function: { ...name, arguments: piece } }],
    }));
    return [{ tool_calls: [head] }, ...tails];
  });
}

/** Returns all calls whole, in one list. */
function wholeCalls(calls: readonly SpokenCall[], style: ChatStyle, first: number): Json[] {
  const whole: ChatStyle = { ...style, given: style.given === "object" ? "object" : "whole" };
  return callDeltas(calls, whole, first).flatMap(({ tool_calls: one }) => (one as Json[]).map(fieldsOf));
}

const USAGE_LAST: Readonly<Record<string, Json>> = {
  last: { usage: USAGE },
  x_groq: { x_groq: { id: "req_1", usage: USAGE } },
};

/** Writes an answer as a stream of chunks. */
export function chatStream(speech: Speech, style: ChatStyle, model: string, first: number): Sent {
  const { lineEnd = "\n", place } = style;
  const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model };
  let whole = "";
  const chunk = (delta: Json, finish: string | null, more: Json = {}, inChoice: Json = {}): string => {
    if (typeof delta.content === "string") whole += delta.content;
    const message = { role: "assistant", content: whole };
    const said = place === "message" ? { message: delta } : place === "both" ? { delta, message } : { delta };
    const choice = { index: 0, ...said, finish_reason: finish, ...inChoice };
    return `data: ${JSON.stringify({ ...base, choices: [choice], ...more })}${lineEnd}${lineEnd}`;
  };
  const { thinking = "", calls = [], form } = speech;
  const isApart = style.thinking !== "tags" && style.thinking !== "hidden";
  const deltas = [
    { role: "assistant", content: "" },
    ...(thinking === "" || !isApart ? [] : thinkingDeltas(thinking, style)),
    ...textDeltas(speech, style),
    ...callDeltas(calls, style, first),
  ];
  const repeated =
    style.repeatsCalls === true && calls.length > 0 ? { tool_calls: wholeCalls(calls, style, first) } : {};
  const isEndless = form === "endless";
  const usage = `data: ${JSON.stringify({ ...base, choices: [], usage: USAGE })}${lineEnd}${lineEnd}`;
  const isPlain = style.usage === undefined && !isEndless;
  return {
    pieces: [
      style.before ?? "",
      ...deltas.flatMap((delta) => [chunk(delta, null), style.between ?? ""]),
      chunk(
        repeated,
        reasonOf(speech, style),
        USAGE_LAST[style.usage ?? ""] ?? {},
        style.usage === "choice" ? { usage: USAGE } : {},
      ),
      isPlain ? usage : "",
      style.hasDone === false || isEndless ? "" : `data: [DONE]${lineEnd}${lineEnd}`,
    ].filter((piece) => piece !== ""),
    isOpen: style.staysOpen === true || isEndless,
  };
}

/** Writes an answer as one JSON document. */
export function chatDocument(speech: Speech, style: ChatStyle, model: string, first: number): unknown {
  const { thinking = "", calls = [] } = speech;
  const said = textDeltas(speech, style).map(({ content }) => content);
  const isList = said.some(Array.isArray);
  const parts = thinkingDeltas(thinking, style).map(({ content }) => content);
  const text = isList ? [...parts.flat(), ...said.flat()] : said.join("");
  const field = style.thinking === "reasoning" ? "reasoning" : "reasoning_content";
  const hasField = thinking !== "" && !["tags", "parts", "hidden"].includes(style.thinking ?? "");
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(hasField ? { [field]: thinking } : {}),
    ...(calls.length === 0 ? {} : { tool_calls: wholeCalls(calls, style, first) }),
  };
  return {
    ...{ id: "chatcmpl-1", object: "chat.completion", created: 1, model },
    choices: [{ index: 0, message, finish_reason: reasonOf(speech, style) }],
    usage: USAGE,
  };
}
