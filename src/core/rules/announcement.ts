// Builds the text that announces a sub-agent's result: `Status:`, `Result:`, `Notes:` and a line of
// statistics.
// The runtime sets the status (I12). No line that a model wrote can look like one of these four labels. If
// the model wrote nothing, the announcement contains the job's result.

import { head } from "../text/cut.ts";
import { plainSign } from "../text/look-alike.ts";
import { LINE_BREAK, QUOTE_MARK } from "../text/safe-text.ts";

/** Outcome of the work. `unknown` means that nothing shows how it ended. */
export type AnnouncedStatus = "ok" | "error" | "timeout" | "aborted" | "unknown";

export interface AnnouncementStats {
  readonly runtimeMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Absent if the prices are unknown. */
  readonly costUsd?: number;
  readonly sessionKey: string;
  readonly sessionId: string;
  /** Absent with PostgreSQL, which keeps no transcript files. */
  readonly transcriptPath?: string;
}

export interface AnnouncementFacts {
  readonly status: AnnouncedStatus;
  /** The last reply, or a substitute text if there was no reply. */
  readonly result: string;
  readonly notes?: string;
  readonly stats: AnnouncementStats;
}

/** Maximum length of the result, and of the notes. The sub-agent's transcript has the complete text. */
const SECTION_CHARS_MAX = 100_000;
const NOTHING = "(none)";
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/;

/** Matches the start of a section as models write it: `Result: …`, `**Notes:** …`, `## Result: …`. */
const SECTION = /^(?:#{1,6} {0,4})?[*_]{0,3}(status|results?|notes?)[*_]{0,3} {0,4}:[*_]{0,3}(.*)$/i;

/** Matches more than `SECTION`: everything that a reader could mistake for a label. */
const LABEL_LIKE = /^[\s>#*_`~|]*(?:status|results?|notes?|stats)[\s*_`~]*:/i;

const MARKS = /^[\s>#*_`~|]+$/;
/** Maximum length of a label with its markup, after repeated marks are reduced to one. */
const LABEL_CHARS_MAX = 40;

/**
 * Returns the start of a line as a hasty reader sees it: plain letters, single marks, no invisible
 * characters. This reveals a disguised label.
 */
function hastyStart(line: string): string {
  let start = "";
  let isBehindMark = false;
  for (const sign of line) {
    const plain = plainSign(sign);
    if (plain === "") continue;
    const isMark = MARKS.test(plain);
    if (!isMark || !isBehindMark) start += plain;
    isBehindMark = isMark;
    if (start.length >= LABEL_CHARS_MAX) break;
  }
  return start;
}

/** Formats a text as the body of a section. No line looks like a label, and every code fence is closed. */
function body(text: string): string[] {
  const whole = text.toWellFormed().trim();
  const kept = head(whole, SECTION_CHARS_MAX);
  const lines = kept
    .split(LINE_BREAK)
    .map((line) => (LABEL_LIKE.test(hastyStart(line)) ? `${QUOTE_MARK}${line}` : line));
  const fence = lines.reduce<string | undefined>(fenceAfter, undefined);
  if (fence !== undefined) lines.push(fence);
  const rest = whole.length - kept.length;
  if (rest > 0) lines.push(`(${rest} more characters are in the sub-agent's transcript.)`);
  return lines;
}

/** Returns the code fence that is open after this line. `open` is the fence that was open before it. */
function fenceAfter(open: string | undefined, line: string): string | undefined {
  const mark = FENCE.exec(line)?.[0].trim();
  if (mark === undefined) return open;
  if (open === undefined) return mark;
  return mark.startsWith(open) && line.trim() === mark ? undefined : open;
}

function section(label: string, text: string): string {
  const lines = body(text);
  if (lines.join("").trim() === "") return `${label}: ${NOTHING}`;
  return lines.length === 1 ? `${label}: ${lines[0]}` : [`${label}:`, ...lines].join("\n");
}

function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes === 0) return `${whole}s`;
  return minutes < 60
    ? `${minutes}m ${whole % 60}s`
    : `${Math.floor(minutes / 60)}h ${minutes % 60}m ${whole % 60}s`;
}

function dollars(cost: number): string {
  return cost > 0 && cost < 0.0001 ? "<$0.0001" : `$${cost.toFixed(4)}`;
}

function statsLine(stats: AnnouncementStats): string {
  const { inputTokens, outputTokens, totalTokens, costUsd, transcriptPath } = stats;
  const parts = [
    `runtime ${duration(stats.runtimeMs)}`,
    `tokens ${inputTokens} in, ${outputTokens} out, ${totalTokens} total`,
    ...(costUsd === undefined ? [] : [`cost ${dollars(costUsd)}`]),
    `session ${stats.sessionKey}`,
    `session id ${stats.sessionId}`,
    ...(transcriptPath === undefined ? [] : [`transcript ${transcriptPath}`]),
  ];
  return `Stats: ${parts.join(" · ")}`;
}

/** Builds the announcement from facts that the runtime knows. */
export function composeAnnouncement(facts: AnnouncementFacts): string {
  return [
    `Status: ${facts.status}`,
    section("Result", facts.result),
    section("Notes", facts.notes ?? ""),
    "",
    statsLine(facts.stats),
  ].join("\n");
}

type Part = "before" | "result" | "notes";

/**
 * Splits a model's announcement into its sections. Only the first occurrence of each label counts, and only
 * outside code blocks.
 */
function partsOf(text: string): Record<Part, string> {
  const parts: Record<Part, string[]> = { before: [], result: [], notes: [] };
  const begun = new Set<Part>();
  let at: Part = "before";
  let fence: string | undefined;
  for (const line of text.split(LINE_BREAK)) {
    const head = fence === undefined ? SECTION.exec(line.trim()) : null;
    fence = fenceAfter(fence, line);
    const label = head?.[1]?.toLowerCase() ?? "";
    const part: Part | undefined = label.startsWith("r")
      ? "result"
      : label.startsWith("n")
        ? "notes"
        : undefined;
    // Drops a status that the model claims, because the runtime sets it. After the start of a section, a
    // `Status:` line is part of the text.
    if (label === "status" && begun.size === 0) continue;
    if (part === undefined || begun.has(part)) {
      parts[at].push(line);
      continue;
    }
    begun.add(part);
    at = part;
    parts[at].push(head?.[2]?.trim() ?? "");
  }
  const joinLines = (part: Part): string => parts[part].join("\n").trim();
  return { before: joinLines("before"), result: joinLines("result"), notes: joinLines("notes") };
}

/** Outcome of a finished job, as it is stored with the job. */
export interface JobOutcome {
  readonly status: AnnouncedStatus;
  readonly result: string;
  readonly notes?: string;
}

/** Combines the text of the model's announce turn with the runtime's status. */
export function announcedFacts(words: string, facts: AnnouncementFacts): AnnouncementFacts {
  const { before, result, notes } = partsOf(words);
  const told = result === "" ? before : result;
  const beside = [result === "" ? "" : before, notes === NOTHING ? "" : notes, facts.notes ?? ""];
  return {
    ...facts,
    result: told === "" ? facts.result : told,
    notes: beside.filter((text) => text.trim() !== "").join("\n"),
  };
}

/** Returns the part of an announcement that is stored with the job. */
export function jobOutcome({ status, result, notes = "" }: AnnouncementFacts): JobOutcome {
  const cut = (text: string): string => head(text.toWellFormed().trim(), SECTION_CHARS_MAX);
  return { status, result: cut(result), ...(notes.trim() === "" ? {} : { notes: cut(notes) }) };
}
