// Receives Telegram's updates by long polling.
// TL1: an update is confirmed (by the offset of the next request) after it is stored (CH1 of channel.ts). An
//      update that could not be stored arrives again, and later updates of its chat wait for it.
// TL2: an offset is sent only to confirm updates. So no update is missed if the platform starts to number
//      them anew.
// TL3: after a temporary failure, the request is retried a few times. A permanent failure ends the listening,
//      with its reason.
// TA1: pictures that were sent together (an album) become one message with the id of the first picture. An
//      album at the end of a batch may still grow, so it is confirmed only after the next poll has found it
//      unchanged.
// TA2: only consecutive updates are joined, so updates that were not confirmed before a crash are joined in
//      the same way again.
// TA3: the size of an album is stored before the album. If a crash makes its updates arrive again with a late
//      picture, this picture becomes a message of its own. Joined to the known album, it would be lost.
// Chats do not wait for the files of other chats: the updates of one chat are stored in order, and different
// chats concurrently.

import { accountName, type ListenPort, ListenProblem } from "../../channels/accounts.ts";
import { type ChannelHost, TOO_SOON } from "../../channels/channel.ts";
import { Patience, Pump } from "../../channels/pump.ts";
import { fieldsOf, integerOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { type Bot, type Called, NO_SERVER_WORDS } from "./bot.ts";
import { mediaOf } from "./media.ts";
import { failureWords, isTokenWrong, TELEGRAM, tokenWords } from "./send.ts";
import { introduce } from "./start.ts";
import { type Reading, readUpdate, type TelegramAccountContext, UPDATE_KINDS } from "./update.ts";

/** Time that a long poll waits for updates. */
const POLL_SECONDS = 25;
/** Additional time that a poll request gets before it times out. */
const POLL_GRACE_MS = 10_000;
/**
 * If an empty answer arrives sooner than this, the server did not wait. It is also the shortest pause between
 * requests.
 */
const HASTY_MS = 1_000;
const UPDATES_MAX = 100;
/** Name under which the last album that was to be stored is remembered. */
const SEALED = "album";
/** Pause before an album is read again, because further pictures may arrive. */
const ALBUM_MS = 500;
/** Pause if the platform limits the requests and names none. */
const LIMIT_PAUSE_MS = 10_000;
/** Maximum pause that the platform can request. */
const ASKED_PAUSE_MAX_MS = 10 * 60_000;

/**
 * A button that appeared less than this time ago is not pressed: the press may have been meant for another
 * one. The button has a time in whole seconds, so this is between one and two seconds.
 */
const PRESS_AFTER_MS = 2_000;
const NOT_SHOWN = "This button is no longer in use. /approvals lists the open requests.";
/** Maximum length of a notice about a press. */
const NOTICE_CHARS_MAX = 200;

interface ReadPosition {
  /** The offset to send: it confirms all updates with smaller ids. Absent: confirm nothing. */
  offset?: number;
  /** The album at the end of the last batch: the id of its first update, and the number of its updates. */
  album?: { readonly firstId: number; readonly parts: number };
  /** The last album at the end of a batch that was to be stored. No picture is joined to it any more. */
  sealed: string | undefined;
}

type MessageReading = Extract<Reading, { kind: "message" }>;

/**
 * One message or event, which was made from one or more updates. After it is processed, these updates are
 * confirmed.
 */
interface Item {
  readonly firstId: number;
  readonly lastId: number;
  /** Number of updates from which the item was made. */
  readonly parts: number;
  readonly reading: Reading;
}

/** The content of one response. */
interface Batch {
  /** Messages and events, sorted by update id. */
  readonly items: readonly Item[];
  /** Number of updates without an id. They are skipped. */
  readonly nameless: number;
}

/** Receives the messages of one bot until the signal is aborted. Throws if retries cannot help. */
export async function listen(bot: Bot, host: ChannelHost, { signal, ready }: ListenPort): Promise<void> {
  const { clock } = host.world;
  const reader = await introduce(bot, host, signal);
  const place: ReadPosition = { sealed: await host.cursor(bot.accountId, SEALED) };
  const pump = new Pump(host, accountName(TELEGRAM, bot.accountId), signal);
  const patience = new Patience(clock, signal);
  let isFirst = true;
  while (!signal.aborted) {
    const waits = !isFirst && place.album === undefined;
    const askedAt = clock.monotonic();
    const timeout = waits ? POLL_SECONDS : 0;
    const query = { timeout, limit: UPDATES_MAX, allowed_updates: UPDATE_KINDS };
    const timeoutMs = timeout * 1_000 + POLL_GRACE_MS;
    const { offset } = place;
    const answer = await bot.call(
      (methods, either) => methods.getUpdates(offset === undefined ? query : { ...query, offset }, either),
      { signal, timeoutMs },
    );
    if (answer.kind === "refused" && answer.code === 429) {
      const askedMs = Math.max(HASTY_MS, answer.afterMs ?? LIMIT_PAUSE_MS);
      await pause(clock, Math.min(askedMs, ASKED_PAUSE_MAX_MS), signal);
      continue;
    }
    if (answer.kind !== "done") {
      await patience.pauseAfter(pollProblem(answer));
      continue;
    }
    isFirst = false;
    const isList = Array.isArray(answer.value);
    if (isList) ready();
    const updates = listOf(answer.value);
    const why = isList ? await take(updates, place, { bot, host, reader, pump }) : NO_SERVER_WORDS;
    if (why !== undefined) {
      await patience.pauseAfter(new ListenProblem(why));
      continue;
    }
    patience.reset();
    // Pause if the server did not wait, to prevent a busy loop.
    const isHasty = waits && updates.length === 0 && clock.monotonic() - askedAt < HASTY_MS;
    if (isHasty) await pause(clock, HASTY_MS, signal);
  }
}

/** Returns the problem of a failed poll. Throws it if retries cannot help. */
function pollProblem(failure: Exclude<Called<unknown>, { kind: "done" }>): ListenProblem {
  if (failure.kind === "refused" && isTokenWrong(failure)) throw new ListenProblem(tokenWords(failure), true);
  if (failure.kind === "refused" && failure.code === 409)
    throw new ListenProblem(
      /webhook/i.test(failure.why)
        ? "a web hook was set for the bot, so messages go there. Parley removes the hook at the next attempt"
        : "another program fetches this bot's messages: use a separate bot for each program",
    );
  return new ListenProblem(failureWords(failure));
}

function readSafely(update: unknown, reader: TelegramAccountContext): Reading {
  try {
    return readUpdate(update, reader);
  } catch (error) {
    // Skip an update that cannot be read, because it must not block later updates.
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "skipped", why: `it could not be read: ${why}`, odd: true };
  }
}

