// Owns how messages are fetched from Telegram: one request that waits, again and again.
// TL1: an update is confirmed, by the offset of the next request, after it was stored (CH1 of
//      channel.ts); what could not be stored comes again, and what follows it in its chat waits.
// TL2: an offset is only given to confirm something: when the platform counts anew, nothing is missed.
// TL3: trouble that may pass is waited out a little; trouble that lasts ends the listening, with its reason.
// TL4: chats don't wait for each other's files: each is stored in its order, all at the same time.

import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { accountName, type Ear, ListenProblem } from "../accounts.ts";
import type { ChannelHost } from "../channel.ts";
import { listOf } from "../fields.ts";
import { type Item, openAlbum, readBatch } from "./batch.ts";
import { type Bot, type Called, NO_SERVER_WORDS } from "./bot.ts";
import { mediaOf } from "./media.ts";
import { failureWords, isTokenWrong, tokenWords } from "./send.ts";
import { introduce } from "./start.ts";
import { type Reader, type Reading, UPDATE_KINDS } from "./update.ts";

/** How long the platform lets a request wait for news. */
const POLL_SECONDS = 25;
/** How much longer than that an answer may take before it is given up. */
const POLL_GRACE_MS = 10_000;
/** An empty answer that is there sooner did not wait. It is the shortest pause that can be asked for, too. */
const HASTY_MS = 1_000;
const UPDATES_MAX = 100;
/** How long an album is left alone before it is looked at again. */
const ALBUM_MS = 500;
/** Failures in a row that are waited out, and the first and longest pause behind one. */
const FAILURES_MAX = 4;
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;
/** The longest pause that the platform can ask for. */
const ASKED_PAUSE_MAX_MS = 10 * 60_000;

/** Where the reading stands. */
interface Place {
  /** Confirms all updates before it. */
  offset?: number;
  /** The album at the end of the last batch, and how large it was. */
  album?: { readonly firstId: number; readonly parts: number };
  failures: number;
}

/** Listens as one bot, until the signal fires or nothing more is to be hoped for. */
export async function listen(bot: Bot, host: ChannelHost, ear: Ear): Promise<void> {
  const { clock } = host.world;
  const reader = await introduce(bot, host, ear.signal);
  // Stopped while it began.
  if (reader === undefined) return;
  const place: Place = { failures: 0 };
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
    // A server that does not let requests wait must not be asked without end.
    const isHasty = waits && updates.length === 0 && clock.monotonic() - askedAt < HASTY_MS;
    if (isHasty) await pause(host.world.clock, HASTY_MS, ear.signal);
  }
}

function fetchUpdates(
  bot: Bot,
  { offset }: Place,
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

/** Waits after a failure, or throws: it lasts, or there were too many in a row. */
async function endure(
  failure: Exclude<Called<unknown>, { kind: "done" }>,
  place: Place,
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
    ? "a web hook was set for the bot meanwhile: messages go there. It is removed at the next attempt"
    : "another program fetches this bot's messages: give each program a bot of its own";
}

/** One more failure in a row. */
async function stumble(why: string, place: Place, world: World, signal: AbortSignal): Promise<void> {
  place.failures += 1;
  if (place.failures >= FAILURES_MAX) throw new ListenProblem(why);
  await pause(world.clock, Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 4 ** (place.failures - 1)), signal);
}

interface Taker {
  readonly bot: Bot;
  readonly host: ChannelHost;
  readonly reader: Reader;
  readonly signal: AbortSignal;
}

/** Deals with one answer, and moves the place behind what was stored. */
async function take(updates: readonly unknown[], place: Place, taker: Taker): Promise<void> {
  const { host, signal } = taker;
  const { world } = host;
  const batch = readBatch(updates, taker.reader);
  if (batch.nameless > 0) {
    world.log.warn({ channel: "telegram", count: batch.nameless }, "updates without an id were skipped");
  }
  if (batch.items.length === 0) {
    delete place.album;
    // All of it is confirmed: what comes next has any id.
    delete place.offset;
    if (updates.length > 0) return stumble(NO_SERVER_WORDS, place, world, signal);
    place.failures = 0;
    return;
  }
  const album = openAlbum(batch);
  const isStill = album?.firstId === place.album?.firstId && album?.parts === place.album?.parts;
  const waiting = album !== undefined && !isStill && updates.length < UPDATES_MAX ? album : undefined;
  const items = batch.items.filter((item) => item !== waiting);
  const left = await takeItems(items, taker);
  const before = place.offset;
  place.offset = left ?? waiting?.firstId ?? (batch.items.at(-1)?.lastId ?? 0) + 1;
  delete place.album;
  if (left !== undefined) {
    return stumble("messages could not be stored: they wait at Telegram", place, world, signal);
  }
  if (waiting !== undefined) {
    place.album = { firstId: waiting.firstId, parts: waiting.parts };
    return pause(world.clock, ALBUM_MS, signal);
  }
  if (place.offset === before) {
    return stumble("Telegram brings messages again that were confirmed", place, world, signal);
  }
  place.failures = 0;
}

/** Deals with each; the first update that could not be stored is the answer. */
async function takeItems(items: readonly Item[], taker: Taker): Promise<number | undefined> {
  const byChat = new Map<string, Item[]>();
  for (const item of items) {
    const chat = item.reading.kind === "message" ? item.reading.message.chat.id : "";
    byChat.set(chat, [...(byChat.get(chat) ?? []), item]);
  }
  const failed = await Promise.all([...byChat.values()].map((ofChat) => takeInOrder(ofChat, taker)));
  const ids = failed.filter((id) => id !== undefined);
  return ids.length === 0 ? undefined : Math.min(...ids);
}

async function takeInOrder(items: readonly Item[], taker: Taker): Promise<number | undefined> {
  const { bot, host, reader } = taker;
  for (const { firstId, reading } of items) {
    if (reading.kind !== "message") {
      note(reading, firstId, host.world, reader);
      continue;
    }
    try {
      const media = reading.files.map((file) => mediaOf(bot, file));
      await host.receive({ ...reading.message, media });
    } catch (error) {
      host.world.log.warn(
        { err: error, account: accountName("telegram", bot.accountId) },
        "a message could not be stored; it waits at Telegram",
      );
      return firstId;
    }
  }
  return undefined;
}

/** What an operator may have to act on. */
function note(
  reading: Exclude<Reading, { kind: "message" }>,
  updateId: number,
  { log }: World,
  { accountId }: Reader,
): void {
  const account = accountName("telegram", accountId);
  switch (reading.kind) {
    case "moved": {
      const { from, to } = reading;
      log.warn({ account, from, to }, "a group became a supergroup: settings have to name its new id");
      return;
    }
    case "membership": {
      const { chatId, status } = reading;
      log.info({ account, chat: chatId, status }, "what the bot is in a chat has changed");
      return;
    }
    case "skipped": {
      const { why, odd } = reading;
      if (odd) log.warn({ account, updateId, why }, "an update that makes no sense was skipped");
      else log.debug({ account, updateId, why }, "an update was skipped");
    }
  }
}
