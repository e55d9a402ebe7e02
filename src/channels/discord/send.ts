// Owns how text leaves for Discord, and where it goes.
// DO1: no text of a model pings anybody, and no link in it grows a preview.
// DO2: Discord knows a text by its nonce for some minutes: an attempt whose end is not known is made once more
//      with the same one, and shows the text once. After that its outcome is unknown (I5).
// DO3: a route names a channel, a thread by its parent and its own id, or a person.

import { createHash } from "node:crypto";
import { dropOldest } from "../../core/bounded.ts";
import { fail, ok, type Result } from "../../core/errors.ts";
import type { Route } from "../../core/route.ts";
import { safeLine } from "../../core/safe-text.ts";
import type { DeliveryOutcome, OpenedThread, OutgoingMessage } from "../channel.ts";
import { idOf } from "./fields.ts";
import type { Places } from "./places.ts";
import { DiscordProblem, UNKNOWN_CHANNEL } from "./problem.ts";
import type { Rest } from "./rest.ts";

/** Flags of a message: links in it are not shown as pictures below it. */
const SUPPRESS_EMBEDS = 1 << 2;
/** Discord takes 25 characters. */
const NONCE_CHARS = 22;
const DIRECT_CHATS_MAX = 1_000;
const TITLE_CHARS_MAX = 100;
/** The platform's numbers for threads that everybody in the channel sees; one for channels of announcements. */
const PUBLIC_THREAD = 11;
const NEWS_THREAD = 10;
const NO_DIRECT_THREADS = "Discord has no threads in direct messages";

export interface Sender {
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  typing(route: Route): Promise<void>;
  openThread(at: Route, title: string): Promise<Result<OpenedThread>>;
}

function nonceOf({ deliveryId, part }: OutgoingMessage): string {
  return createHash("sha256").update(`${deliveryId}:${part}`).digest("base64url").slice(0, NONCE_CHARS);
}

function outcomeOf({ kind, message: error, afterMs }: DiscordProblem): DeliveryOutcome {
  switch (kind) {
    case "limit":
      return { kind: "retry", error, ...(afterMs === undefined ? {} : { afterMs }) };
    // Nothing was done; once the token is set right, or Discord is there again, it goes out.
    case "token":
    case "away":
      return { kind: "retry", error };
    case "refused":
      return { kind: "refused", error };
    case "unknown":
      return { kind: "unknown", error };
  }
}

function asProblem(error: unknown): DiscordProblem {
  return error instanceof DiscordProblem ? error : new DiscordProblem("unknown", "the request failed");
}

function noId(text: string): string {
  const shown = JSON.stringify(safeLine(text.slice(0, 60)));
  return `${shown} is no id of Discord: it must be the number of a channel, a thread or a person`;
}

/** One line that Discord takes as the name of a thread. */
function titleOf(title: string): string {
  const line = safeLine(title.slice(0, TITLE_CHARS_MAX * 4))
    .replace(/(\s|\\n)+/g, " ")
    .trim();
  // Half a character at the end is no character.
  return line.slice(0, TITLE_CHARS_MAX).replace(/[\ud800-\udbff]$/, "") || "Thread";
}

/** What leaves by one account. */
export function createSender(rest: Rest, places: Places): Sender {
  /** The direct chat with a person, by the person's id. */
  const directChats = new Map<string, string>();

  async function post(to: string, message: OutgoingMessage): Promise<void> {
    const body = {
      ...{ content: message.text, nonce: nonceOf(message), enforce_nonce: true, flags: SUPPRESS_EMBEDS },
      allowed_mentions: { parse: [] },
    };
    const once = () => rest.ask((api, signal) => api.channels.createMessage(to, body, { signal }));
    try {
      await once();
    } catch (error) {
      if (!(error instanceof DiscordProblem) || error.kind !== "unknown") throw error;
      const again = await once().then(() => undefined, asProblem);
      // Whatever is said to the second, the first may have arrived.
      if (again !== undefined) throw new DiscordProblem("unknown", again.message);
    }
  }

  /** The direct chat with this person; undefined: it is nobody. */
  async function directChat(personId: string): Promise<string | undefined> {
    try {
      const chat = await rest.ask((api, signal) => api.users.createDM(personId, { signal }));
      const id = idOf(chat.id);
      if (id === undefined) return undefined;
      directChats.set(personId, id);
      dropOldest(directChats, DIRECT_CHATS_MAX);
      return id;
    } catch (error) {
      const problem = asProblem(error);
      if (problem.kind === "refused") return undefined;
      // A chat that was made, and not told of, is found again by asking again.
      throw problem.kind === "unknown" ? new DiscordProblem("away", problem.message) : problem;
    }
  }

  async function deliver(message: OutgoingMessage): Promise<DeliveryOutcome> {
    const { to, threadId } = message.route;
    const place = idOf(threadId ?? to);
    if (place === undefined) {
      return { kind: "refused", error: noId(threadId ?? to) };
    }
    try {
      const known = directChats.get(place) ?? place;
      const refused = await post(known, message).then(() => undefined, asProblem);
      if (refused === undefined) return { kind: "sent" };
      const person = refused.code === UNKNOWN_CHANNEL && threadId === undefined && known === place;
      const chat = person ? await directChat(place) : undefined;
      if (chat === undefined) return outcomeOf(refused);
      await post(chat, message);
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

/** Makes a thread in the channel of this place: inside a thread it is one beside it. */
async function openThread(
  rest: Rest,
  places: Places,
  at: Route,
  name: string,
): Promise<Result<OpenedThread>> {
  const parent = idOf(at.to);
  if (parent === undefined) return fail("invalid_argument", noId(at.to));
  try {
    const place = await places.placeOf(parent);
    if (place?.kind === "direct" || place?.kind === "other")
      return fail("invalid_argument", NO_DIRECT_THREADS);
    const type = place?.isNews === true ? NEWS_THREAD : PUBLIC_THREAD;
    const thread = await rest.ask((api, signal) =>
      place?.kind === "forum"
        ? // In a forum a thread begins with a message.
          api.channels.createForumThread(parent, { name, message: { content: name } }, { signal })
        : api.channels.createThread(parent, { name, type }, undefined, { signal }),
    );
    const threadId = idOf((thread as { id?: unknown }).id);
    if (threadId === undefined) return fail("run_failed", "Discord did not say which thread it made");
    return ok({ route: { ...at, threadId }, kind: "created" });
  } catch (error) {
    const { message } = asProblem(error);
    return fail("run_failed", `Discord made no thread: ${message}`);
  }
}
