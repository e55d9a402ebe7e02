// Formats one message of a transcript: speaker, text, tool calls.
// A reply that is meant for nobody is shown as `(silent)`, never as the token that the model wrote. No line
// of a message can look like another speaker's.

import { fieldsOf, isObject, jsonOf } from "../core/json.ts";
import { resultWords } from "../core/result-words.ts";
import { HEADING, isSilent } from "../core/rules/turn-rules.ts";
import { type Message, type Provenance, textOf, toolCallsOf } from "../core/shapes/message.ts";
import { safeLine, safeText } from "../core/text/safe-text.ts";
import { announcementLines, readAnnouncement } from "./announcement-lines.ts";
import type { Cli } from "./cli.ts";
import { excerpt, size } from "./layout.ts";

const ARGUMENTS_CHARS_MAX = 160;
const RESULT_CHARS_MAX = 200;

/** Indents all lines after the first, so that none of them looks like the start of a message. */
export const below = (text: string): string => safeText(text).replaceAll("\n", "\n  ");

type Painter = Pick<Cli, "style">;

/** Describes the sender of a message that no person wrote. */
function sourceOf(provenance: Provenance): string {
  const source = "sourceSessionKey" in provenance ? provenance.sourceSessionKey : undefined;
  if (provenance.kind === "inter_session") return `from ${provenance.sourceSessionKey}`;
  return source === undefined ? provenance.kind : `${provenance.kind} of ${source}`;
}

/**
 * Returns the label of a reply turn. It is empty for round 1, in which the other session answers the message
 * itself.
 */
export function turnLabel(turn: number, turnsMax: number): string {
  return turn <= 2 ? "" : ` (reply turn ${turn - 2} of ${turnsMax})`;
}

export function callLine(paint: Painter, name: string, args: unknown): string {
  const shown = excerpt(JSON.stringify(args) ?? "", ARGUMENTS_CHARS_MAX);
  return `${paint.style("yellow", `  · ${safeLine(name)}`)} ${paint.style("dim", shown)}`;
}

/** Formats a tool's result on one line. A file for people is shown with its name and size. */
export function resultLine(paint: Painter, text: string, isError: boolean, tool?: string): string {
  const json = jsonOf(text);
  const { name, bytes, note } = fieldsOf(tool === "send_file" && !isError ? json : undefined);
  if (typeof name === "string" && typeof bytes === "number") {
    const more = typeof note === "string" ? ` ${excerpt(note, RESULT_CHARS_MAX)}` : "";
    const file = `file ${safeLine(name)} (${size(bytes)})`;
    return `    → ${paint.style("bold", file)}${paint.style("dim", more)}`;
  }
  return paint.style(
    isError ? "red" : "dim",
    `    ${isError ? "✗" : "→"} ${excerpt(isObject(json) ? resultWords(json) : text, RESULT_CHARS_MAX)}`,
  );
}

/** Formats a message from another session or from the runtime. */
export function incomingLine(paint: Painter, from: string, text: string): string {
  return `${paint.style("magenta", `  « ${safeLine(from)}:`)} ${below(text)}`;
}

/** Formats a message that has the role `user` although no person wrote it. */
export function arrivedLines(paint: Painter, provenance: Provenance, text: string): string[] {
  if (provenance.kind === "inter_session" && provenance.sourceTool === "sessions_spawn") {
    const announcement = readAnnouncement(text, provenance.sourceSessionKey);
    if (announcement !== undefined) return announcementLines(paint, announcement);
    if (text === `${HEADING.subagentAnnounce}.`) {
      const requester = safeLine(provenance.sourceSessionKey);
      return [paint.style("dim", `  ↔ the job is done; the next text is its announcement to ${requester}`)];
    }
  }
  return [incomingLine(paint, sourceOf(provenance), text)];
}

export function messageLines(paint: Painter, message: Message): string[] {
  switch (message.role) {
    case "user": {
      const text = textOf(message);
      if (message.provenance !== undefined) return arrivedLines(paint, message.provenance, text);
      const name = message.senderName ?? "you";
      return [`${paint.style("cyan", `${safeLine(name)}:`)} ${below(text)}`];
    }
    case "assistant": {
      const text = textOf(message);
      const calls = toolCallsOf(message).map((call) => callLine(paint, call.name, call.arguments));
      const failed =
        message.errorMessage === undefined ? [] : [paint.style("red", `  ✗ ${below(message.errorMessage)}`)];
      const said = text === "" ? [] : [`${paint.style("green", "agent:")} ${below(text)}`];
      const silent = text !== "" && isSilent(text);
      return [...(silent ? [paint.style("dim", "  (silent)")] : said), ...calls, ...failed];
    }
    case "toolResult":
      return [resultLine(paint, textOf(message), message.isError, message.toolName)];
  }
}
