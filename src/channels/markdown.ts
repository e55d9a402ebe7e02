// Parses Markdown for platforms that format text with marks (ranges of the text), or show plain text.
// MK1: text without markup stays unchanged, and so do HTML and character references. Only consecutive empty
//      lines are joined, and line ends become `\n`.
// MK2: each mark is within the text and not empty. Marks are sorted and properly nested. A mark is never
//      inside a mark of the same kind, and never splits a character.
// MK3: text that cannot be parsed quickly is returned as plain text.
// MK4: the target of a link is never lost. If a platform has no links, the URL is written out.

import { Lexer, type Token, type Tokens } from "marked";
import { optional } from "../core/optional.ts";
import { isTame } from "../core/text/tame-markdown.ts";

type MarkKind = "bold" | "italic" | "strike" | "code" | "pre" | "link" | "quote";

export interface Mark {
  readonly kind: MarkKind;
  /** Where the mark starts and ends, in UTF-16 units. `to` is the unit after the last one. */
  readonly from: number;
  readonly to: number;
  /** URL of a link, with http, https, mailto or tel. */
  readonly href?: string;
  /** Language of a code block, as one word. Absent if none is given. */
  readonly language?: string;
}

export interface MarkedText {
  readonly text: string;
  /** Sorted by start; a mark comes before the marks inside it. */
  readonly marks: readonly Mark[];
}

/** URLs that may become links. */
const LINK = /^(?:https?:\/\/|mailto:|tel:)[^\s\p{Cc}]+$/iu;
const LANGUAGE = /^[\w+#.-]{1,40}/;
const RULE = "———";

/** The text that is being built, with its marks in the order of their starts. */
interface Page {
  text: string;
  readonly marks: { kind: MarkKind; from: number; to: number; href?: string; language?: string }[];
  /** Kinds of the marks around the current position. */
  readonly open: MarkKind[];
  /** Indentation that the following lines of a list item get. */
  indent: string;
}

function write(page: Page, text: string): void {
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    if (index > 0) page.text += "\n";
    const isFresh = page.text.endsWith("\n") && line !== "";
    page.text += isFresh ? page.indent + line : line;
  });
}

/** Writes `content` and marks it, unless it is already inside a mark of the same kind. */
function writeMarked(
  page: Page,
  mark: { kind: MarkKind; href?: string; language?: string },
  content: () => void,
): void {
  if (page.open.includes(mark.kind)) {
    content();
    return;
  }
  // Write the indentation before the mark begins, so that it is not part of the mark.
  if (page.indent !== "" && page.text.endsWith("\n") && mark.kind !== "pre") page.text += page.indent;
  const whole = { ...mark, from: page.text.length, to: 0 };
  page.marks.push(whole);
  page.open.push(mark.kind);
  content();
  page.open.pop();
  whole.to = page.text.length;
}

/** Writes a link if the URL may become one. Otherwise writes the URL after the text. */
function writeUrl(page: Page, href: string, content: () => void): void {
  if (LINK.test(href) && URL.canParse(href)) {
    writeMarked(page, { kind: "link", href }, content);
    return;
  }
  const from = page.text.length;
  content();
  const words = page.text.slice(from).trim();
  if (href !== "" && words !== href) write(page, words === "" ? href : ` (${href})`);
}

function writeLink(page: Page, { href, tokens }: Tokens.Link | Tokens.Image): void {
  writeUrl(page, href, () => {
    const from = page.text.length;
    writeInline(page, tokens);
    if (page.text.length === from) write(page, href);
  });
}

function writeInline(page: Page, tokens: readonly Token[]): void {
  for (const token of tokens) {
    (SPANS[token.type] ?? asWritten)(page, token);
  }
}

type Writer = (page: Page, token: Tokens.Generic) => void;

const over =
  (kind: MarkKind): Writer =>
  (page, { tokens = [] }) =>
    writeMarked(page, { kind }, () => writeInline(page, tokens));

const SPANS: Readonly<Record<string, Writer>> = {
  strong: over("bold"),
  em: over("italic"),
  del: over("strike"),
  br: (page) => write(page, "\n"),
  codespan: (page, { text }) => writeMarked(page, { kind: "code" }, () => write(page, text)),
  link: (page, token) => writeLink(page, token as Tokens.Link),
  image: (page, token) => writeLink(page, token as Tokens.Image),
  checkbox: (page, { checked }) => write(page, checked === true ? "☑ " : "☐ "),
  escape: (page, { text }) => write(page, text),
  text: (page, { tokens, text }) => (tokens === undefined ? write(page, text) : writeInline(page, tokens)),
};

const asWritten: Writer = (page, { raw }) => write(page, raw.replace(/(?<!\n)\n+$/, ""));

function writeRow(page: Page, cells: readonly Tokens.TableCell[]): void {
  cells.forEach((cell, index) => {
    if (index > 0) write(page, " | ");
    writeInline(page, cell.tokens);
  });
}

