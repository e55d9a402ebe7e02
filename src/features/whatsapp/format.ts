// Converts Markdown to WhatsApp's marks: *bold*, _italic_, ~struck~, `code` and ```code```.
// WF1: a mark is written only where WhatsApp recognises it: within a line, around whole words. Elsewhere the
//      mark is left out.
// WF2: an invisible character is put next to each character that WhatsApp would mistake for a mark. Other
//      characters and all URLs stay unchanged.
// WF3: a text that would become too long is sent without marks.

import { type Mark, readMarkdown, spelledOut } from "../../channels/markdown.ts";

/** The platform's limit for one text. */
const TEXT_MAX_CHARS = 4096;
/** The word joiner, an invisible character. WhatsApp does not take a sign next to it for a mark. */
const JOINER = "\u2060";

const SIGNS: Readonly<Partial<Record<Mark["kind"], string>>> = { bold: "*", italic: "_", strike: "~" };
const ADDRESS = /\b(?:https?:\/\/|www\.)[^\s`]+/gi;
const SIGN = /[*_~`]/;
const WORD = /[\p{L}\p{N}]/u;
const BLANK = /^\s?$/;

/** One character of the output, or a formatting mark. */
interface Cell {
  readonly text: string;
  /**
   * `sign`: a mark that Parley adds. `fixed`: a character that is not escaped, because it is part of code or
   * of a URL, or is escaped already.
   */
  readonly kind: "plain" | "sign" | "fixed";
}

type IsFixed = (index: number) => boolean;

/** The formatting marks to insert before each character of the text. */
class Signs {
  readonly #ends = new Map<number, string[]>();
  readonly #begins = new Map<number, string[]>();

  /**
   * Adds a pair of marks. Outer pairs must be added first, so that marks at the same place are closed in the
   * right order.
   */
  add(from: number, to: number, sign: string): void {
    this.#begins.set(from, [...(this.#begins.get(from) ?? []), sign]);
    this.#ends.set(to, [sign, ...(this.#ends.get(to) ?? [])]);
  }

