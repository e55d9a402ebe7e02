// Recognises and formats the announcement of a sub-agent.
// AL1: an announcement is recognised by its format (core/rules/announcement.ts) and by its sender, so no
//      other message can be taken for a sub-agent's result.

import { isSubagentKey } from "../core/shapes/session-key.ts";
import { safeLine, safeText } from "../core/text/safe-text.ts";
import type { Cli } from "./cli.ts";

export interface Announcement {
  readonly status: string;
  readonly result: string;
  /** Empty if the announcement has no notes. */
  readonly notes: string;
  readonly stats: string;
  /** Session key of the sub-agent. */
  readonly childKey: string;
}

const SHAPE = /^Status: (\w+)\nResult:([\s\S]*?)\nNotes:([\s\S]*?)\n\nStats: (.*)$/;
const NOTHING = "(none)";

/** Parses an announcement. Returns undefined if the text is not one. `from`: its sender, if known. */
export function readAnnouncement(text: string, from?: string): Announcement | undefined {
  const found = SHAPE.exec(text.trim());
  const [, status = "", result = "", notes = "", stats = ""] = found ?? [];
  const childKey = / · session (\S+) · /.exec(stats)?.[1];
  if (childKey === undefined || !isSubagentKey(childKey)) return undefined;
  if (from !== undefined && from !== childKey) return undefined;
  const content = (part: string): string => (part.trim() === NOTHING ? "" : part.trim());
  return { status, result: content(result), notes: content(notes), stats, childKey };
}

/** Formats the status, the result, the notes and the figures of an announcement. */
export function announcementLines(paint: Pick<Cli, "style">, announcement: Announcement): string[] {
  const { status, result, notes, stats, childKey } = announcement;
  // Leave out the session key of the figures, because the announcement's first line already shows it.
  const [figures = ""] = stats.split(" · session ");
  const good = status === "ok";
  const indent = (text: string): string => safeText(text).replaceAll("\n", "\n    ");
  return [
    paint.style(good ? "magenta" : "red", `  « sub-agent ${safeLine(childKey)}: ${safeLine(status)}`),
    ...(result === "" ? [] : [`    ${indent(result)}`]),
    ...(notes === "" ? [] : [`    ${paint.style("dim", "notes:")} ${indent(notes)}`]),
    paint.style("dim", `    ${safeLine(figures)}`),
  ];
}
