// Owns how a long text becomes several messages of a channel (SPEC 4, Delivery).
// TS1: each part has at most `maxChars` characters (UTF-16 units); no surrogate pair is cut.
// TS2: nothing is lost but white space at a boundary outside code, and one line break inside it.
// TS3: a part that ends inside a code fence closes it, and the next one opens it again.
// TS4: cuts are made at a paragraph, else a line, else a word; inside a word only if it fills a part alone.

/** No channel has a smaller limit; below it fences would leave no room for text. */
const PART_CHARS_MIN = 32;

interface Fence {
  readonly indent: string;
  /** The run of "`" or "~". */
  readonly marker: string;
  /** What opened it, as a line. */
  readonly line: string;
}

/** A place to cut: the part ends before `end`, the next starts at `resume`, inside `fence` if any. */
interface Cut {
  readonly end: number;
  readonly resume: number;
  readonly fence: Fence | undefined;
}

/** From best to worst. `code` is a line boundary inside a fence. */
const TIERS = ["paragraph", "line", "code", "word"] as const;
type Tier = (typeof TIERS)[number];

/** A line that opens or closes a fence. One that would take most of a part is read as ordinary text. */
function readFence(line: string, maxChars: number): { fence: Fence; info: string } | undefined {
  const trimmed = line.trimEnd();
  if (trimmed.length > maxChars / 2) return undefined;
  // `s`: only a line feed ends a line here, so whatever else is in it belongs to it.
  const found = /^([ \t]*)(`{3,}|~{3,})(.*)$/s.exec(trimmed);
  const [, indent = "", marker = "", info = ""] = found ?? [];
  if (found === null || (marker.startsWith("`") && info.includes("`"))) return undefined;
  if (indent.length > maxChars / 8 || marker.length > maxChars / 8) return undefined;
  return { fence: { indent, marker, line: trimmed }, info };
}

/** The fence in force behind a line, and whether the line opened or closed one. */
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

/** Behind the blanks at `at` that end a line, and the blank lines after it. Indentation stays if it fits. */
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

/** One part being filled: text from `start` on, with room up to `limit(fence)`. */
class Part {
  private readonly text: string;
  private readonly maxChars: number;
  private readonly start: number;
  private readonly opened: Fence | undefined;
  private readonly best = new Map<Tier, Cut>();
  private readonly fullest = new Map<Tier, Cut>();
  /** Right behind a line that opened a fence: only if there is no other place. */
  private weak: Cut | undefined;
  /** Behind blanks alone: where they fill a part inside a fence there is no other place at all. */
  private blank: Cut | undefined;

  constructor(text: string, maxChars: number, start: number, opened: Fence | undefined) {
    this.text = text;
    this.maxChars = maxChars;
    this.start = start;
    this.opened = opened;
  }

  /** The last index at which the part may end, if `fence` must be closed there. */
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

  /** The best place to end this part. */
  cut(): Cut {
    const hard = this.walkLines();
    for (const tier of TIERS) {
      const cut = this.fullest.get(tier);
      if (cut !== undefined) return cut;
    }
    for (const tier of TIERS) {
      const cut = this.best.get(tier);
      if (cut !== undefined) return cut;
    }
    const cut = hard ?? this.weak ?? this.blank;
    if (cut === undefined) throw new Error("text-split: no place to cut");
    return cut;
  }

  /** Notes every line boundary that fits; the line that no longer does is cut at a word, or anywhere. */
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
      // White space between two words goes; inside code it stays.
      while (fence === undefined && resume < lineEnd && /\s/.test(this.text.charAt(resume))) resume += 1;
      if (!this.mayCutInLine(lineStart, at, resume, lineEnd, fence)) continue;
      if (this.text.slice(lineStart, at).trim() === "") break;
      this.note("word", { end: at, resume, fence });
      break;
    }
    let at = limit;
    while (at > lineStart + 1 && !this.mayCutInLine(lineStart, at, at, lineEnd, fence)) at -= 1;
    return { end: at, resume: at, fence };
  }

  /** Neither half may look like a fence line that the whole is not, and no surrogate pair is cut. */
  private mayCutInLine(
    lineStart: number,
    at: number,
    resume: number,
    lineEnd: number,
    fence: Fence | undefined,
  ): boolean {
    const before = this.text.charCodeAt(at - 1);
    const after = this.text.charCodeAt(at);
    if (before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff) return false;
    const halves = [this.text.slice(lineStart, at), this.text.slice(resume, lineEnd)];
    return halves.every((half) => !passLine(half, fence, this.maxChars).isMarker);
  }
}

/**
 * The messages that carry `text`, in order. One that fits comes back as it is; white space alone is none.
 * A fence that the text itself leaves open stays open in the last part. `maxChars` is at least 32.
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
    // Blanks alone are no message.
    if (part !== "") parts.push(part);
    start = cut.fence === undefined ? skipBlankLines(text, cut.resume, maxChars) : cut.resume;
    fence = cut.fence;
  }
  return parts;
}
