// Converts the text of a Discord message: mentions become names, and other content becomes a note.
// DT1: the time is linear in the length of the text, and the length of a note is limited.

import { type Fields, numberOf, objectOf, objectsOf, textOf, trimmedOf } from "../../core/json.ts";
import { cut, head } from "../../core/text/cut.ts";
import { idOf } from "./ids.ts";

/** Discord's limits: a hundred mentions per message, ten answers per poll. */
const MENTIONS_MAX = 100;
const LISTED_MAX = 10;
const NOTE_CHARS_MAX = 300;
/** Discord's limits: 25 fields per embed, and 6,000 characters in all embeds, without addresses. */
const EMBED_FIELDS_MAX = 25;
const EMBEDS_CHARS_MAX = 10_000;

/** Names that replace the ids in a text. */
export interface Names {
  readonly botId: string;
  /** The role that Discord created for the bot. */
  readonly ownRole?: string;
  user(id: string): string | undefined;
  role(id: string): string | undefined;
  channel(id: string): string | undefined;
}

/** Returns a person's name: the name in this server, else the display name, else the account name. */
export function nameOf(user: Fields | undefined, member?: Fields): string | undefined {
  return textOf(member?.nick) ?? textOf(user?.global_name) ?? textOf(user?.username);
}

/** Returns the names of the mentioned users, by their ids. */
export function mentionedUsers(message: Fields): Map<string, string> {
  return new Map(
    objectsOf(message.mentions, MENTIONS_MAX).flatMap((user): [string, string][] => {
      const id = idOf(user.id);
      const name = nameOf(user, objectOf(user.member));
      return id === undefined || name === undefined ? [] : [[id, name]];
    }),
  );
}

const MENTION = /<(@!?|@&|#|a?:\w{1,32}:)([0-9]{1,20})>/g;

function mentionsBot(kind: string, id: string, names: Names): boolean {
  return kind === "@&" ? id === names.ownRole : kind.startsWith("@") && id === names.botId;
}

/** Removes a mention of the bot at the start, and replaces the ids in other mentions by names. */
export function readableText(content: string, names: Names): string {
  const leading = /\s*<(@!?|@&)([0-9]{1,20})>\s*/y;
  let from = 0;
  for (;;) {
    leading.lastIndex = from;
    const found = leading.exec(content);
    if (found === null || !mentionsBot(found[1] ?? "", found[2] ?? "", names)) break;
    from = leading.lastIndex;
  }
  return content.slice(from).replace(MENTION, (whole, kind: string, id: string) => {
    if (kind === "#") return prefixName("#", names.channel(id), whole);
    if (kind === "@&") return prefixName("@", names.role(id), whole);
    if (kind.startsWith("@")) return prefixName("@", names.user(id), whole);
    return kind.replace(/^a/, "");
  });
}

function prefixName(sign: string, name: string | undefined, whole: string): string {
  return name === undefined ? whole : `${sign}${name}`;
}

function note(kind: string, words: string): string {
  const line = words.replace(/\s+/g, " ").trim();
  return `[${kind}${line === "" ? "" : `: ${head(line, NOTE_CHARS_MAX)}`}]`;
}

function pollNote(poll: Fields): string {
  const answers = objectsOf(poll.answers, LISTED_MAX).flatMap(
    (answer) => trimmedOf(objectOf(answer.poll_media)?.text, NOTE_CHARS_MAX) ?? [],
  );
  const question = textOf(objectOf(poll.question)?.text) ?? "";
  return note("poll", `${head(question, NOTE_CHARS_MAX / 2)} ${answers.join(" | ")}`);
}

function joinTexts(separator: string, ...values: readonly unknown[]): string {
  return values.flatMap((value) => textOf(value) ?? []).join(separator);
}

/** Returns the lines of an embed: title, address, author, description, fields and footer. */
function embedText({ title, url, author, description, fields, footer }: Fields): string {
  const by = objectOf(author);
  const address = textOf(by?.url);
  return joinTexts(
    "\n",
    note("embed", textOf(title) ?? ""),
    url,
    joinTexts(" ", by?.name, address && `(${address})`),
    description,
    ...objectsOf(fields, EMBED_FIELDS_MAX).map(({ name, value }) => joinTexts(": ", name, value)),
    objectOf(footer)?.text,
  );
}

/** Returns whether an embed only shows a link of the text. */
function isPreview({ type, url }: Fields, content: string): boolean {
  const address = textOf(url);
  const isLinked = address !== undefined && content.includes(address);
  return content !== "" && (type !== "rich" || isLinked);
}

/** Returns notes for content that is neither text nor a file. */
export function notesOf(message: Fields, names: Names): string[] {
  const poll = objectOf(message.poll);
  const stickers = objectsOf(message.sticker_items, LISTED_MAX).map((one) =>
    note("sticker", textOf(one.name) ?? ""),
  );
  const content = textOf(message.content) ?? "";
  const embeds = objectsOf(message.embeds, LISTED_MAX).filter((one) => !isPreview(one, content));
  const shown = readableText(cut(embeds.map(embedText).join("\n"), EMBEDS_CHARS_MAX), names);
  return [...(poll === undefined ? [] : [pollNote(poll)]), ...stickers, shown];
}

/** Returns the message that this one forwards. Discord does not send that message's author. */
export function forwardedOf(message: Fields): Fields | undefined {
  if (numberOf(objectOf(message.message_reference)?.type) !== 1) return undefined;
  const [first] = objectsOf(message.message_snapshots, 1);
  return objectOf(first?.message);
}