  at(index: number): readonly string[] {
    return [...(this.#ends.get(index) ?? []), ...(this.#begins.get(index) ?? [])];
  }
}

/** Splits the range of a mark into lines, without the spaces at their ends. Spaces in code are kept. */
function lines(text: string, { from, to }: Mark, isFixed: IsFixed): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  const isBlank = (index: number): boolean => !isFixed(index) && /\s/.test(text.charAt(index));
  for (let start = from; start < to; ) {
    const lineBreak = text.indexOf("\n", start);
    const end = lineBreak < 0 ? to : Math.min(lineBreak, to);
    let [first, last] = [start, end];
    while (first < last && isBlank(first)) first += 1;
    while (first < last && isBlank(last - 1)) last -= 1;
    if (first < last) found.push({ from: first, to: last });
    start = end + 1;
  }
  return found;
}

/**
 * Returns whether a mark can be shown as code. Its text must not be blank, and inline code must be on one
 * line.
 */
function isCode(text: string, { kind, from, to }: Mark): boolean {
  const code = text.slice(from, to);
  return (kind === "pre" || (kind === "code" && !code.includes("\n"))) && code.trim() !== "";
}

function signsOf(text: string, marks: readonly Mark[], isFixed: IsFixed): Signs {
  const signs = new Signs();
  for (const mark of marks) {
    if (isCode(text, mark)) {
      const needsThree = mark.kind === "pre" || text.slice(mark.from, mark.to).includes("`");
      signs.add(mark.from, mark.to, needsThree ? "```" : "`");
    }
    const sign = SIGNS[mark.kind];
    if (sign === undefined) continue;
    for (const { from, to } of lines(text, mark, isFixed)) {
      const around = text.charAt(from - 1) + text.charAt(to);
      // Leave out a mark next to a literal sign, because it would be ambiguous.
      const isClear = !SIGN.test(around + text.charAt(from) + text.charAt(to - 1));
      if (isClear && !WORD.test(around)) signs.add(from, to, sign);
    }
  }
  return signs;
}

/**
 * Returns a function that tells whether a character is part of code or of a URL, and so must not be escaped.
 */
function fixedPlaces(text: string, marks: readonly Mark[]): IsFixed {
  const places = [
    ...marks.filter((mark) => isCode(text, mark)),
    ...[...text.matchAll(ADDRESS)].map(({ index, 0: found }) => ({ from: index, to: index + found.length })),
  ];
  const fixed = new Uint8Array(text.length);
  for (const { from, to } of places) fixed.fill(1, from, to);
  return (index) => fixed[index] === 1;
}

function cellsOf(text: string, marks: readonly Mark[]): Cell[] {
  const isFixed = fixedPlaces(text, marks);
  const signs = signsOf(text, marks, isFixed);
  const cells: Cell[] = [];
  for (let index = 0; index <= text.length; index += 1) {
    for (const sign of signs.at(index)) cells.push({ text: sign, kind: "sign" });
    if (index === text.length) break;
    const isInside = isFixed(index);
    // A backtick in code is escaped if it is next to another backtick or to the end of the code: it would end
    // the code.
    const isTick = isInside && text.charAt(index) === "`";
    const before = isTick && !isFixed(index - 1) ? JOINER : "";
    const after = isTick && (text.charAt(index + 1) === "`" || !isFixed(index + 1)) ? JOINER : "";
    cells.push({ text: `${before}${text.charAt(index)}${after}`, kind: isInside ? "fixed" : "plain" });
  }
  return cells;
}

/** Escapes literal signs of one kind if they would become marks. `cells`: one line. */
function keepLiteral(cells: Cell[], sign: string): void {
  const textAt = (index: number): string => cells[index]?.text ?? "";
  const isSign = (index: number): boolean => textAt(index) === sign && cells[index]?.kind !== "fixed";
  const opens = (index: number): boolean =>
    isSign(index) && !WORD.test(textAt(index - 1)) && !BLANK.test(textAt(index + 1));
  const closes = (index: number): boolean =>
    isSign(index) && !BLANK.test(textAt(index - 1)) && !WORD.test(textAt(index + 1));
  const isPlain = (index: number): boolean => cells[index]?.kind === "plain";
  const places = cells.flatMap((_, index) => (isSign(index) ? [index] : []));
  const openings = places.filter(opens);
  const closings = places.filter(closes);
  const pairs = (first: (index: number) => boolean, last: (index: number) => boolean): boolean =>
    (openings.find(first) ?? cells.length) < (closings.findLast(last) ?? -1);
  const every = (): boolean => true;
  if (!pairs(isPlain, every) && !pairs(every, isPlain)) return;
  // Escape all signs in the line. If only one were escaped, its partner would form a pair with the next sign.
  for (const index of places) {
    const isAlone = BLANK.test(textAt(index - 1)) && BLANK.test(textAt(index + 1));
    if (isPlain(index) && !isAlone) cells[index] = { text: `${JOINER}${sign}${JOINER}`, kind: "fixed" };
  }
}

/** Escapes literal backticks, because two of them would become code, even on different lines. */
function keepBackticks(cells: Cell[]): void {
  const places = cells.flatMap(({ text, kind }, index) => (text === "`" && kind === "plain" ? [index] : []));
  if (places.length < 2 && !cells.some(({ text, kind }) => kind === "sign" && text.startsWith("`"))) return;
  for (const index of places) cells[index] = { text: `\`${JOINER}`, kind: "fixed" };
}

function eachLine(cells: readonly Cell[]): Cell[][] {
  const found: Cell[][] = [[]];
  for (const cell of cells) {
    found.at(-1)?.push(cell);
    if (cell.text === "\n") found.push([]);
  }
  return found;
}

/** Converts Markdown. `sent`: the text to send. `seen`: the text that people see. */
export function formatText(markdown: string): { readonly sent: string; readonly seen: string } {
  const { text, marks } = spelledOut(readMarkdown(markdown));
  const cells = cellsOf(text, marks);
  keepBackticks(cells);
  const sent = eachLine(cells)
    .map((line) => {
      for (const sign of ["*", "_", "~"]) keepLiteral(line, sign);
      return line.map((cell) => cell.text).join("");
    })
    .join("");
  if (sent.length <= TEXT_MAX_CHARS) return { sent, seen: text };
  const plain = text.length <= TEXT_MAX_CHARS ? text : markdown;
  return { sent: plain, seen: plain };
}
