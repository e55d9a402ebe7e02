// Owns the one way in which text of others becomes elements of the page.
// MD1: HTML in a text is text. What the parser makes goes through the sanitiser, which lets through formatting and
//      links to http, https and mailto only: no pictures, forms, styles, ids, nor anything that loads or runs.
// MD2: what can't be parsed soon is shown as plain text.

import DOMPurify, { type Config } from "dompurify";
import { Marked } from "marked";
import { safeText } from "../../../src/core/safe-text.ts";
import { isTame, lastBlockAt } from "./tame.ts";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}

const parser = new Marked({
  gfm: true,
  breaks: true,
  async: false,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    // Nothing is fetched for a text: where the picture is can be read, and followed by hand.
    image: ({ href, text }) =>
      `[picture: <a href="${escapeHtml(href)}">${escapeHtml(text === "" ? href : text)}</a>]`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    code: ({ text, lang }) =>
      `<pre title="${escapeHtml((lang ?? "").slice(0, 40))}"><code>${escapeHtml(text)}</code></pre>`,
  },
});

const LINK = /^(?:https?|mailto):/i;
const CLEAN: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre"],
    ...["blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align"],
  ALLOWED_URI_REGEXP: LINK,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

function made<K extends keyof HTMLElementTagNameMap>(name: K, className: string, text = "") {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

/** Puts an element in a box that scrolls sideways, which the keyboard reaches. */
function boxed(element: HTMLElement, className: string, name: string): HTMLElement {
  const box = made("div", className);
  element.replaceWith(box);
  box.append(element);
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", name);
  return box;
}

function finishLinks(fragment: DocumentFragment): void {
  for (const link of fragment.querySelectorAll("a")) {
    if (!LINK.test(link.getAttribute("href") ?? "")) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.rel = "noopener noreferrer";
    link.target = "_blank";
    link.title = safeText(link.href).slice(0, 500);
  }
}

/** Headings of a text are all below those of the page; how large each is shows its own level. */
function finishHeadings(fragment: DocumentFragment): void {
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const lower = made("h3", `md-${heading.localName}`);
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
}

function finishCode(fragment: DocumentFragment): void {
  for (const pre of fragment.querySelectorAll("pre")) {
    const language = pre.title;
    pre.removeAttribute("title");
    const box = boxed(pre, "code-block", language === "" ? "Code" : `Code, ${language}`);
    const head = made("div", "code-head");
    const copy = made("button", "quiet copy-code", "Copy");
    copy.type = "button";
    head.append(made("span", "code-language", language), copy);
    box.prepend(head);
  }
  for (const table of fragment.querySelectorAll("table")) {
    const box = made("div", "scroll-x");
    table.replaceWith(box);
    box.append(table);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Table");
  }
}

/** A text as it is, its line breaks kept. */
export function plainText(text: string): HTMLElement {
  return made("div", "plain-text", safeText(text));
}

/** A text as markdown, or as it is where it is too wild for that. */
export function markdown(text: string): Node {
  const safe = safeText(text);
  if (!isTame(safe)) return plainText(text);
  try {
    const fragment = DOMPurify.sanitize(parser.parse(safe) as string, CLEAN);
    finishLinks(fragment);
    finishHeadings(fragment);
    finishCode(fragment);
    return fragment;
  } catch {
    // Deeper than the parser can go.
    return plainText(text);
  }
}

/** Characters of a last block that is parsed with each change; a longer one waits for its end as plain text. */
const LIVE_BLOCK_MAX_CHARS = 4_000;

/** Shows a text that grows: what is finished of it is parsed once, its last block with each change. */
export class GrowingText {
  readonly #box: HTMLElement;
  readonly #live = made("div", "md-live");
  #text = "";
  /** Where the part begins that is not finished. */
  #from = 0;

  constructor(box: HTMLElement) {
    this.#box = box;
    box.replaceChildren(this.#live);
  }

  /** The whole text so far. One that does not go on from the last begins anew. */
  show(text: string): void {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text.slice(0, this.#from))) {
      this.#from = 0;
      this.#box.replaceChildren(this.#live);
    }
    const next = lastBlockAt(text, this.#from);
    if (next > this.#from) {
      this.#live.before(markdown(text.slice(this.#from, next)));
      this.#from = next;
    }
    const rest = text.slice(this.#from);
    this.#live.replaceChildren(rest.length <= LIVE_BLOCK_MAX_CHARS ? markdown(rest) : plainText(rest));
    this.#text = text;
  }
}
