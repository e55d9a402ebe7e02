// Summarises a tool call in one line, and finds the sessions and files that it names. Pure.
// CA1: calls and results are written by models and programs, so data of any shape must be read without an
// error.

import { type Fields, fieldsOf } from "../../../../src/core/json.ts";
import { cut } from "../../../../src/core/text/cut.ts";
import { clockTime, size } from "../../parts/format.ts";
import { joinWords } from "../../parts/words.ts";
import type { Step, ToolResult } from "../items.ts";
import type { Message } from "../thread.ts";

export type CallStep = Extract<Step, { kind: "call" }>;

export type ToolCall = Extract<
  Extract<Message, { role: "assistant" }>["content"][number],
  { type: "toolCall" }
>;

const PARSED_MAX_CHARS = 256 * 1024;
/** Maximum length of a summary, including the ellipsis. */
const SUMMARY_MAX_CHARS = 121;
const FILES_MAX = 50;
/** Maximum depth of the values in a value that are put into words. */
const DEPTH_MAX = 5;
/** Integers between these are times in milliseconds, of the years 2001 to 2096. */
const TIMES_MS = [1e12, 4e12] as const;
const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

export function resultText(result: ToolResult): string {
  return result.content
    .map((block) => (block.type === "text" ? block.text : `[${block.mimeType}, ${size(block.bytes ?? 0)}]`))
    .join("\n");
}

/** Returns the name of the MCP server that refused a call until somebody signs in. */
export function signInOf(result: ToolResult): string | undefined {
  const isRefused = result.isError && resultText(result).includes("it wants a sign-in");
  return isRefused ? /^mcp__(.+?)__/.exec(result.toolName)?.[1] : undefined;
}

/** Parses the JSON of a result's text. Returns undefined for plain text, and for a text that is too long. */
export function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > PARSED_MAX_CHARS) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns whether a value is an id, which tells a reader nothing. */
export function isId(value: unknown): boolean {
  return typeof value === "string" && ID.test(value);
}

/** Returns the name of a field in words: `session key` for `sessionKey`. */
export function nameWords(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])(?![A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`)
    .replaceAll("_", " ");
}

/** Returns a value of any shape in words. */
export function valueWords(value: unknown, depth = 0): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number")
    return value > TIMES_MS[0] && value < TIMES_MS[1] ? clockTime(value, true) : String(value);
  if (depth === DEPTH_MAX) return "…";
  const { type, text } = fieldsOf(value);
  if (type === "text" && typeof text === "string") return text;
  const parts = Array.isArray(value)
    ? value.map((one) => valueWords(one, depth + 1))
    : Object.entries(fieldsOf(value)).map(([name, one]) =>
        isId(one) ? "" : `${nameWords(name)}: ${valueWords(one, depth + 1)}`,
      );
  return joinWords(parts, ", ") || "none";
}

/** Returns the first of these fields that is a text, and not a blank one. */
export function textFrom(fields: Fields, names: readonly string[]): string | undefined {
  const texts = names.map((name) => fields[name]).filter((value) => typeof value === "string");
  return texts.find((text) => text.trim() !== "");
}

/** Names of arguments that tell what a call is about. The first one that is present is used. */
const SUBJECTS = [
  "command",
  "pattern",
  "path",
  "message",
  "task",
  "query",
  "label",
  "sessionKey",
  "name",
  "url",
];

export function summaryOf(call: ToolCall): string {
  const { action, ...given } = call.arguments;
  const sought = textFrom(given, ["pattern", "query"]);
  const place = sought === undefined ? undefined : textFrom(given, ["path"]);
  const named = place === undefined ? textFrom(given, SUBJECTS) : `${sought} in ${place}`;
  const values = Object.values(given);
  const others = values.length > 1 ? valueWords(given) : values.map((one) => valueWords(one)).join("");
  const line = joinWords([action === undefined ? "" : valueWords(action), named ?? others], " ")
    .slice(0, 2 * SUMMARY_MAX_CHARS)
    .replace(/\s+/g, " ")
    .trim();
  return cut(line, SUMMARY_MAX_CHARS);
}

/** Returns the session that the arguments or the result of a call name, for tools about sessions. */
export function sessionOf(call: ToolCall, resultText: string | undefined): string | undefined {
  if (!/^(?:sessions_|session_|subagents)/.test(call.name)) return undefined;
  const result = fieldsOf(resultText === undefined ? undefined : parsed(resultText));
  return textFrom(result, ["childSessionKey", "sessionKey"]) ?? textFrom(call.arguments, ["sessionKey"]);
}

/** Returns the files that a call gave to a sub-agent, with the names in the call's result. */
export function filesOf(call: ToolCall, resultText: string | undefined) {
  if (call.name !== "sessions_spawn" || resultText === undefined) return [];
  const receipt = fieldsOf(parsed(resultText)).attachments;
  const list = Array.isArray(receipt) ? receipt : fieldsOf(receipt).files;
  if (!Array.isArray(list)) return [];
  return list.slice(0, FILES_MAX).flatMap((one) => {
    const { name, bytes } = fieldsOf(one);
    return typeof name === "string" ? [{ name, bytes: typeof bytes === "number" ? bytes : undefined }] : [];
  });
}
