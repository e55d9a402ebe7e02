// Converts HTML to text with headings, lists and links in Markdown. Reads the document once, from its start
// to its end, and never fails: browsers show broken HTML as well.

/** Elements whose content no reader sees. */
const UNSEEN = new Set(["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"]);
const PARAGRAPHS = new Set(
  (
    "address article blockquote dd details div dl dt fieldset figcaption figure footer form header hr " +
    "main nav ol p pre section table ul"
  ).split(" "),
);
const LINES = new Set(["br", "tr", "option", "summary"]);
const HEADING = /^h([1-6])$/;
const TAG = /<(\/?)([a-zA-Z][a-zA-Z0-9-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>/y;
const ATTRIBUTE_MAX_CHARS = 2_000;

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  copy: "©",
  laquo: "«",
  raquo: "»",
  ldquo: "“",
  rdquo: "”",
  lsquo: "‘",
  rsquo: "’",
  euro: "€",
};

function decodeEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g,
    (all, ten, hex, name) => {
      if (name !== undefined) return ENTITIES[name] ?? all;
      const code = ten === undefined ? Number.parseInt(hex, 16) : Number(ten);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : all;
    },
  );
}

function attribute(text: string, name: string): string | undefined {
  const pattern = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i");
  const found = pattern.exec(text.slice(0, ATTRIBUTE_MAX_CHARS));
  const value = found?.[1] ?? found?.[2] ?? found?.[3];
  return value === undefined ? undefined : decodeEntities(value);
}

/** The text so far. Spaces are joined, except in `<pre>`. */
class Page {
  title = "";
  readonly #base: string;
  #pieces: string[] = [];
  #inTitle = false;
  #pre = 0;
  /** Addresses of the open links. */
  readonly #links: (string | undefined)[] = [];

  constructor(base: string) {
    this.#base = base;
  }

  text(raw: string): void {
    const text = decodeEntities(raw);
    if (this.#inTitle) this.title += text;
    else this.#pieces.push(this.#pre > 0 ? text : text.replaceAll(/\s+/g, " "));
  }

  tag(name: string, isEnd: boolean, attributes: string): void {
    const heading = HEADING.exec(name)?.[1];
    if (name === "title") this.#inTitle = !isEnd && this.title === "";
    else if (name === "pre") this.#pre = Math.max(0, this.#pre + (isEnd ? -1 : 1));
    else if (name === "a") this.#link(isEnd, attributes);
    else if (name === "td" || name === "th") this.#pieces.push(isEnd ? " | " : "");
    else if (name === "img" && attribute(attributes, "alt")?.trim())
      this.#pieces.push(`[picture: ${attribute(attributes, "alt")}]`);
    if (heading !== undefined) this.#pieces.push(isEnd ? "\n\n" : `\n\n${"#".repeat(Number(heading))} `);
    else if (name === "li") this.#pieces.push(isEnd ? "" : "\n- ");
    else if (PARAGRAPHS.has(name)) this.#pieces.push("\n\n");
    else if (LINES.has(name)) this.#pieces.push("\n");
  }

  #link(isEnd: boolean, attributes: string): void {
    if (isEnd) {
      const address = this.#links.pop();
      if (address !== undefined) this.#pieces.push(`](${address})`);
      return;
    }
    const to = attribute(attributes, "href");
    const url = to !== undefined && URL.canParse(to, this.#base) ? new URL(to, this.#base).href : "";
    const shown = /^https?:/.test(url) ? url : undefined;
    this.#links.push(shown);
    if (shown !== undefined) this.#pieces.push("[");
  }

  finished(): { title: string; text: string } {
    const text = this.#pieces
      .join("")
      .replaceAll(/(?<![ \t])[ \t]*\n[ \t]*\n\s*/g, "\n\n")
      .replaceAll(/ {2,}/g, " ");
    return { title: this.title.replaceAll(/\s+/g, " ").trim(), text: text.trim() };
  }
}

/** Returns where the content of an unseen element ends: at its end tag, or at the end of the document. */
function endOf(html: string, name: string, from: number): number {
  const pattern = new RegExp(`</${name}\\b`, "gi");
  pattern.lastIndex = from;
  return pattern.exec(html)?.index ?? html.length;
}

/** Converts a document. `base`: its address, from which links are resolved. */
export function htmlToText(html: string, base: string): { title: string; text: string } {
  const page = new Page(base);
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    const end = open === -1 ? html.length : open;
    if (end > at) page.text(html.slice(at, end));
    if (open === -1) break;
    if (html.startsWith("<!--", open)) {
      const close = html.indexOf("-->", open + 4);
      at = close === -1 ? html.length : close + 3;
      continue;
    }
    TAG.lastIndex = open;
    const tag = TAG.exec(html);
    if (tag === null) {
      const close = /[!?]/.test(html[open + 1] ?? "") ? html.indexOf(">", open) : -1;
      if (close === -1) page.text("<");
      at = close === -1 ? open + 1 : close + 1;
      continue;
    }
    const name = (tag[2] ?? "").toLowerCase();
    const isEnd = tag[1] === "/";
    page.tag(name, isEnd, tag[3] ?? "");
    at = TAG.lastIndex;
    if (!isEnd && UNSEEN.has(name)) at = endOf(html, name, at);
  }
  return page.finished();
}
