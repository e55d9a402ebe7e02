// Implements `parley inbox --hook PROGRAM`: reads the inbox of the window's session and prints it in the
// format that the program expects from a hook.
// A hook must never break the user's program: if the gateway, the record or the window is missing, it prints
// nothing and its exit code is 0. Each message is printed once per window, by the hook that moves the
// window's cursor.

import { join } from "node:path";
import { INBOX_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { pause } from "../../world/pause.ts";
import { findAddress } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";
import { askInbox, type InboxMessage } from "../join/ask-inbox.ts";
import { PROGRAM, type ProgramId, WAIT_MAX_SECONDS } from "../join/programs.ts";
import { joinedFolder, readRecord } from "../join/record.ts";
import { cursorOf, isOpen, moveCursor, takeWait, windowOf } from "../join/windows.ts";

interface InboxOptions {
  readonly hook: ProgramId;
  readonly joined: string;
}

const INPUT_MAX_CHARS = 1024 * 1024;
const ASK_MAX_MS = 8_000;
/** Interval at which the files of the windows are checked. */
const LOOK_EVERY_MS = 1_000;
const AWAY_EVERY_MS = 10_000;
/** Time for a starting program to start its MCP server. */
const WINDOW_WITHIN_MS = 30_000;

/** Reads the event that the program writes to the hook. */
async function eventOf(input: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const piece of input) {
    text += String(piece);
    if (text.length > INPUT_MAX_CHARS) return "";
  }
  const event = jsonOf(text);
  return isObject(event) && typeof event.hook_event_name === "string" ? event.hook_event_name : "";
}

/** Formats the messages for the model. */
function wordsFor(messages: readonly InboxMessage[]): string {
  const parts = messages.map(({ id, from, kind, text }) => {
    const author = from === undefined ? kind : `session ${from}`;
    return `Message ${id} from ${author}:\n${text}`;
  });
  const how = "To answer a session, call the Parley tool sessions_send with its key as sessionKey.";
  return ["New messages in your Parley inbox.", ...parts, how].join("\n\n");
}

/** The window of the program that called the hook. */
interface Place {
  readonly folder: string;
  readonly number: number;
  readonly token: string;
}

async function placeOf(cli: Cli, handle: string, waitsMs: number): Promise<Place | undefined> {
  const { world, home, machine } = cli.parts;
  const record = readRecord(home, handle);
  const folder = join(joinedFolder(home), handle);
  const until = world.clock.now() + waitsMs;
  for (;;) {
    const number = windowOf(folder, process.ppid, machine.platform);
    const token = number === undefined ? undefined : record?.tokens[number - 1];
    if (number !== undefined && token !== undefined) return { folder, number, token };
    if (record === undefined || world.clock.now() >= until) return undefined;
    await pause(world.clock, LOOK_EVERY_MS, undefined, "alive");
  }
}

/**
 * Returns the new messages if this hook moved the window's cursor past them. Returns an empty list if another
 * hook was faster, and undefined if the gateway is unreachable. `waitSeconds`: maximum wait for new messages.
 */
async function takeNews(
  cli: Cli,
  place: Place,
  stop: AbortSignal,
  waitSeconds?: number,
): Promise<readonly InboxMessage[] | undefined> {
  const { clock } = cli.parts.world;
  const address = await findAddress(cli);
  if (!address.ok) return undefined;
  const late = new AbortController();
  const timer = clock.at(clock.now() + ASK_MAX_MS + (waitSeconds ?? 0) * 1_000, () => late.abort());
  const url = `${address.value.url.replace(/^ws/, "http")}/mcp`;
  const after = cursorOf(place.folder, place.number);
  const signal = AbortSignal.any([stop, late.signal]);
  const page = await askInbox({ url, token: place.token }, { after, ...optional({ waitSeconds }) }, signal);
  timer.cancel();
  if (page === undefined) return undefined;
  const to = page.nextAfter;
  if (page.messages.length === 0 || to === undefined || to === after) return [];
  const isOurs = await moveCursor(place.folder, place.number, { from: after, to }, clock);
  return isOurs ? page.messages : [];
}

/** Waits until messages arrive, another hook takes over, or the window is closed. */
async function waitForNews(cli: Cli, place: Place, stop: AbortSignal): Promise<readonly InboxMessage[]> {
  const { clock } = cli.parts.world;
  const isOurs = takeWait(place.folder, place.number);
  const over = new AbortController();
  const ends = AbortSignal.any([stop, over.signal]);
  const watch = async (): Promise<void> => {
    while (!ends.aborted && isOpen(place.folder, place.number) && isOurs())
      await pause(clock, LOOK_EVERY_MS, ends, "alive");
    over.abort();
  };
  void watch();
  const until = clock.now() + WAIT_MAX_SECONDS * 1_000;
  try {
    while (!ends.aborted && clock.now() < until) {
      const news = await takeNews(cli, place, ends, INBOX_WAIT_SECONDS);
      if (news !== undefined && news.length > 0) return news;
      // A stopping gateway also ends the wait at once, so pause in both cases.
      await pause(clock, news === undefined ? AWAY_EVERY_MS : LOOK_EVERY_MS, ends, "alive");
    }
    return [];
  } finally {
    over.abort();
  }
}

export async function tellInbox(cli: Cli, _args: readonly string[], options: InboxOptions): Promise<number> {
  const { parts } = cli;
  const stop = new AbortController();
  const releases = (["SIGINT", "SIGTERM"] as const).map((name) => parts.onSignal(name, () => stop.abort()));
  try {
    const program = PROGRAM[options.hook];
    const event = await eventOf(parts.stdin);
    const waits = program.waits(parts.env);
    const place = await placeOf(cli, options.joined, waits ? WINDOW_WITHIN_MS : 0);
    if (place === undefined) return EXIT.done;
    const news = waits ? await waitForNews(cli, place, stop.signal) : await takeNews(cli, place, stop.signal);
    if (news === undefined || news.length === 0) return EXIT.done;
    const { stdout, stderr, code } = program.tell(wordsFor(news), event);
    if (stdout !== undefined) parts.stdout.write(stdout);
    if (stderr !== undefined) parts.stderr.write(stderr);
    return code;
  } catch (error) {
    parts.world.log.debug({ err: error }, "a hook could not read the inbox");
    return EXIT.done;
  } finally {
    for (const release of releases) release();
  }
}