function isSameAlbum(one: MessageReading, other: MessageReading): boolean {
  return (
    one.albumId !== undefined &&
    one.albumId === other.albumId &&
    one.message.chat.id === other.message.chat.id &&
    one.message.sender.id === other.message.sender.id
  );
}

function join(one: MessageReading, other: MessageReading): MessageReading {
  // In a forwarded album, show the note about its origin only once.
  const isSaid = other.message.forwarded === true && one.message.text.split("\n")[0] === other.message.text;
  const texts = [one.message.text, isSaid ? "" : other.message.text].filter((text) => text !== "");
  const quoted = one.message.quoted ?? other.message.quoted;
  const authors = [one, other].flatMap(({ message }) => message.authors ?? []);
  const partsOf = ({ message }: MessageReading) => message.parts ?? [message];
  const parts = [one, other].flatMap(partsOf).map(({ messageId, text }) => ({ messageId, text }));
  return {
    ...one,
    files: [...one.files, ...other.files],
    message: {
      ...one.message,
      text: texts.join("\n"),
      mentioned: one.message.mentioned || other.message.mentioned,
      parts,
      authors,
      ...optional({ quoted }),
    },
  };
}

/** Identifies an album with its size. */
function sealOf({ chat, messageId }: MessageReading["message"], parts: number): string {
  return JSON.stringify([chat.id, messageId, parts]);
}

/** Reads the updates of one response. `sealed`: the album to which no further picture is joined. */
export function readBatch(
  updates: readonly unknown[],
  reader: TelegramAccountContext,
  sealed?: string,
): Batch {
  const named = updates.flatMap((update): { id: number; update: unknown }[] => {
    const id = integerOf(fieldsOf(update).update_id);
    return id === undefined ? [] : [{ id, update }];
  });
  const items: Item[] = [];
  for (const { id, update } of named.sort((one, other) => one.id - other.id)) {
    const reading = readSafely(update, reader);
    const before = items.at(-1);
    const last = before?.reading;
    if (
      before !== undefined &&
      last?.kind === "message" &&
      reading.kind === "message" &&
      isSameAlbum(last, reading) &&
      sealOf(last.message, before.parts) !== sealed
    ) {
      const joined = join(last, reading);
      items[items.length - 1] = { ...before, lastId: id, parts: before.parts + 1, reading: joined };
    } else {
      items.push({ firstId: id, lastId: id, parts: 1, reading });
    }
  }
  return { items, nameless: updates.length - named.length };
}

