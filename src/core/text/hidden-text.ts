// Splits a model's answer into visible and hidden text. Hides thinking, and tool calls that a model wrote as
// text. Works on a stream: each call takes new text and returns the new visible text.
// HT1: the result does not depend on how the text is split into chunks.
// HT2: text in code fences, inline code or quotation marks, and escaped text, is never hidden.
// HT3: at most `HELD_MAX` characters wait for a decision, and the work per character is limited.
// HT4: a closing thinking tag without an opening tag hides everything before it, because the prompt template
//      of some models contains the opening tag. Text that was already shown is withdrawn (`restarted`). A tag
//      that is never closed hides the rest of the text.

import type { AssistantMessage, ThinkingBlock } from "../shapes/message.ts";
import { LongText } from "./text-delta.ts";

const THINKING = ["think", "thinking", "thought", "thoughts", "antthinking"];
const TOOLS = [
  "invoke",
  "function_call",
  "function_calls",
  "function_result",
  "function_results",
  "tool_call",
  "tool_calls",
  "tool_use",
  "tool_result",
  "tool_results",
  "tool_response",
];
const NAME = `(${[...THINKING, ...TOOLS].join("|")})`;
/** Matches the start of the text inside a tag. The tag's name may have a prefix, for example `antml:`. */
const PREFIX = "^[ \\t]{0,4}(/?)[ \\t]{0,4}(?:[a-z][\\w.-]{0,20}:)?";
const TAG = new RegExp(`${PREFIX}${NAME}(?:[\\s/].*)?$`, "is");
/** Matches text that may become the inside of a tag when more text arrives. */
const TAG_BEGUN = new RegExp(`${PREFIX}(?:[a-z][\\w.-]{0,20}|${NAME}[\\s/].*)?$`, "is");
const BRACKET_TAG = /^(\/?)THINK$/;
const BRACKET_TAG_BEGUN = /^\/?(?:T(?:H(?:I(?:NK?)?)?)?)?$/;
/** Matches a marker like `[Tool Call: name]` that is alone at the start of a line. */
const MARKER = /^(?:tool[ _](?:call|use|result)s?[ \t]*:.*|tool result for .*|tool_calls?)$/is;
const MARKER_BEGUN = /^t(?:o(?:o(?:l.*)?)?)?$/is;
const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "\u201c": "\u201d",
  "\u2018": "\u2019",
  "\u201e": "\u201c",
  "\u00ab": "\u00bb",
};
/** Matches the characters between the start of a line and its first word. */
const INDENT = /^[ \t>*+-]*$/;

const TAG_MAX = 300;
const FENCE_LINE_MAX = 200;
const HELD_MAX = 512;

export interface NewText {
  /** New visible text. Append it to the text shown so far. */
  readonly text: string;
  /** True if the text shown so far must be removed first. */
  readonly restarted: boolean;
}

interface Tag {
  readonly name: string;
  readonly closes: boolean;
  readonly empty: boolean;
  readonly length: number;
}

type Found<Value> = Value | "none" | "more";

type Mode =
  | { readonly kind: "text" }
  | { readonly kind: "fence"; readonly mark: string }
  | { readonly kind: "thinking" }
  | { readonly kind: "tool"; readonly name: string }
  /** Hides the arguments after `[Tool Call: …]`, up to the end of their JSON or of the paragraph. */
  | { readonly kind: "arguments"; begun: boolean; depth: number; inString: boolean; escaped: boolean }
  | { readonly kind: "paragraph" };

const TEXT: Mode = { kind: "text" };

export class HiddenText {
  #mode: Mode = TEXT;
  /** Text that is not decided yet. The next decision is about its beginning. */
  #held = "";
  #final = false;
  #visible = new LongText();
  /** Text that became visible since the last call. */
  #fresh = "";
  #hidden: string[] = [];
  #open = "";
  #restarted = false;
  /** True if the current line has only blanks so far. */
  #lineStart = true;
  #previous = "";
  /** True after hidden text. Blanks are dropped until visible text follows. */
  #dropsBlanks = false;
  #hasInk = false;
  /** Number of characters of `#held` that were already searched for the end of a code span. */
  #searched = 0;
  #steps = 0;

  /** All visible text so far. */
  get visible(): string {
    return this.#visible.text;
  }

  /** All hidden text so far. Complete after `end`. */
  get hidden(): string {
    const pieces = this.#open.trim() === "" ? this.#hidden : [...this.#hidden, this.#open];
    return pieces.map((piece) => piece.trim()).join("\n\n");
  }

  /** Number of characters examined so far. */
  get steps(): number {
    return this.#steps;
  }

  push(text: string): NewText {
    return this.#take(text);
  }

  /** Ends the text, and decides all text that is waiting. */
  end(): NewText {
    this.#final = true;
    return this.#take("");
  }

