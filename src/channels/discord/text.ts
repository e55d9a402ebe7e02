// Converts the text of a Discord message: mentions become names, and other content becomes a note.
// DT1: the time is linear in the length of the text, and the length of a note is limited.

import { type Fields, numberOf, objectOf, objectsOf, textOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { idOf } from "./ids.ts";

/** Discord's limits: a hundred mentions per message, ten answers per poll. */
const MENTIONS_MAX = 100;
const LISTED_MAX = 10;
const NOTE_CHARS_MAX = 300;

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
    if (kind === "#") return prefixed("#", names.channel(id), whole);
    if (kind === "@&") return prefixed("@", names.role(id), whole);
    if (kind.startsWith("@")) return prefixed("@", names.user(id), whole);
    return kind.replace(/^a/, "");
  });
}

function prefixed(sign: string, name: string | undefined, whole: string): string {
  return name === undefined ? whole : `${sign}${name}`;
}

function note(kind: string, words: string): string {
  const line = words.replace(/\s+/g, " ").trim();
  return `[${kind}${line === "" ? "" : `: ${head(line, NOTE_CHARS_MAX)}`}]`;
}

function pollNote(poll: Fields): string {
  const answers = objectsOf(poll.answers, LISTED_MAX).flatMap(
    (answer) => textOf(objectOf(answer.poll_media)?.text)?.slice(0, NOTE_CHARS_MAX) ?? [],
  );
  const question = textOf(objectOf(poll.question)?.text) ?? "";
  return note("poll", `${head(question, NOTE_CHARS_MAX / 2)} ${answers.join(" | ")}`);
}

/** Returns short notes for content that is neither text nor a file. */
export function notesOf(message: Fields): string[] {
  const poll = objectOf(message.poll);
  const stickers = objectsOf(message.sticker_items, LISTED_MAX).map((one) =>
    note("sticker", textOf(one.name) ?? ""),
  );
  // If the message has no text, its embeds are the content. If it has text, they are only link previews.
  const embeds =
    textOf(message.content) === undefined
      ? objectsOf(message.embeds, LISTED_MAX).map((one) =>
          note("embed", textOf(one.title) ?? textOf(one.description)?.slice(0, NOTE_CHARS_MAX) ?? ""),
        )
      : [];
  return [...(poll === undefined ? [] : [pollNote(poll)]), ...stickers, ...embeds];
}

/** Returns the message that this one forwards. Discord does not send that message's author. */
export function forwardedOf(message: Fields): Fields | undefined {
  if (numberOf(objectOf(message.message_reference)?.type) !== 1) return undefined;
  const [first] = objectsOf(message.message_snapshots, 1);
  return objectOf(first?.message);
}
