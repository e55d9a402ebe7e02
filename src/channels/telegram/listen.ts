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

import { fieldsOf, integerOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { accountName, type Ear, ListenProblem } from "../accounts.ts";
import { type ChannelHost, TOO_SOON } from "../channel.ts";
import { type Bot, type Called, NO_SERVER_WORDS } from "./bot.ts";
import { mediaOf } from "./media.ts";
import { failureWords, isTokenWrong, tokenWords } from "./send.ts";
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
/** Maximum number of consecutive failures, and the first and longest pause after one. */
const FAILURES_MAX = 4;
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;
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

/** The read position in the updates. */
interface ReadPosition {
  /** The offset to send: it confirms all updates with smaller ids. Absent: confirm nothing. */
  offset?: number;
  /** The album at the end of the last batch: the id of its first update, and the number of its updates. */
  album?: { readonly firstId: number; readonly parts: number };
  /** The last album at the end of a batch that was to be stored. No picture is joined to it any more. */
  sealed: string | undefined;
  failures: number;
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
export async function listen(bot: Bot, host: ChannelHost, ear: Ear): Promise<void> {
  const { clock } = host.world;
  const reader = await introduce(bot, host, ear.signal);
  // The caller has stopped the listener while it prepared the bot.
  if (reader === undefined) return;
  const sealed = await host.cursor(bot.accountId, SEALED);
  const place: ReadPosition = { failures: 0, sealed };
  let isFirst = true;
  while (!ear.signal.aborted) {
    const waits = !isFirst && place.album === undefined;
    const askedAt = clock.monotonic();
    const answer = await fetchUpdates(bot, place, waits ? POLL_SECONDS : 0, ear.signal);
    if (ear.signal.aborted) return;
    if (answer.kind !== "done") {
      await endure(answer, place, host.world, ear.signal);
      continue;
    }
    isFirst = false;
    const updates = listOf(answer.value);
    if (Array.isArray(answer.value)) {
      ear.ready();
      await take(updates, place, { bot, host, reader, signal: ear.signal });
    } else await stumble(NO_SERVER_WORDS, place, host.world, ear.signal);
    // Pause if the server did not wait, to prevent a busy loop.
    const isHasty = waits && updates.length === 0 && clock.monotonic() - askedAt < HASTY_MS;
    if (isHasty) await pause(host.world.clock, HASTY_MS, ear.signal);
  }
}

function fetchUpdates(
  bot: Bot,
  { offset }: ReadPosition,
  timeout: number,
  signal: AbortSignal,
): Promise<Called<unknown>> {
  const asked = { timeout, limit: UPDATES_MAX, allowed_updates: UPDATE_KINDS };
  const timeoutMs = timeout * 1_000 + POLL_GRACE_MS;
  return bot.call(
    (methods, either) => methods.getUpdates(offset === undefined ? asked : { ...asked, offset }, either),
    { signal, timeoutMs },
  );
}

/** Waits after a failed request. Throws if the failure is permanent, or after too many failures in a row. */
async function endure(
  failure: Exclude<Called<unknown>, { kind: "done" }>,
  place: ReadPosition,
  world: World,
  signal: AbortSignal,
): Promise<void> {
  if (failure.kind === "refused") {
    if (isTokenWrong(failure)) throw new ListenProblem(tokenWords(failure), true);
    if (failure.code === 409) throw new ListenProblem(conflictWords(failure.why));
    if (failure.code === 429) {
      const askedMs = Math.max(HASTY_MS, failure.afterMs ?? PAUSE_MAX_MS);
      return pause(world.clock, Math.min(askedMs, ASKED_PAUSE_MAX_MS), signal);
    }
  }
  await stumble(failureWords(failure), place, world, signal);
}

function conflictWords(why: string): string {
  return /webhook/i.test(why)
    ? "a web hook was set for the bot, so messages go there. Parley removes the hook at the next attempt"
    : "another program fetches this bot's messages: use a separate bot for each program";
}

/** Counts a failure and waits. Throws after too many failures in a row. */
async function stumble(why: string, place: ReadPosition, world: World, signal: AbortSignal): Promise<void> {
  place.failures += 1;
  if (place.failures >= FAILURES_MAX) throw new ListenProblem(why);
  await pause(world.clock, Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 4 ** (place.failures - 1)), signal);
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

/** Returns the album at the end of the batch, if there is one. It may still grow. */
function openAlbum({ items }: Batch): Item | undefined {
  const last = items.at(-1);
  return last?.reading.kind === "message" && last.reading.albumId !== undefined ? last : undefined;
}

interface Taker {
  readonly bot: Bot;
  readonly host: ChannelHost;
  readonly reader: TelegramAccountContext;
  readonly signal: AbortSignal;
}

/** Processes the updates of one response, and moves the position behind those that are stored. */
async function take(updates: readonly unknown[], place: ReadPosition, taker: Taker): Promise<void> {
  const { host, signal } = taker;
  const { world } = host;
  const batch = readBatch(updates, taker.reader, place.sealed);
  if (batch.nameless > 0) {
    world.log.warn({ channel: "telegram", count: batch.nameless }, "updates without an id were skipped");
  }
  if (batch.items.length === 0) {
    delete place.album;
    // All updates are confirmed, and the platform may continue with any id. So forget the offset.
    delete place.offset;
    if (updates.length > 0) return stumble(NO_SERVER_WORDS, place, world, signal);
    place.failures = 0;
    return;
  }
  const album = openAlbum(batch);
  const isFull = updates.length >= UPDATES_MAX;
  const isStill = album?.firstId === place.album?.firstId && album?.parts === place.album?.parts;
  // Also wait for an album at the end of a full response: its next pictures are in the next one.
  const waiting = !isStill && batch.items.length > (isFull ? 1 : 0) ? album : undefined;
  const items = batch.items.filter((item) => item !== waiting);
  const left = (await seal(album === waiting ? undefined : album, place, taker))
    ? await takeItems(items, taker)
    : items[0]?.firstId;
  const before = place.offset;
  place.offset = left ?? waiting?.firstId ?? (batch.items.at(-1)?.lastId ?? 0) + 1;
  delete place.album;
  if (left !== undefined) {
    return stumble("messages could not be stored: Telegram keeps them", place, world, signal);
  }
  if (waiting !== undefined) {
    place.album = { firstId: waiting.firstId, parts: waiting.parts };
    return pause(world.clock, ALBUM_MS, signal);
  }
  if (place.offset === before) {
    return stumble("Telegram sends confirmed messages again", place, world, signal);
  }
  place.failures = 0;
}

/** Stores the size of an album that is about to be stored. Returns false if that fails. */
async function seal(album: Item | undefined, place: ReadPosition, { bot, host }: Taker): Promise<boolean> {
  if (album?.reading.kind !== "message") return true;
  const sealed = sealOf(album.reading.message, album.parts);
  if (sealed === place.sealed) return true;
  try {
    await host.remember(bot.accountId, SEALED, sealed);
    place.sealed = sealed;
    return true;
  } catch (error) {
    const account = accountName("telegram", bot.accountId);
    host.world.log.warn({ err: error, account }, "an album could not be stored; Telegram keeps it");
    return false;
  }
}

/**
 * Processes the items of each chat in order. Returns the id of the first update that could not be stored, or
 * undefined.
 */
async function takeItems(items: readonly Item[], taker: Taker): Promise<number | undefined> {
  const byChat = new Map<string, Item[]>();
  for (const item of items) {
    const chat = "message" in item.reading ? item.reading.message.chat.id : "";
    byChat.set(chat, [...(byChat.get(chat) ?? []), item]);
  }
  const failed = await Promise.all([...byChat.values()].map((ofChat) => takeInOrder(ofChat, taker)));
  const ids = failed.filter((id) => id !== undefined);
  return ids.length === 0 ? undefined : Math.min(...ids);
}

async function takeInOrder(items: readonly Item[], taker: Taker): Promise<number | undefined> {
  const { bot, host, reader } = taker;
  for (const { firstId, reading } of items) {
    if (!("message" in reading)) {
      note(reading, firstId, host.world, reader);
      continue;
    }
    try {
      if (reading.kind === "press") await takePress(reading, taker);
      else {
        const media = reading.files.map((file) => mediaOf(bot, file));
        await host.receive({ ...reading.message, media });
      }
    } catch (error) {
      host.world.log.warn(
        { err: error, account: accountName("telegram", bot.accountId) },
        "a message could not be stored; Telegram keeps it",
      );
      return firstId;
    }
  }
  return undefined;
}

/** Takes the command of a pressed button, and ends the waiting sign that the button then shows. */
async function takePress(
  { queryId, isShown, sentAt, message, pressed }: Extract<Reading, { kind: "press" }>,
  { bot, host }: Taker,
): Promise<void> {
  const now = host.world.clock.now();
  let words: string | undefined;
  const refuse = (why: string): void => {
    words = why;
  };
  if (!isShown) refuse(NOT_SHOWN);
  else if (now - sentAt < PRESS_AFTER_MS) refuse(TOO_SOON);
  else await host.receive({ ...message, sentAt: now, media: [], pressed: { message: pressed, refuse } });
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
  const account = accountName("telegram", accountId);
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
