// Writes out the addresses of links, which Telegram keeps apart from the text, and the ids of people who are
// named without a username.
// TL1: no address is lost or hidden: one that can't be a Markdown link is written after its words.
// TL2: links may come in any order, overlap and leave the text. Their offsets count UTF-16 units.

import { type Fields, fieldsOf, integerOf, textOf } from "../../core/json.ts";
import { cutAt } from "../../core/text/cut.ts";
import { idOf } from "./bot.ts";

interface Link {
  readonly from: number;
  readonly to: number;
  readonly address: string;
}

/** Addresses that may become Markdown links. */
const LINKED = /^(?:https?:\/\/|tg:\/\/user\?id=)\S+$/i;

function addressIn({ type, url, user }: Fields): string | undefined {
  if (type === "text_link") return textOf(url);
  const id = type === "text_mention" ? idOf(fieldsOf(user).id) : undefined;
  return id === undefined ? undefined : `tg://user?id=${id}`;
}

function linkIn(words: string, entity: Fields): readonly Link[] {
  const [offset, length] = [integerOf(entity.offset) ?? -1, integerOf(entity.length) ?? 0];
  const address = addressIn(entity);
  if (address === undefined || offset < 0 || offset >= words.length || length <= 0) return [];
  const [from, to] = [cutAt(words, offset), cutAt(words, offset + length)];
  // A link may end inside its only sign.
  return [{ from, to: to > from ? to : offset + length, address }];
}

/** Returns whether brackets in a text can't end the Markdown around it. */
function isBalanced(text: string, open: string, close: string): boolean {
  let depth = 0;
  for (const char of text) {
    if (char === open) depth += 1;
    if (char === close) depth -= 1;
    if (depth < 0 || char === "\\") return false;
  }
  return depth === 0;
}

const percentEncoded = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** Writes an address after words that are already written. */
const behind = (address: string): string => ` (${address.replace(/\s+/g, " ")})`;

function writeLink(words: string, address: string): string {
  if (words === address) return words;
  if (!LINKED.test(address)) return words + behind(address);
  const label = isBalanced(words, "[", "]") ? words : words.replace(/[\\[\]]/g, "\\$&");
  const target = isBalanced(address, "(", ")") ? address : address.replace(/[\\()]/g, percentEncoded);
  return `[${label}](${target})`;
}

/** Returns the words from an offset on, with each link as `[words](address)`. */
export function linkedText(words: string, entities: readonly Fields[], offset = 0): string {
  const links = entities
    .flatMap((entity) => linkIn(words, entity))
    .filter(({ to }) => to > offset)
    .sort((one, other) => one.from - other.from || other.to - one.to);
  const pieces: string[] = [];
  let end = offset;
  for (const { from, to, address } of links) {
    const start = Math.max(from, end);
    if (start >= to) pieces.push(behind(address));
    else pieces.push(words.slice(end, start), writeLink(words.slice(start, to), address));
    end = Math.max(end, to);
  }
  return pieces.join("") + words.slice(end);
}
