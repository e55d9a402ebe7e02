// Implements `parley inbox --hook PROGRAM`: called as a hook of a coding agent, it prints the inbox of the
// window's session in the format of that program's hooks. The hook of a program's plugin does not know under
// which name the program has joined, and finds its window among all of the plugin. Also implements
// `parley inbox --window N`, which wakes a window. A hook must never break the user's program: if the
// gateway, the record or the window is missing, the hook prints nothing and its exit code is 0. Each message
// is printed once per window, by the hook that moves the window's cursor.

import { join } from "node:path";
import { type Cli, EXIT, stopOnSignals } from "../../cli/cli.ts";
import { INBOX_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { pause } from "../../world/pause.ts";
import { tellNews, type WatchedWindow } from "./news.ts";
import {
  blocked,
  type HookOutput,
  NUDGE,
  PROGRAM,
  type ProgramId,
  startsTurn,
  WAIT_MAX_SECONDS,
} from "./programs.ts";
import { isOfPlugin, joinedFolder, listRecords, readRecord } from "./record.ts";
import { renewTokens } from "./tokens.ts";
import { startKeeper, wakeWhenIdle } from "./wake.ts";
import { ancestorsOf, isOpen, noteConversation, takeOver, windowOf } from "./windows.ts";

interface InboxOptions {
  readonly hook?: ProgramId;
  readonly joined?: string;
  readonly window?: number;
  readonly limit: number;
}

const INPUT_MAX_CHARS = 1024 * 1024;
/** Interval between two checks of the files that describe the windows. */
const LOOK_EVERY_MS = 1_000;
const AWAY_EVERY_MS = 10_000;
/** Maximum wait for a starting program to start its MCP server. */
const WINDOW_WITHIN_MS = 30_000;

/** The fields of the event that the program writes to the hook. */
interface HookEvent {
  readonly name: string;
  /** Id of the conversation. */
  readonly conversation?: string;
  readonly prompt?: string;
}

/** Reads the event that the program writes to the hook. */
async function eventOf(input: NodeJS.ReadableStream): Promise<HookEvent> {
  let text = "";
  for await (const piece of input) {
    text += String(piece);
    if (text.length > INPUT_MAX_CHARS) return { name: "" };
  }
  const event = jsonOf(text);
  if (!isObject(event)) return { name: "" };
  const { hook_event_name: name, session_id: id, prompt } = event;
  return {
    name: typeof name === "string" ? name : "",
    ...(typeof id === "string" ? { conversation: id } : {}),
    ...(typeof prompt === "string" ? { prompt } : {}),
  };
}

/** The coding agent's window in which a hook runs. */
interface HookWindow extends WatchedWindow {
  /** Name under which the program has joined. */
  readonly joined: string;
  /** True if the program runs without a window, to continue the window's conversation. */
  readonly continued: boolean;
}

/**
 * Finds the window in which a hook runs. `joined`: the name under which its program has joined. Undefined in
 * the hook of a plugin.
 */
async function hookWindow(
  cli: Cli,
  hook: ProgramId,
  joined: string | undefined,
  waitsMs: number,
): Promise<HookWindow | undefined> {
  const { world, home, machine } = cli.parts;
  const ancestors = ancestorsOf(process.ppid, machine.platform);
  const until = world.clock.monotonic() + waitsMs;
  for (;;) {
    const records =
      joined === undefined
        ? listRecords(home).filter((record) => record.program === hook && isOfPlugin(record))
        : [readRecord(home, joined)].filter((record) => record !== undefined);
    const [nearest] = records
      .flatMap((known) => {
        const folder = join(joinedFolder(home), known.handle);
        const window = windowOf(folder, ancestors);
        return window === undefined ? [] : [{ known, folder, window }];
      })
      .sort((a, b) => a.window.distance - b.window.distance);
    if (nearest !== undefined) {
      const { known, folder, window } = nearest;
      const token = (await renewTokens(cli, known)).tokens[window.number - 1];
      if (token !== undefined) return { folder, token, joined: known.handle, ...window };
    }
    const isLate = world.clock.monotonic() >= until;
    if (isLate || (joined !== undefined && records.length === 0)) return undefined;
    await pause(world.clock, LOOK_EVERY_MS, undefined, "alive");
  }
}

/**
 * Stores the id of the window's conversation, with which `wake.ts` wakes the window, and whether a turn is in
 * progress.
 */
function noteEvent(cli: Cli, { folder, number }: WatchedWindow, event: HookEvent, busy: boolean): void {
  if (event.conversation === undefined) return;
  const { QWEN_CODE_MESSAGING_SOCKET: socket, QWEN_CODE_MESSAGING_TOKEN: token } = cli.parts.env;
  noteConversation(folder, number, { id: event.conversation, busy, ...optional({ socket, token }) });
}

/** Writes a text completely. Resolves to false if the reader has closed the stream. */
function writeWhole(stream: NodeJS.WritableStream, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    stream.once("error", () => resolve(false));
    stream.write(text, (error) => resolve(error === undefined || error === null));
  });
}

