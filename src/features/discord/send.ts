// Sends texts and files to Discord, and interprets its destinations.
// DO1: a text from a model never notifies people and gets no link preview.
// DO2: for some minutes, Discord shows messages with the same nonce only once. So if the result of an attempt
//      is unknown, it is repeated once with the same nonce. If the second result is a failure or unknown,
//      too, the outcome is unknown (I5).
// A route names a channel, a thread (by its parent and its own id), or a person.

import { createHash } from "node:crypto";
import type { DeliveryOutcome, OpenedThread, OutgoingMessage } from "../../channels/channel.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { evictOldest } from "../../core/bounded.ts";
import { jsonOf, objectOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { Choice } from "../../core/rules/command.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Places } from "./channel-cache.ts";
import { idOf } from "./ids.ts";
import { DiscordProblem, UNKNOWN_CHANNEL } from "./problem.ts";
import { type Rest, UPLOAD_MS } from "./rest.ts";

/** Discord's flag for a message without link previews. */
const SUPPRESS_EMBEDS = 1 << 2;
/** Length of the nonces that are sent. Discord's limit is 25 characters. */
const NONCE_CHARS = 22;
const DIRECT_CHATS_MAX = 1_000;
const TITLE_CHARS_MAX = 100;
/** Discord's types of public threads: in a text channel, and in an announcement channel. */
const PUBLIC_THREAD = 11;
const NEWS_THREAD = 10;
const NO_DIRECT_THREADS = "Discord has no threads in direct messages";

type Sender = Pick<PlatformAccount, "deliver" | "typing" | "openThread">;

function outcomeOf({ kind, message: error, afterMs }: DiscordProblem): DeliveryOutcome {
  if (kind === "refused" || kind === "unknown") return { kind, error };
  // The text was not sent. A retry succeeds once the token is corrected, or Discord is available again.
  return { kind: "retry", error, ...optional({ afterMs }) };
}

function asProblem(error: unknown): DiscordProblem {
  return error instanceof DiscordProblem ? error : new DiscordProblem("unknown", "the request failed");
}

function noId(text: string): string {
  const shown = JSON.stringify(safeLine(head(text, 60)));
  return `${shown} is not a Discord id: use the id of a channel, a thread or a person`;
}

/** Converts a title to one line that Discord accepts as the name of a thread. */
function titleOf(title: string): string {
  const line = safeLine(head(title, TITLE_CHARS_MAX * 4))
    .replace(/(\s|\\n)+/g, " ")
    .trim();
  return head(line, TITLE_CHARS_MAX) || "Thread";
}

/** Discord's numbers for a row of buttons, a button, and its style. */
const BUTTON_ROW = 1 as const;
const BUTTON = 2 as const;
const PLAIN_STYLE = 2 as const;
/** Discord's limit for the text of a message. */
const CONTENT_CHARS_MAX = 2_000;

/** Returns the rows of buttons. The id of a button is its command. */
function rowsOf(choices: readonly Choice[]) {
  const buttons = choices.map(({ label, command }) => ({
    type: BUTTON,
    style: PLAIN_STYLE,
    label,
    custom_id: command,
  }));
  return buttons.length === 0 ? [] : [{ type: BUTTON_ROW, components: buttons }];
}

/** Adds a text to the message of a press. Undefined if that is impossible. */
async function edit(
  rest: Rest,
  answers: string,
  { text, choices = [] }: OutgoingMessage,
): Promise<DeliveryOutcome | undefined> {
  const pressed = objectOf(jsonOf(answers));
  const [id, channelId] = [idOf(pressed?.id), idOf(pressed?.channelId)];
  const content = `${textOf(pressed?.content) ?? ""}\n\n${text}`;
  if (id === undefined || channelId === undefined || content.length > CONTENT_CHARS_MAX) return undefined;
  const body = {
    content,
    components: rowsOf(choices),
    flags: SUPPRESS_EMBEDS,
    allowed_mentions: { parse: [] },
  };
  try {
    await rest.ask((api, signal) => api.channels.editMessage(channelId, id, body, { signal }));
    return { kind: "sent" };
  } catch (error) {
    const problem = asProblem(error);
    if (problem.kind === "refused") return undefined;
    // A second attempt changes nothing more.
    return problem.kind === "unknown" ? { kind: "retry", error: problem.message } : outcomeOf(problem);
  }
}

/** Sends a message. If the result of the request is unknown, repeats it once (DO2). */
async function post(rest: Rest, to: string, message: OutgoingMessage): Promise<void> {
  const { choices = [] } = message;
  const body = {
    content: message.text,
    nonce: createHash("sha256")
      .update(`${message.deliveryId}:${message.part}`)
      .digest("base64url")
      .slice(0, NONCE_CHARS),
    enforce_nonce: true,
    flags: SUPPRESS_EMBEDS,
    allowed_mentions: { parse: [] },
    ...(choices.length === 0 ? {} : { components: rowsOf(choices) }),
  };
  const { file } = message;
  const files = file && [{ name: file.name, data: file.data, contentType: file.mimeType }];
  const once = () =>
    rest.ask(
      (api, signal) => api.channels.createMessage(to, { ...body, ...optional({ files }) }, { signal }),
      undefined,
      file && UPLOAD_MS,
    );
  try {
    await once();
  } catch (error) {
    if (!(error instanceof DiscordProblem) || error.kind !== "unknown") throw error;
    const again = await once().then(() => undefined, asProblem);
    // Even if the second attempt was refused, the first one may have succeeded. So the outcome is unknown.
    if (again !== undefined) throw new DiscordProblem("unknown", again.message);
  }
}

export function createSender(rest: Rest, places: Places): Sender {
  /** For each person, the id of the direct chat. */
  const directChats = new Map<string, string>();

  /** Returns the direct chat with this person. Returns undefined if the id is not that of a person. */
  async function directChat(personId: string): Promise<string | undefined> {
    try {
      const chat = await rest.ask((api, signal) => api.users.createDM(personId, { signal }));
      const id = idOf(chat.id);
      if (id === undefined) return undefined;
      directChats.set(personId, id);
      evictOldest(directChats, DIRECT_CHATS_MAX);
      return id;
    } catch (error) {
      const problem = asProblem(error);
      if (problem.kind === "refused") return undefined;
      // A retry is safe, because Discord would return the same chat again.
      throw problem.kind === "unknown" ? new DiscordProblem("away", problem.message) : problem;
    }
  }

  async function deliver(message: OutgoingMessage): Promise<DeliveryOutcome> {
    const { to, threadId } = message.route;
    const place = idOf(threadId ?? to);
    if (place === undefined) return { kind: "refused", error: noId(threadId ?? to) };
    const { answers } = message;
    const edited = answers === undefined ? undefined : await edit(rest, answers, message);
    if (edited !== undefined) return edited;
    try {
      const known = directChats.get(place) ?? place;
      const refused = await post(rest, known, message).then(() => undefined, asProblem);
      if (refused === undefined) return { kind: "sent" };
      const person = refused.code === UNKNOWN_CHANNEL && threadId === undefined && known === place;
      const chat = person ? await directChat(place) : undefined;
      if (chat === undefined) return outcomeOf(refused);
      await post(rest, chat, message);
      return { kind: "sent" };
    } catch (error) {
      return outcomeOf(asProblem(error));
    }
  }

  return {
    deliver,
    async typing({ to, threadId }) {
      const place = idOf(threadId ?? to);
      if (place === undefined) return;
      const chat = directChats.get(place) ?? place;
      await rest.ask((api, signal) => api.channels.showTyping(chat, { signal })).catch(() => {});
    },
    openThread: (at, title) => openThread(rest, places, at, titleOf(title)),
  };
}

/**
 * Creates a thread in the channel of a route. If the route names a thread, the new thread is created next to
 * it.
 */
async function openThread(
  rest: Rest,
  places: Places,
  at: Route,
  name: string,
): Promise<Result<OpenedThread>> {
  const parent = idOf(at.to);
  if (parent === undefined) return fail("invalid_argument", noId(at.to));
  try {
    const place = await places.channelInfoOf(parent);
    if (place?.kind === "direct" || place?.kind === "other")
      return fail("invalid_argument", NO_DIRECT_THREADS);
    const type = place?.isNews === true ? NEWS_THREAD : PUBLIC_THREAD;
    const thread = await rest.ask((api, signal) =>
      place?.kind === "forum"
        ? // A thread in a forum needs a first message.
          api.channels.createForumThread(parent, { name, message: { content: name } }, { signal })
        : api.channels.createThread(parent, { name, type }, undefined, { signal }),
    );
    const threadId = idOf((thread as { id?: unknown }).id);
    if (threadId === undefined)
      return fail("channel_failed", "Discord did not return the id of the new thread");
    return ok({ route: { ...at, threadId }, kind: "created" });
  } catch (error) {
    const { message } = asProblem(error);
    return fail("channel_failed", `Discord did not create a thread: ${message}`);
  }
}
