// Turns text of people and models into DOM elements. Only this file does this. Text that takes too long to
// parse is shown as plain text.
// MD1: no text becomes HTML. Each token becomes one of the elements below, without an id or a style. HTML in
//      a text is shown as text. Links lead only to http, https and mailto. Nothing is loaded or run.

import { Lexer, type Token, type Tokens } from "marked";
import { head } from "../../../../src/core/text/cut.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { isTame } from "../../../../src/core/text/tame-markdown.ts";
import { after } from "../../clock.ts";
import { copyText } from "./copy.tsx";
import { lastBlockAt } from "./last-block.ts";

const LINK = /^(?:https?:|mailto:)/i;
const LANGUAGE_MAX_CHARS = 40;
const TITLE_MAX_CHARS = 500;
const COLOURED_MAX_CHARS = 6_000;

/** The character references that people and models use. Others are shown as they are. */
const REFERENCES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
};

function resolveEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return REFERENCES[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0x1f && code <= 0x10ffff ? safeText(String.fromCodePoint(code)) : whole;
  });
}

function makeElement<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  ...content: readonly (Node | string)[]
) {
  const element = document.createElement(name);
  if (className !== "") element.className = className;
  element.append(...content);
  return element;
}

/** Blocks with a direction of their own: one text may have paragraphs in Hebrew and in English. */
const BLOCKS = /^(?:p|h3|li|th|td|blockquote)$/;

function holding<K extends keyof HTMLElementTagNameMap>(name: K, tokens: readonly Token[], className = "") {
  const element = makeElement(name, className, ...nodesOf(tokens));
  if (BLOCKS.test(name)) element.dir = "auto";
  return element;
}

/** Lets an element scroll sideways, and makes it reachable by keyboard. */
function scrolling(element: HTMLElement, name: string): HTMLElement {
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", name);
  return element;
}

function linkTo(href: string, content: readonly (Node | string)[]): (Node | string)[] {
  if (!LINK.test(href) || !URL.canParse(href)) return [...content];
  const link = makeElement("a", "", ...content);
  link.href = href;
  link.rel = "noopener noreferrer";
  link.target = "_blank";
  link.title = head(safeText(link.href), TITLE_MAX_CHARS);
  return [link];
}

/** Class of the element that contains the unfinished part of a growing text. */
const LIVE = "md-live";

/**
 * Colours code. Code that is still streamed stays plain, because colouring it after each change takes too
 * long. Each block is coloured in a task of its own, because this can take a second. If the highlighter
 * cannot be loaded, the code stays plain.
 */
async function colour(code: HTMLElement, text: string, language: string): Promise<void> {
  const { highlighted } = await import("./highlight.ts").catch(() => ({ highlighted: undefined }));
  if (code.closest(`.${LIVE}`) !== null) return;
  after(0, () => {
    const nodes = code.isConnected ? highlighted?.(text, language) : undefined;
    if (nodes !== undefined) code.replaceChildren(...nodes);
  });
}

function codeBlock({ text, lang = "" }: Tokens.Code): HTMLElement {
  const language = lang.slice(0, LANGUAGE_MAX_CHARS);
  const code = makeElement("code", "", text);
  const pre = scrolling(makeElement("pre", "", code), language === "" ? "Code" : `Code, ${language}`);
  if (language !== "" && text.length <= COLOURED_MAX_CHARS) void colour(code, text, language);
  const copy = makeElement("button", "quiet small copy-code end", "Copy");
  copy.type = "button";
  copy.onclick = async () => {
    copy.textContent = await copyText(text, pre);
  };
  const name = makeElement("span", "code-language", language);
  return makeElement("div", "code-block", makeElement("div", "row small soft code-head", name, copy), pre);
}