const BLOCKS: Readonly<Record<string, Writer>> = {
  heading: over("bold"),
  paragraph: (page, { tokens = [] }) => writeInline(page, tokens),
  blockquote: (page, { tokens = [] }) =>
    writeMarked(page, { kind: "quote" }, () => writeBlocks(page, tokens)),
  code: (page, token) => {
    const { text, lang = "" } = token as Tokens.Code;
    const language = LANGUAGE.exec(lang.trim())?.[0];
    const { indent } = page;
    // Do not indent code in a list item, so that people can copy it.
    page.indent = "";
    writeMarked(page, { kind: "pre", ...optional({ language }) }, () => write(page, text));
    page.indent = indent;
  },
  list: (page, token) => {
    const { ordered, start, items, loose } = token as Tokens.List;
    const { indent } = page;
    items.forEach((item, index) => {
      if (index > 0) write(page, loose ? "\n\n" : "\n");
      const behind = /^\s*\d+([.)])/.exec(item.raw)?.[1] ?? ".";
      write(page, ordered ? `${Number(start) + index}${behind} ` : "• ");
      page.indent = `${indent}${ordered ? "   " : "  "}`;
      writeBlocks(page, item.tokens);
      page.indent = indent;
    });
  },
  table: (page, token) => {
    const { header, rows } = token as Tokens.Table;
    writeMarked(page, { kind: "bold" }, () => writeRow(page, header));
    for (const row of rows) {
      write(page, "\n");
      writeRow(page, row);
    }
  },
  hr: (page) => write(page, RULE),
};

/** Writes each block on its own lines. Keeps an empty line between two blocks if the source has one. */
function writeBlocks(page: Page, tokens: readonly Token[]): void {
  let before: Token | undefined;
  let isParted = false;
  for (const token of tokens) {
    if (token.type === "space") {
      isParted = true;
      continue;
    }
    if (before !== undefined && before.type !== "checkbox") {
      write(page, isParted || /\n[ \t]*\n$/.test(before.raw) ? "\n\n" : "\n");
    }
    isParted = false;
    (BLOCKS[token.type] ?? SPANS[token.type] ?? asWritten)(page, token);
    before = token;
  }
}

/** Returns whether this offset is inside a surrogate pair, and so would split a character. */
function isWithinCharacter(text: string, at: number): boolean {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1));
}

/**
 * Parses Markdown. Returns the text unchanged and without marks if it is nested too deeply or takes too long.
 */
export function readMarkdown(markdown: string): MarkedText {
  const source = markdown.toWellFormed();
  const plain: MarkedText = { text: source, marks: [] };
  if (!isTame(source)) return plain;
  const page: Page = { text: "", marks: [], open: [], indent: "" };
  try {
    writeBlocks(page, new Lexer({ gfm: true }).lex(source));
  } catch {
    // The text is nested too deeply for the parser.
    return plain;
  }
  const { text } = page;
  // The text consists only of markup, for example of a list bullet. Show its source instead of an empty text.
  if (/^[•\s]*$/.test(text)) return plain;
  const marks = page.marks
    .filter(({ from, to }) => from < to && !isWithinCharacter(text, from) && !isWithinCharacter(text, to))
    .sort((one, other) => one.from - other.from || other.to - one.to);
  return { text, marks };
}

/** Returns whether the text of a link shows the link's URL already. */
function tellsItself(words: string, href: string): boolean {
  const bare = (address: string): string =>
    address
      .trim()
      .replace(/^(?:https?:\/\/|mailto:|tel:)/i, "")
      .replace(/\/$/, "");
  return bare(words) === bare(href);
}

interface Insertion {
  readonly at: number;
  readonly text: string;
}

const isLinkOrQuote = ({ kind }: Mark): boolean => kind === "link" || kind === "quote";

/** Replaces marks with text if the platform does not support them. Default: links and quotes are replaced. */
export function spelledOut(
  marked: MarkedText,
  isSpelled: (mark: Mark) => boolean = isLinkOrQuote,
): MarkedText {
  const insertions = marked.marks.filter(isSpelled).flatMap(({ kind, from, to, href = "" }): Insertion[] => {
    const words = marked.text.slice(from, to);
    if (kind === "link") return tellsItself(words, href) ? [] : [{ at: to, text: ` (${href})` }];
    if (kind !== "quote") return [];
    // In a list, indent all lines of a quote like its first line.
    const column = from - (marked.text.lastIndexOf("\n", from - 1) + 1);
    const starts = [...words.matchAll(/\n( *)/g)].map(
      ({ index, 1: spaces = "" }) => from + index + 1 + Math.min(spaces.length, column),
    );
    return [from, ...starts].map((at) => ({ at, text: "> " }));
  });
  const added = insertions.sort((one, other) => one.at - other.at);
  const pieces: string[] = [];
  let end = 0;
  for (const { at, text } of added) {
    pieces.push(marked.text.slice(end, at), text);
    end = at;
  }
  const shiftOffset = (at: number, counts: (insertion: Insertion) => boolean): number =>
    added.filter(counts).reduce((sum, { text }) => sum + text.length, at);
  const marks = marked.marks
    .filter((mark) => !isSpelled(mark))
    .map((mark) => ({
      ...mark,
      from: shiftOffset(mark.from, ({ at }) => at <= mark.from),
      to: shiftOffset(mark.to, ({ at }) => at < mark.to),
    }));
  return { text: pieces.join("") + marked.text.slice(end), marks };
}

/** Converts the text to plain text, without marks. */
export function plainText(marked: MarkedText): string {
  return spelledOut(marked).text;
}
