// Splits a long text into several messages for a channel.
// TS1: each part has at most `maxChars` characters (UTF-16 units). A grapheme that fits is not split.
// TS2: nothing is lost except white space at a boundary, or one line break if the boundary is inside code.
// TS3: a part that ends inside a code fence closes the fence, and the next part opens it again.
// TS4: a text is cut after a paragraph if possible, else after a line, else after a word. A word is only
//      split if it alone does not fit into a part.

import { cutAt, withoutHalf } from "./cut.ts";

/**
 * Minimum length of a part. No channel has a smaller limit, and in a shorter part, fence lines would leave no
 * room for text.
 */
const PART_CHARS_MIN = 32;

interface Fence {
  readonly indent: string;
  /** The sequence of "`" or "~" that opened it. */
  readonly marker: string;
  /** The whole line that opened it. */
  readonly line: string;
}

/**
 * A position for a cut. The part ends before `end`, and the next part starts at `resume`. `fence` is set if
 * the cut is inside that code fence.
 */
interface Cut {
  readonly end: number;
  readonly resume: number;
  readonly fence: Fence | undefined;
}

/** Kinds of cuts, the best first. `code` is the end of a line inside a fence. */
const TIERS = ["paragraph", "line", "code", "word"] as const;
type Tier = (typeof TIERS)[number];

/**
 * Parses a line that opens or closes a fence. A line that would fill most of a part is treated as ordinary
 * text.
 */