function table({ header, rows }: Tokens.Table): HTMLElement {
  const row = (cells: readonly Tokens.TableCell[]): HTMLElement => {
    const drawn = cells.map(({ header: isHead, tokens, align }) =>
      holding(isHead ? "th" : "td", tokens, align === null ? "" : `align-${align}`),
    );
    return makeElement("tr", "", ...drawn);
  };
  const head = makeElement("thead", "", row(header));
  const whole = makeElement("table", "", head, makeElement("tbody", "", ...rows.map(row)));
  return scrolling(makeElement("div", "scroll-x", whole), "Table");
}

function list({ ordered, start, items }: Tokens.List): HTMLElement {
  const whole = makeElement(ordered ? "ol" : "ul", "", ...items.map(({ tokens }) => holding("li", tokens)));
  if (whole instanceof HTMLOListElement && typeof start === "number") whole.start = start;
  return whole;
}

const WRAPPERS: Readonly<Record<string, "strong" | "em" | "del" | "p" | "blockquote">> = {
  strong: "strong",
  em: "em",
  del: "del",
  paragraph: "p",
  blockquote: "blockquote",
};

function nodesOfOne(token: Token): readonly (Node | string)[] {
  const wrapper = WRAPPERS[token.type];
  if (wrapper !== undefined) return [holding(wrapper, (token as Tokens.Generic).tokens ?? [])];
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "br":
    case "hr":
      return [makeElement(token.type)];
    case "checkbox":
      return [(token as Tokens.Checkbox).checked ? "☑ " : "☐ "];
    case "codespan":
      return [makeElement("code", "", (token as Tokens.Codespan).text)];
    case "escape":
      return [(token as Tokens.Escape).text];
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? [resolveEntities(text)] : nodesOf(tokens);
    }
    case "link": {
      const { href, tokens } = token as Tokens.Link;
      return linkTo(href, nodesOf(tokens));
    }
    // Shown as a link, because showing a text must not make the page load anything.
    case "image": {
      const { href, text } = token as Tokens.Image;
      return ["[picture: ", ...linkTo(href, [text === "" ? href : resolveEntities(text)]), "]"];
    }
    case "heading": {
      // Every heading of a text is an h3, because it is below the page's own headings. Its level only sets
      // the font size.
      const { depth, tokens } = token as Tokens.Heading;
      return [holding("h3", tokens, `md-h${depth}`)];
    }
    case "code":
      return [codeBlock(token as Tokens.Code)];
    case "list":
      return [list(token as Tokens.List)];
    case "table":
      return [table(token as Tokens.Table)];
    default:
      return [
        (token as Tokens.Generic).block === true ? makeElement("p", "", token.raw.trimEnd()) : token.raw,
      ];
  }
}

function nodesOf(tokens: readonly Token[]): (Node | string)[] {
  return tokens.flatMap(nodesOfOne);
}

function plainText(text: string): HTMLElement {
  return makeElement("div", "plain-text", safeText(text));
}

export function markdown(text: string): Node {
  const safe = safeText(text);
  try {
    if (!isTame(safe)) return plainText(text);
    const fragment = document.createDocumentFragment();
    fragment.append(...nodesOf(Lexer.lex(safe, { gfm: true, breaks: true })));
    return fragment;
  } catch {
    // The text is nested too deeply for the parser.
    return plainText(text);
  }
}

/** Length up to which an unfinished block is parsed at each change. A longer one is plain text. */
const LIVE_BLOCK_MAX_CHARS = 4_000;

/** Returns a function that shows a growing text. Only the last block is parsed at each change. */
export function makeGrowing(box: HTMLElement): (text: string) => void {
  const live = makeElement("div", LIVE);
  let last = "";
  /** Position at which the unfinished part starts. */
  let from = 0;
  box.replaceChildren(live);
  return (text) => {
    if (!text.startsWith(last.slice(0, from))) {
      from = 0;
      box.replaceChildren(live);
    }
    const next = lastBlockAt(text, from);
    if (next > from) live.before(markdown(text.slice(from, next)));
    from = next;
    last = text;
    const rest = text.slice(from);
    live.replaceChildren(rest.length <= LIVE_BLOCK_MAX_CHARS ? markdown(rest) : plainText(rest));
  };
}