interface Taker {
  readonly bot: Bot;
  readonly host: ChannelHost;
  readonly reader: TelegramAccountContext;
  readonly pump: Pump;
}

/**
 * Takes the updates of one response, and moves the position behind them. Returns the reason if the response
 * is no progress.
 */
async function take(
  updates: readonly unknown[],
  place: ReadPosition,
  taker: Taker,
): Promise<string | undefined> {
  const { bot, host, reader, pump } = taker;
  const { items, nameless } = readBatch(updates, reader, place.sealed);
  if (nameless > 0) {
    host.world.log.warn({ channel: TELEGRAM, count: nameless }, "updates without an id were skipped");
  }
  const last = items.at(-1);
  const { album: before, offset } = place;
  delete place.album;
  if (last === undefined) {
    // All updates are confirmed, and the platform may continue with any id. So forget the offset.
    delete place.offset;
    return updates.length > 0 ? NO_SERVER_WORDS : undefined;
  }
  // An album at the end of the batch may still grow.
  const { firstId, parts, reading } = last;
  const album = reading.kind === "message" && reading.albumId !== undefined ? reading : undefined;
  const isStill = before?.firstId === firstId && before.parts === parts;
  // Also wait for an album at the end of a full response: its next pictures are in the next one.
  const isFull = updates.length >= UPDATES_MAX;
  const waits = album !== undefined && !isStill && items.length > (isFull ? 1 : 0);
  if (album !== undefined && !waits) {
    const sealed = sealOf(album.message, parts);
    if (sealed !== place.sealed) await pump.keep(() => host.remember(bot.accountId, SEALED, sealed));
    place.sealed = sealed;
  }
  for (const item of waits ? items.slice(0, -1) : items) {
    const lane = "message" in item.reading ? item.reading.message.chat.id : "";
    pump.push({ lane, take: () => takeItem(item, taker) });
  }
  await pump.drain();
  if (waits) {
    place.offset = firstId;
    place.album = { firstId, parts };
    await pause(host.world.clock, ALBUM_MS, pump.signal);
    return undefined;
  }
  place.offset = last.lastId + 1;
  return place.offset === offset ? "Telegram sends confirmed messages again" : undefined;
}

async function takeItem({ firstId, reading }: Item, { bot, host, reader, pump }: Taker): Promise<void> {
  if (!("message" in reading)) return note(reading, firstId, host.world, reader);
  if (reading.kind === "press") return takePress(reading, bot, pump);
  const media = reading.files.map((file) => mediaOf(bot, file));
  return pump.store({ ...reading.message, media });
}

/** Takes the command of a pressed button, and ends the waiting sign that the button then shows. */
async function takePress(
  { queryId, isShown, sentAt, message, pressed }: Extract<Reading, { kind: "press" }>,
  bot: Bot,
  pump: Pump,
): Promise<void> {
  const now = bot.clock.now();
  let words: string | undefined;
  const refuse = (why: string): void => {
    words = why;
  };
  if (!isShown) refuse(NOT_SHOWN);
  else if (now - sentAt < PRESS_AFTER_MS) refuse(TOO_SOON);
  else await pump.store({ ...message, sentAt: now, media: [], pressed: { message: pressed, refuse } });
  const said = words === undefined ? {} : { text: head(words, NOTICE_CHARS_MAX), show_alert: true };
  // If this fails, no harm is done: the sign ends by itself.
  void bot.call((methods, signal) =>
    methods.answerCallbackQuery({ callback_query_id: queryId, ...said }, signal),
  );
}

/** Logs events that may need an operator. */
function note(
  reading: Exclude<Reading, { kind: "message" | "press" }>,
  updateId: number,
  { log }: World,
  { accountId }: TelegramAccountContext,
): void {
  const account = accountName(TELEGRAM, accountId);
  switch (reading.kind) {
    case "moved": {
      const { from, to } = reading;
      log.warn({ account, from, to }, "a group became a supergroup: change its id in the settings");
      return;
    }
    case "membership": {
      const { chatId, status } = reading;
      log.info({ account, chat: chatId, status }, "the bot's status in a chat has changed");
      return;
    }
    case "skipped": {
      const { why, odd } = reading;
      if (odd) log.warn({ account, updateId, why }, "an invalid update was skipped");
      else log.debug({ account, updateId, why }, "an update was skipped");
    }
  }
}