function readFence(line: string, maxChars: number): { fence: Fence; info: string } | undefined {
  const trimmed = line.trimEnd();
  if (trimmed.length > maxChars / 2) return undefined;
  // Flag `s` makes `.` match U+2028 and other separators, too: in this file only a line feed ends a line.
  const found = /^([ \t]*)(`{3,}|~{3,})(.*)$/s.exec(trimmed);
  const [, indent = "", marker = "", info = ""] = found ?? [];
  if (found === null || (marker.startsWith("`") && info.includes("`"))) return undefined;
  if (indent.length > maxChars / 8 || marker.length > maxChars / 8) return undefined;
  return { fence: { indent, marker, line: trimmed }, info };
}

/** Returns the fence that is open after a line, and whether the line opened or closed it. */
function passLine(
  line: string,
  inside: Fence | undefined,
  maxChars: number,
): { fence: Fence | undefined; isMarker: boolean } {
  const read = readFence(line, maxChars);
  if (read === undefined) return { fence: inside, isMarker: false };
  if (inside === undefined) return { fence: read.fence, isMarker: true };
  const closes = read.info.trim() === "" && read.fence.marker.startsWith(inside.marker);
  return closes ? { fence: undefined, isMarker: true } : { fence: inside, isMarker: false };
}

const closingOf = (fence: Fence | undefined): string =>
  fence === undefined ? "" : `\n${fence.indent}${fence.marker}`;

function reopeningOf(fence: Fence | undefined, maxChars: number): string {
  if (fence === undefined) return "";
  const line = fence.line.length <= maxChars / 4 ? fence.line : fence.indent + fence.marker;
  return `${line}\n`;
}

/** Skips blanks at the end of a line, and the blank lines after it. Keeps the indentation if it fits. */
function skipBlankLines(text: string, at: number, maxChars: number): number {
  let start = at;
  let next = at;
  for (; next < text.length && /\s/.test(text.charAt(next)); next += 1) {
    if (text.charAt(next) === "\n") start = next + 1;
  }
  return next - start < maxChars ? start : next;
}

function isBlankAt(text: string, at: number): boolean {
  const end = text.indexOf("\n", at);
  return at < text.length && text.slice(at, end < 0 ? text.length : end).trim() === "";
}

/** One part: the text from `start` on, up to `limit(fence)`. */
class Part {
  private readonly text: string;
  private readonly maxChars: number;
  private readonly start: number;
  private readonly opened: Fence | undefined;
  private readonly best = new Map<Tier, Cut>();
  private readonly fullest = new Map<Tier, Cut>();
  /** Cut directly after a line that opened a fence. Used only if there is no other cut. */
  private weak: Cut | undefined;
  /** Cut after blanks, the last resort if blanks fill a part inside a fence. */
  private blank: Cut | undefined;

  constructor(text: string, maxChars: number, start: number, opened: Fence | undefined) {
    this.text = text;
    this.maxChars = maxChars;
    this.start = start;
    this.opened = opened;
  }

  /** Returns the last index at which the part may end if `fence` must be closed there. */
  private limit(fence: Fence | undefined): number {
    const reopening = reopeningOf(this.opened, this.maxChars).length;
    return this.start + this.maxChars - reopening - closingOf(fence).length;
  }

  private note(tier: Tier, cut: Cut): void {
    if (this.text.slice(this.start, cut.end).trim() === "") {
      this.blank = cut;
      return;
    }
    this.best.set(tier, cut);
    const isFull = (cut.end - this.start) * 3 >= this.limit(cut.fence) - this.start;
    if (isFull) this.fullest.set(tier, cut);
  }

  /** Returns the best position to cut this part. */
  cut(): Cut {
    const hard = this.walkLines();
    for (const cuts of [this.fullest, this.best]) {
      const tier = TIERS.find((one) => cuts.has(one));
      const found = tier && cuts.get(tier);
      if (found !== undefined) return found;
    }
    const cut = hard ?? this.weak ?? this.blank;
    if (cut === undefined) throw new Error("splitText: found no position at which the text can be cut");
    return cut;
  }

  /**
   * Records the end of every line that fits. A line that does not fit is cut after a word, or anywhere if
   * there is no such place.
   */
  private walkLines(): Cut | undefined {
    const { text } = this;
    let fence = this.opened;
    for (let lineStart = this.start; lineStart < text.length; ) {
      const lineBreak = text.indexOf("\n", lineStart);
      const lineEnd = lineBreak < 0 ? text.length : lineBreak;
      const line = text.slice(lineStart, lineEnd);
      const passed = passLine(line, fence, this.maxChars);
      const end = passed.isMarker ? lineStart + line.trimEnd().length : lineEnd;
      if (end > this.limit(passed.fence)) {
        return passed.isMarker ? undefined : this.cutInLine(lineStart, lineEnd, fence);
      }
      const opens = passed.isMarker && passed.fence !== undefined;
      const cut = { end, resume: Math.min(lineEnd + 1, text.length), fence: passed.fence };
      if (opens) this.weak = cut;
      else if (passed.fence !== undefined) this.note("code", cut);
      else this.note(isBlankAt(text, cut.resume) || line.trim() === "" ? "paragraph" : "line", cut);
      fence = passed.fence;
      lineStart = lineEnd + 1;
    }
    return undefined;
  }

  private cutInLine(lineStart: number, lineEnd: number, fence: Fence | undefined): Cut | undefined {
    const limit = this.limit(fence);
    if (limit <= lineStart) return undefined;
    for (let at = limit; at > lineStart; at -= 1) {
      if (!/\s/.test(this.text.charAt(at)) && !/\s/.test(this.text.charAt(at - 1))) continue;
      let resume = at;
      // White space at a cut is dropped, but kept inside code.
      while (fence === undefined && resume < lineEnd && /\s/.test(this.text.charAt(resume))) resume += 1;
      if (!this.mayCutInLine(lineStart, at, resume, lineEnd, fence)) continue;
      if (this.text.slice(lineStart, at).trim() === "") break;
      this.note("word", { end: at, resume, fence });
      break;
    }
    let at = cutAt(this.text, limit, lineStart);
    while (at > lineStart && !this.mayCutInLine(lineStart, at, at, lineEnd, fence))
      at = cutAt(this.text, at - 1, lineStart);
    // No sign of the line fits.
    if (at === lineStart) at += withoutHalf(this.text.slice(lineStart, limit)).length;
    return { end: at, resume: at, fence };
  }

  /** Neither half may look like the line of a fence, and no grapheme is split. */
  private mayCutInLine(
    lineStart: number,
    at: number,
    resume: number,
    lineEnd: number,
    fence: Fence | undefined,
  ): boolean {
    if (cutAt(this.text, at, lineStart) < at) return false;
    const halves = [this.text.slice(lineStart, at), this.text.slice(resume, lineEnd)];
    return halves.every((half) => !passLine(half, fence, this.maxChars).isMarker);
  }
}

/**
 * Returns the messages that contain `text`, in order. A text that fits is returned unchanged. White space
 * alone results in no message. If the text leaves a fence open, the last part leaves it open, too. `maxChars`
 * must be at least 32.
 */
export function splitText(text: string, maxChars: number): string[] {
  if (maxChars < PART_CHARS_MIN)
    throw new RangeError(`splitText: maxChars must be at least ${PART_CHARS_MIN}`);
  if (text.trim() === "") return [];
  if (text.length <= maxChars) return [text];
  const parts: string[] = [];
  let start = skipBlankLines(text, 0, maxChars);
  let fence: Fence | undefined;
  const end = text.trimEnd().length;
  while (start < end) {
    const reopening = reopeningOf(fence, maxChars);
    if (reopening.length + text.length - start <= maxChars) {
      parts.push(reopening + text.slice(start));
      break;
    }
    const cut = new Part(text, maxChars, start, fence).cut();
    const body = text.slice(start, cut.end);
    const part = reopening + (cut.fence === undefined ? body.trimEnd() : body) + closingOf(cut.fence);
    // White space alone is not a message.
    if (part !== "") parts.push(part);
    start = cut.fence === undefined ? skipBlankLines(text, cut.resume, maxChars) : cut.resume;
    fence = cut.fence;
  }
  return parts;
}