  /** Ends the text, and returns its parts. `whole` is that text: it is returned itself if all is visible. */
  settle(whole: string): SplitText {
    this.end();
    return { visible: this.#visible.is(whole) ? whole : this.visible, hidden: this.hidden };
  }

  #take(text: string): NewText {
    this.#restarted = false;
    this.#fresh = "";
    this.#held += text;
    let at = 0;
    while (at < this.#held.length) {
      const used = this.#step(at);
      if (used === 0) break;
      at += used;
      this.#searched = 0;
    }
    this.#held = this.#held.slice(at);
    return { text: this.#fresh, restarted: this.#restarted };
  }

  /**
   * Decides whether the text at position `at` is visible. Returns the number of decided characters, or 0 if
   * more text is needed.
   */
  #step(at: number): number {
    switch (this.#mode.kind) {
      case "text":
        return this.#inText(at);
      case "fence":
        return this.#inFence(at, this.#mode.mark);
      case "thinking":
        return this.#inTag(at, (tag) => THINKING.includes(tag.name));
      case "tool": {
        const { name } = this.#mode;
        return this.#inTag(at, (tag) => tag.name === name);
      }
      case "arguments":
        return this.#inArguments(at, this.#mode);
      case "paragraph": {
        const next = this.#held.indexOf("\n", at);
        if (next < 0) return this.#hide(at, this.#held.length - at);
        if (next > at) return this.#hide(at, next - at);
        if (at + 1 >= this.#held.length) return this.#final ? this.#hide(at, 1) : 0;
        if (this.#held.charAt(at + 1) !== "\n") return this.#hide(at, 1);
        this.#close();
        return this.#inText(at);
      }
    }
  }

  #inText(at: number): number {
    const char = this.#held.charAt(at);
    switch (char) {
      case "\n":
        this.#show(char);
        this.#lineStart = true;
        return 1;
      case "`":
      case "~":
        return this.#atMark(at, char);
      case "<":
      case "[":
        return this.#atTag(at, char);
      default: {
        const next = /[\n`~<[]/g;
        next.lastIndex = at;
        const end = next.exec(this.#held)?.index ?? this.#held.length;
        const text = this.#held.slice(at, end);
        this.#show(text);
        this.#lineStart &&= INDENT.test(text);
        return text.length;
      }
    }
  }

  /** Shows `length` characters unchanged, as part of a line. */
  #literal(at: number, length: number): number {
    this.#show(this.#held.slice(at, at + length));
    this.#lineStart = false;
    return length;
  }

  #atMark(at: number, char: string): number {
    let run = 1;
    while (this.#held.charAt(at + run) === char && run < HELD_MAX) run += 1;
    this.#steps += run;
    const isOpen = at + run >= this.#held.length && !this.#final;
    if (isOpen && run < HELD_MAX) return 0;
    const mark = char.repeat(run);
    if (run >= 3 && this.#lineStart) {
      const opens = char === "~" ? true : this.#opensFence(at + run);
      if (opens === "more") return 0;
      if (opens) {
        this.#mode = { kind: "fence", mark };
        return this.#literal(at, run);
      }
    }
    return char === "~" ? this.#literal(at, run) : this.#codeSpan(at, run);
  }

  /** Returns whether the line of a backtick fence contains no other backtick. */
  #opensFence(from: number): boolean | "more" {
    const line = this.#held.slice(from, from + FENCE_LINE_MAX);
    this.#steps += line.length;
    const found = /[`\n]/.exec(line)?.[0];
    if (found !== undefined) return found === "\n";
    return line.length === FENCE_LINE_MAX || this.#final ? true : "more";
  }

  /**
   * Handles inline code, which must end on the same line with the same number of backticks. Otherwise its
   * opening backticks are normal text.
   */
  #codeSpan(at: number, run: number): number {
    const limit = at + HELD_MAX;
    const from = Math.max(at + run, this.#searched);
    const marks = /`+|\n/g;
    marks.lastIndex = from;
    for (let found = marks.exec(this.#held); found !== null; found = marks.exec(this.#held)) {
      const end = found.index + found[0].length;
      if (found[0] === "\n" || end > limit) {
        this.#steps += end - from;
        return this.#literal(at, run);
      }
      if (end === this.#held.length && !this.#final) {
        this.#searched = found.index - at;
        return 0;
      }
      if (found[0].length === run) {
        this.#steps += end - from;
        return this.#literal(at, end - at);
      }
    }
    this.#steps += this.#held.length - from;
    if (this.#held.length >= limit || this.#final) return this.#literal(at, run);
    this.#searched = this.#held.length - at;
    return 0;
  }

  #atTag(at: number, char: string): number {
    if (this.#previous === "\\") return this.#literal(at, 1);
    if (char === "[" && this.#lineStart) {
      const marker = this.#markerAt(at);
      if (marker === "more") return 0;
      if (marker !== "none") return marker;
    }
    const tag = this.#tagAt(at);
    if (tag === "more") return 0;
    if (tag === "none") return this.#literal(at, 1);
    const quoted = this.#quotedAt(at, tag);
    if (quoted === "more") return 0;
    if (quoted !== "none") return this.#literal(at, quoted);
    this.#begin(tag, this.#held.slice(at, at + tag.length));
    return tag.length;
  }

  #begin(tag: Tag, written: string): void {
    const thinks = THINKING.includes(tag.name);
    if (tag.closes || tag.empty) {
      if (thinks && tag.closes) {
        this.#open = this.#visible.text;
        this.#restarted = true;
        this.#visible = new LongText();
        this.#fresh = "";
        this.#hasInk = false;
      } else this.#open = written;
      this.#close();
    } else {
      this.#mode = thinks ? { kind: "thinking" } : { kind: "tool", name: tag.name };
      // The hidden text of a tool call keeps its tag, because the call is hard to recognise without it.
      this.#open = thinks ? "" : written;
    }
  }

  #close(): void {
    if (this.#open.trim() !== "") this.#hidden.push(this.#open);
    this.#open = "";
    this.#mode = TEXT;
    this.#lineStart = true;
    this.#previous = "";
    this.#dropsBlanks = !this.#hasInk;
  }

  /** Returns the tag at `at`, if there is one. */
  #tagAt(at: number): Found<Tag> {
    const isAngle = this.#held.charAt(at) === "<";
    const rest = this.#held.slice(at + 1, at + TAG_MAX);
    const end = rest.search(isAngle ? /[<>]/ : /[^/A-Z]/);
    const inside = end < 0 ? rest : rest.slice(0, end);
    this.#steps += inside.length + 1;
    if (end < 0) {
      const begun = isAngle ? TAG_BEGUN.test(inside) : BRACKET_TAG_BEGUN.test(inside);
      return begun && rest.length < TAG_MAX - 1 && !this.#final ? "more" : "none";
    }
    if (rest.charAt(end) !== (isAngle ? ">" : "]")) return "none";
    const [, slash, name = "think"] = (isAngle ? TAG : BRACKET_TAG).exec(inside) ?? [];
    if (slash === undefined) return "none";
    const empty = isAngle && inside.endsWith("/");
    return { name: name.toLowerCase(), closes: slash === "/", empty, length: end + 2 };
  }

  /**
   * If the tag stands in quotation marks, returns the length of the quoted text: of the tag alone, or of the
   * tag with its contents.
   */
  #quotedAt(at: number, tag: Tag): Found<number> {
    const closer = QUOTES[this.#previous];
    if (closer === undefined) return "none";
    const after = at + tag.length;
    if (after >= this.#held.length) return this.#final ? "none" : "more";
    if (this.#held.charAt(after) === closer) return tag.length;
    if (tag.closes) return "none";
    const rest = this.#held.slice(after, at + HELD_MAX);
    const line = /^[^\n]*/.exec(rest)?.[0] ?? "";
    this.#steps += line.length;
    const close = new RegExp(`<[ \\t]*/[^<>]*>${closer}`).exec(line);
    if (close !== null) return tag.length + close.index + close[0].length - 1;
    const isWhole = line.length < rest.length || at + HELD_MAX <= this.#held.length || this.#final;
    return isWhole ? "none" : "more";
  }

  /** Hides thinking or a tool call, up to its closing tag. */
  #inTag(at: number, ends: (tag: Tag) => boolean): number {
    const begins = /[<[]/g;
    begins.lastIndex = at;
    const next = begins.exec(this.#held)?.index ?? this.#held.length;
    if (next > at) return this.#hide(at, next - at);
    const tag = this.#tagAt(at);
    if (tag === "more") return 0;
    if (tag === "none" || !tag.closes || !ends(tag)) return this.#hide(at, 1);
    if (this.#mode.kind === "tool") this.#hide(at, tag.length);
    this.#close();
    return tag.length;
  }

  #hide(at: number, length: number): number {
    this.#open += this.#held.slice(at, at + length);
    this.#steps += length;
    return length;
  }

  /** Hides a `[Tool Call: …]` marker. The next mode hides its arguments. */
  #markerAt(at: number): Found<number> {
    const rest = this.#held.slice(at + 1, at + TAG_MAX);
    const end = rest.search(/[\]\n]/);
    const inside = end < 0 ? rest : rest.slice(0, end);
    this.#steps += inside.length + 1;
    if (end < 0) {
      const begun = MARKER_BEGUN.test(inside) && rest.length < TAG_MAX - 1;
      return begun && !this.#final ? "more" : "none";
    }
    if (rest.charAt(end) !== "]" || !MARKER.test(inside)) return "none";
    // If `(` follows, the brackets belong to a link, not to a marker.
    const after = this.#held.charAt(at + end + 2);
    if (after === "" && !this.#final) return "more";
    if (after === "(") return "none";
    this.#open = "";
    this.#hide(at, end + 2);
    this.#mode = /^tool result/i.test(inside)
      ? { kind: "paragraph" }
      : { kind: "arguments", begun: false, depth: 0, inString: false, escaped: false };
    return end + 2;
  }

  /** Hides blanks, an optional "Arguments:", and one JSON value. */
  #inArguments(at: number, mode: Extract<Mode, { kind: "arguments" }>): number {
    if (mode.begun) return this.#inJson(at, mode);
    const rest = this.#held.slice(at, at + TAG_MAX);
    const lead = /^\s*(?:(?:arguments|input|args)[ \t]*:\s*)?(?=[{[])/i.exec(rest)?.[0];
    this.#steps += rest.length;
    if (lead !== undefined) {
      mode.begun = true;
      return lead === "" ? this.#inJson(at, mode) : this.#hide(at, lead.length);
    }
    const begun = /^\s*(?:[a-z]{1,9}[ \t]*(?::\s*)?)?$/i.test(rest) && rest.length < TAG_MAX;
    if (begun && !this.#final) return 0;
    this.#close();
    // Continues immediately, because a result of 0 would make the caller wait for more text.
    return this.#inText(at);
  }

  #inJson(at: number, mode: Extract<Mode, { kind: "arguments" }>): number {
    let end = at;
    for (; end < this.#held.length; end += 1) {
      const char = this.#held.charAt(end);
      if (mode.inString) {
        if (mode.escaped) mode.escaped = false;
        else if (char === "\\") mode.escaped = true;
        else if (char === '"') mode.inString = false;
      } else if (char === '"') mode.inString = true;
      else if (char === "{" || char === "[") mode.depth += 1;
      else if (char === "}" || char === "]") mode.depth -= 1;
      if (!mode.inString && mode.depth === 0) {
        this.#hide(at, end + 1 - at);
        this.#close();
        return end + 1 - at;
      }
    }
    return this.#hide(at, end - at);
  }

  /** Shows a code fence, which ends with a line that contains only the same mark or a longer one. */
  #inFence(at: number, mark: string): number {
    const end = this.#held.indexOf("\n", at);
    if (!this.#lineStart) {
      const length = (end < 0 ? this.#held.length : end + 1) - at;
      this.#literal(at, length);
      this.#lineStart = end >= 0;
      return length;
    }
    const line = end < 0 ? this.#held.slice(at) : this.#held.slice(at, end);
    const start = line.slice(0, FENCE_LINE_MAX);
    this.#steps += start.length;
    const isWhole = end >= 0 || this.#final || line.length >= FENCE_LINE_MAX;
    const char = mark.charAt(0);
    const [, found = ""] = new RegExp(`^[ \\t>]*(${char}*)[ \\t\\r]*$`).exec(start) ?? [undefined, "-"];
    if (!isWhole && found !== "-") return 0;
    if (found.startsWith(mark)) this.#mode = TEXT;
    this.#literal(at, line.length);
    if (line.length > 0) return line.length;
    this.#literal(at, 1);
    this.#lineStart = true;
    return 1;
  }

  #show(text: string): void {
    this.#steps += text.length;
    this.#previous = text.at(-1) ?? this.#previous;
    const kept = this.#dropsBlanks ? text.trimStart() : text;
    if (kept === "") return;
    this.#dropsBlanks = false;
    this.#hasInk ||= kept.trim() !== "";
    this.#visible.append(kept);
    this.#fresh += kept;
  }
}

/** A text split into its parts. */
export interface SplitText {
  readonly visible: string;
  readonly hidden: string;
}

/** Splits a complete text. */
export function splitHidden(text: string): SplitText {
  const split = new HiddenText();
  split.push(text);
  return split.settle(text);
}

type AssistantContent = AssistantMessage["content"];

/**
 * Returns the content with all hidden text in one thinking block, followed by one block of visible text.
 * `split` contains the parts of the whole text.
 */
export function withoutHidden(
  content: AssistantContent,
  split: (text: string) => SplitText = splitHidden,
): AssistantContent {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const whole = texts.join("\n");
  const { visible, hidden } = split(whole);
  if (visible === whole) return content;
  const first = content.findIndex((block) => block.type === "text");
  return content.flatMap((block, at): AssistantContent => {
    if (block.type !== "text") return [block];
    if (at !== first) return [];
    const thinking: ThinkingBlock[] = hidden === "" ? [] : [{ type: "thinking", thinking: hidden }];
    return visible.trim() === "" ? thinking : [...thinking, { ...block, text: visible }];
  });
}
