// Owns how a message of Discord reads: mentions become names, what is no text becomes a note.
// DT1: the time is linear in the text, and what a note holds is bounded.

import { type Fields, objectOf, objectsOf, textOf } from "../fields.ts";
import { idOf, numberOf } from "./fields.ts";

/** Discord lets a message name a hundred people, and ten answers of a poll. */
const MENTIONS_MAX = 100;
const LISTED_MAX = 10;
const NOTE_CHARS_MAX = 300;

/** Who and what a text names. */
export interface Names {
  readonly botId: string;
  /** The role that Discord made for the bot. */
  readonly ownRole?: string;
  user(id: string): string | undefined;
  role(id: string): string | undefined;
  channel(id: string): string | undefined;
}

/** What a person is called: by this server, by themselves, by their account. */
export function nameOf(user: Fields | undefined, member?: Fields): string | undefined {
  return textOf(member?.nick) ?? textOf(user?.global_name) ?? textOf(user?.username);
}

/** The names of those whom a message mentions, by id. */
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

/** Without the bot's own name at the start, and with names in place of numbers. */
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
  return `[${kind}${line === "" ? "" : `: ${line.slice(0, NOTE_CHARS_MAX)}`}]`;
}

function pollNote(poll: Fields): string {
  const answers = objectsOf(poll.answers, LISTED_MAX).flatMap(
    (answer) => textOf(objectOf(answer.poll_media)?.text)?.slice(0, NOTE_CHARS_MAX) ?? [],
  );
  const question = textOf(objectOf(poll.question)?.text) ?? "";
  return note("poll", `${question.slice(0, NOTE_CHARS_MAX / 2)} ${answers.join(" | ")}`);
}

/** What a message has besides text and files, as short notes. */
export function notesOf(message: Fields): string[] {
  const poll = objectOf(message.poll);
  const stickers = objectsOf(message.sticker_items, LISTED_MAX).map((one) =>
    note("sticker", textOf(one.name) ?? ""),
  );
  // Under a text they are previews of its links; alone they are all that there is.
  const embeds =
    textOf(message.content) === undefined
      ? objectsOf(message.embeds, LISTED_MAX).map((one) =>
          note("embed", textOf(one.title) ?? textOf(one.description)?.slice(0, NOTE_CHARS_MAX) ?? ""),
        )
      : [];
  return [...(poll === undefined ? [] : [pollNote(poll)]), ...stickers, ...embeds];
}

/** What somebody passed on: Discord sends it as it was, without its author. */
export function forwardedOf(message: Fields): Fields | undefined {
  if (numberOf(objectOf(message.message_reference)?.type) !== 1) return undefined;
  const [first] = objectsOf(message.message_snapshots, 1);
  return objectOf(first?.message);
}
