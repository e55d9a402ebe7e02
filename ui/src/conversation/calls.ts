// Owns what a tool call says in one line, and which sessions and files it speaks of. Pure.
// CA1: what a call and its result hold is data of models and programs: any shape is read without failing.

import type { Message } from "./thread.ts";

export type ToolCall = Extract<
  Extract<Message, { role: "assistant" }>["content"][number],
  { type: "toolCall" }
>;

/** Characters of a result that is looked into. */
const PARSED_MAX_CHARS = 256 * 1024;
const SUMMARY_MAX_CHARS = 120;
const FILES_MAX = 50;

interface NamedFile {
  readonly name: string;
  readonly bytes: number | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** JSON that a result's text holds. Undefined: it is text. */
export function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > PARSED_MAX_CHARS) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textFrom(fields: Fields, names: readonly string[]): string | undefined {
  return names.map((name) => fields[name]).find((value) => typeof value === "string" && value !== "") as
    | string
    | undefined;
}

/** What a person would name first. */
const SUBJECTS = ["command", "path", "message", "task", "query", "label", "sessionKey", "name", "url"];

/** What a call is about, in a line. */
export function summaryOf(call: ToolCall): string {
  const named = textFrom(call.arguments, SUBJECTS);
  const text = named ?? (Object.keys(call.arguments).length === 0 ? "" : JSON.stringify(call.arguments));
  const line = text
    .slice(0, 2 * SUMMARY_MAX_CHARS)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= SUMMARY_MAX_CHARS ? line : `${line.slice(0, SUMMARY_MAX_CHARS).toWellFormed()}…`;
}

/** The session that a session tool speaks of, as its arguments or its result name it. */
export function sessionOf(call: ToolCall, resultText: string | undefined): string | undefined {
  if (!/^(?:sessions_|session_|subagents)/.test(call.name)) return undefined;
  const result = fieldsOf(resultText === undefined ? undefined : parsed(resultText));
  return textFrom(result, ["childSessionKey", "sessionKey"]) ?? textFrom(call.arguments, ["sessionKey"]);
}

/** The files that a call handed to a sub-agent, as the receipt names them. */
export function filesOf(call: ToolCall, resultText: string | undefined): NamedFile[] {
  if (call.name !== "sessions_spawn" || resultText === undefined) return [];
  const receipt = fieldsOf(parsed(resultText)).attachments;
  const list = Array.isArray(receipt) ? receipt : fieldsOf(receipt).files;
  if (!Array.isArray(list)) return [];
  return list.slice(0, FILES_MAX).flatMap((one) => {
    const { name, bytes } = fieldsOf(one);
    return typeof name === "string" ? [{ name, bytes: typeof bytes === "number" ? bytes : undefined }] : [];
  });
}
