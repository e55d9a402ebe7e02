// Owns the conversion of Markdown to text and entities of Telegram: no markup is sent, so none can break.
// TX1: entities are within the text, and none is inside code.
// TX2: a text that would be too long or empty without its markup is sent as it was written.

import { optional } from "../../core/optional.ts";
import { type Mark, type MarkedText, readMarkdown, spelledOut } from "../markdown.ts";

/** Limit for one message, in UTF-16 units. */
const TEXT_CHARS_MAX = 4_096;
/** The platform ignores further entities. */
const ENTITIES_MAX = 100;

type Simple = "bold" | "italic" | "strikethrough" | "code" | "blockquote";

/** Formatting of a part of the text. */
export type Entity = { readonly offset: number; readonly length: number } & (
  | { readonly type: Simple }
  | { readonly type: "pre"; readonly language?: string }
  | { readonly type: "text_link"; readonly url: string }
);

export interface TelegramText {
  readonly text: string;
  readonly entities: readonly Entity[];
}

const SIMPLE: Readonly<Record<Exclude<Mark["kind"], "pre" | "link">, Simple>> = {
  bold: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "code",
  quote: "blockquote",
};

function entityOf({ kind, from, to, href = "", language }: Mark): Entity {
  const place = { offset: from, length: to - from };
  if (kind === "link") return { ...place, type: "text_link", url: href };
  if (kind === "pre") return { ...place, type: "pre", ...optional({ language }) };
  return { ...place, type: SIMPLE[kind] };
}

/** Only web URLs become links; other URLs are written out. */
function leadsElsewhere({ kind, href = "" }: Mark): boolean {
  return kind === "link" && !/^https?:/i.test(href);
}

function isCode({ kind }: Mark): boolean {
  return kind === "code" || kind === "pre";
}

function withEntities(marked: MarkedText): TelegramText {
  const { text, marks } = spelledOut(marked, leadsElsewhere);
  const code = marks.filter(isCode);
  const shown = marks.filter(
    (mark) => !code.some((one) => one !== mark && one.from <= mark.from && mark.to <= one.to),
  );
  return { text, entities: shown.slice(0, ENTITIES_MAX).map(entityOf) };
}

export function telegramText(markdown: string): TelegramText {
  const written = withEntities(readMarkdown(markdown));
  const fits = written.text.length <= TEXT_CHARS_MAX && written.text.trim() !== "";
  return fits ? written : { text: markdown.toWellFormed(), entities: [] };
}