async function print(cli: Cli, { stdout, stderr }: HookOutput): Promise<boolean> {
  const { parts } = cli;
  const outputs = [
    ...(stdout === undefined ? [] : [writeWhole(parts.stdout, stdout)]),
    ...(stderr === undefined ? [] : [writeWhole(parts.stderr, stderr)]),
  ];
  return (await Promise.all(outputs)).every(Boolean);
}

/**
 * Waits until messages were passed to the program. Also ends if another hook takes over, or the window is
 * closed.
 */
async function waitForNews(
  cli: Cli,
  place: WatchedWindow,
  stop: AbortSignal,
  write: (text: string) => Promise<boolean>,
): Promise<void> {
  const { clock, log } = cli.parts.world;
  const isOurs = takeOver(place.folder, place.number, "waiter");
  const over = new AbortController();
  const ends = AbortSignal.any([stop, over.signal]);
  const watch = async (): Promise<void> => {
    while (!ends.aborted && isOpen(place.folder, place.number) && isOurs())
      await pause(clock, LOOK_EVERY_MS, ends, "alive");
    over.abort();
  };
  void watch();
  const until = clock.monotonic() + WAIT_MAX_SECONDS * 1_000;
  let hasPrinted = false;
  const writeOnce = (text: string): Promise<boolean> => {
    hasPrinted = true;
    return write(text);
  };
  try {
    while (!ends.aborted && clock.monotonic() < until) {
      const telling = { stop: ends, waitSeconds: INBOX_WAIT_SECONDS, write: writeOnce };
      const done = await tellNews(cli, place, telling).catch((error: unknown) => {
        // The program reads only one answer of a hook.
        if (hasPrinted) throw error;
        log.debug({ err: error }, "a waiting hook could not read the inbox");
        return "away" as const;
      });
      if (done === "told") return;
      // A gateway that is stopping ends the wait at once. So pause even if it answered.
      await pause(clock, done === "away" ? AWAY_EVERY_MS : LOOK_EVERY_MS, ends, "alive");
    }
  } finally {
    over.abort();
  }
}

async function tellInbox(cli: Cli, hook: ProgramId, joined: string | undefined): Promise<number> {
  const { parts } = cli;
  using stop = stopOnSignals(parts);
  try {
    const program = PROGRAM[hook];
    const event = await eventOf(parts.stdin);
    const mayWait = program.waits(parts.env, event.name);
    const place = await hookWindow(cli, hook, joined, mayWait ? WINDOW_WITHIN_MS : 0);
    if (place === undefined) return EXIT.done;
    noteEvent(cli, place, event, startsTurn(event.name));
    if (event.conversation !== undefined && !place.continued) await startKeeper(cli, place.joined, place);
    let code: number = EXIT.done;
    const write = async (text: string): Promise<boolean> => {
      const output = program.tell(text, event.name);
      // A turn is now in progress: messages that are printed at the end of a turn make the model continue.
      noteEvent(cli, place, event, event.name !== "SessionStart");
      code = output.code;
      return print(cli, output);
    };
    if (mayWait) {
      // If there is no window, nothing reads the output of this hook. Then the prompt tells the model to read
      // its inbox.
      if (!place.continued) await waitForNews(cli, place, stop.signal, write);
      return code;
    }
    const done = await tellNews(cli, place, { stop: stop.signal, write });
    if (done === "none" && event.prompt === NUDGE && !place.continued) {
      noteEvent(cli, place, event, false);
      await print(cli, blocked("Parley: the messages were shown already."));
    }
    return code;
  } catch (error) {
    parts.world.log.debug({ err: error }, "a hook could not read the inbox");
    return EXIT.done;
  }
}

/** Prints the attention list, or runs as the hook of a joined program. */
export async function showInbox(cli: Cli, { hook, joined, window, limit }: InboxOptions): Promise<number> {
  if (joined !== undefined && window !== undefined) {
    const { parts } = cli;
    const record = readRecord(parts.home, joined);
    if (record === undefined) {
      return cli.fail({ code: "not_found", error: `no program has joined as ${joined}` });
    }
    using stop = stopOnSignals(parts);
    await wakeWhenIdle(cli, record, window, stop.signal);
    return EXIT.done;
  }
  if (hook !== undefined && window === undefined) return tellInbox(cli, hook, joined);
  if (joined !== undefined || window !== undefined)
    return cli.misuse("--joined must be used with --hook or --window, and --window requires --joined");
  const { listAttention } = await import("../../cli/commands/sessions/attention.ts");
  return listAttention(cli, limit);
}
