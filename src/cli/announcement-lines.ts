// Owns how the announcement of a sub-agent is recognised and shown.
// AL1: it is known by the shape that the runtime gives it (core/announcement.ts) and by where it came from,
//      so no other message of a session is shown as a result.

import { safeLine, safeText } from "../core/safe-text.ts";
import { isSubagentKey } from "../core/session-key.ts";
import type { Cli } from "./cli.ts";

export interface Announcement {
  readonly status: string;
  readonly result: string;
  /** Empty: none. */
  readonly notes: string;
  readonly stats: string;
  /** The sub-agent whose job it was. */
  readonly childKey: string;
}

const SHAPE = /^Status: (\w+)\nResult:([\s\S]*?)\nNotes:([\s\S]*?)\n\nStats: (.*)$/;
const NOTHING = "(none)";

/** Undefined: the text is no announcement. `from`: the session that it came from, where that is known. */
export function readAnnouncement(text: string, from?: string): Announcement | undefined {
  const found = SHAPE.exec(text.trim());
  const [, status = "", result = "", notes = "", stats = ""] = found ?? [];
  const childKey = / · session (\S+) · /.exec(stats)?.[1];
  if (childKey === undefined || !isSubagentKey(childKey)) return undefined;
  if (from !== undefined && from !== childKey) return undefined;
  const told = (part: string): string => (part.trim() === NOTHING ? "" : part.trim());
  return { status, result: told(result), notes: told(notes), stats, childKey };
}

/** What it came to, and under it everything that the sub-agent has to say. */
export function announcementLines(paint: Pick<Cli, "style">, announcement: Announcement): string[] {
  const { status, result, notes, stats, childKey } = announcement;
  // Its key stands in the first line already.
  const [figures = ""] = stats.split(" · session ");
  const good = status === "ok";
  const indented = (text: string): string => safeText(text).replaceAll("\n", "\n    ");
  return [
    paint.style(good ? "magenta" : "red", `  « sub-agent ${safeLine(childKey)}: ${safeLine(status)}`),
    ...(result === "" ? [] : [`    ${indented(result)}`]),
    ...(notes === "" ? [] : [`    ${paint.style("dim", "notes:")} ${indented(notes)}`]),
    paint.style("dim", `    ${safeLine(figures)}`),
  ];
}
