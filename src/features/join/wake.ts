// Wakes the window of a joined program when its inbox has a message that no program has received yet.
// WK1: the process that waits for messages was started by the owner's coding agent, as its MCP server or by
//      its hook. The gateway starts no program, and the sender of a message cannot choose a program.
// WK2: messages that wait together cause one attempt and at most one notification. The next attempt follows
//      only after all of these messages were read.
// WK3: a program is started without a window only if the owner allowed it, never during a turn, and one at a
//      time for each window.
// WK4: an error does not end the wait for messages, which continues after a pause.

import { spawn } from "node:child_process";
import { connect } from "node:net";
import { join } from "node:path";
import { loadedSettings } from "../../cli/address.ts";
import type { Cli } from "../../cli/cli.ts";
import { showOnDesktop } from "../../cli/desktop.ts";
import { INBOX_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import { grownPause } from "../../core/backoff.ts";
import { optional } from "../../core/optional.ts";
import type { HostProgramEnd } from "../../core/shapes/host-program.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import { pause } from "../../world/pause.ts";
import { callTool } from "./ask-inbox.ts";
import { readNews, tellNews, upstreamOf, type WatchedWindow } from "./news.ts";
import { NUDGE, PROGRAM } from "./programs.ts";
import { type JoinRecord, joinedFolder, readRecord, startWords } from "./record.ts";
import { renewTokens, windowToken } from "./tokens.ts";
import {
  type Conversation,
  continueWindow,
  conversationOf,
  cursorOf,
  hasKeeper,
  isContinued,
  isOpen,
  skipNews,
  takeOver,
} from "./windows.ts";

/** Time that the hooks get to pass a message on, at the end of a turn or at the start of a program. */
const GRACE_MS = 3_000;
/**
 * Time limit for the program to receive the messages after its window was woken. After this time, the attempt
 * has failed.
 */
const TAKEN_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
const AGAIN_EVERY_MS = 10_000;
/** Pause after an error. It doubles with each further error, up to the maximum. */
const FAILED_PAUSE_MS = 1_000;
const FAILED_PAUSE_MAX_MS = 5 * 60_000;
/** Time limit of a program that runs without a window. */
const RUN_MAX_MS = 30 * 60_000;
const QUEUE_MAX_MS = 30_000;
/** A turn that takes longer counts as interrupted. */
const TURN_MAX_MS = 30 * 60_000;
const OUTPUT_MAX_BYTES = 4_000;
const REASON_MAX_CHARS = 300;
const SOCKET_MAX_MS = 5_000;
/**
 * Environment variables that a coding agent sets for its child processes. They are removed, because a coding
 * agent that finds them knows that another instance started it.
 */
const OF_PARENT = new RegExp(
  "^(CLAUDECODE|CLAUDE_(PID|ENV_FILE|CODE_(ENTRYPOINT|SESSION|CHILD|MESSAGING))" +
    "|QWEN_CODE_(MESSAGING|SESSION|AGENT|PROMPT|NO_RELAUNCH|PRIVATE)|GEMINI_(SESSION|CLI_NO_RELAUNCH))",
);

interface Waker extends WatchedWindow {
  readonly cli: Cli;
  readonly record: JoinRecord;
  /** The newest settings that could be read. Without any, only the desktop is used. */
  settings: Pick<Settings, "owners" | "joined">;
  readonly stop: AbortSignal;
}

/**
 * Starts a process that waits for messages even after the window was closed. Does so only if the settings
 * allow Parley to continue the window's program. The process inherits the environment of the hook that starts
 * it, because programs pass fewer variables to an MCP server.
 */
export async function startKeeper(
  cli: Cli,
  handle: string,
  { folder, number }: WatchedWindow,
): Promise<void> {
  const record = readRecord(cli.parts.home, handle);
  if (record === undefined || hasKeeper(folder, number)) return;
  let { wake } = record;
  if (wake === undefined) {
    const settings = await loadedSettings(cli);
    wake = settings.ok ? settings.value.joined.wake : undefined;
  }
  if (wake !== "resume") return;
  const [node = "", ...words] = startWords(cli);
  const args = [...words, "inbox", "--joined", handle, "--window", String(number)];
  const child = spawn(node, args, { cwd: record.folder, detached: true, stdio: "ignore" });
  child.once("error", (error) => cli.parts.world.log.debug({ err: error }, "a window could not be woken"));
  child.unref();
}

/** Reads the settings again, and keeps the earlier ones if the file has problems. */
async function refresh(waker: Waker): Promise<void> {
  const settings = await loadedSettings(waker.cli);
  if (settings.ok) waker.settings = settings.value;
}

const mayResume = ({ record, settings }: Waker): boolean =>
  (record.wake ?? settings.joined.wake) === "resume";

const isOpenNow = ({ folder, number }: Waker): boolean => isOpen(folder, number);

function environment({ cli: { parts } }: Waker): Record<string, string> {
  const known = Object.entries(parts.env).filter(
    ([name, value]) => value !== undefined && !OF_PARENT.test(name),
  );
  return Object.fromEntries(known) as Record<string, string>;
}

/** Runs a command in the project folder. If the command fails, returns the reason. */
async function runIn(waker: Waker, argv: readonly string[], timeoutMs: number): Promise<string | undefined> {
  const { cli, record, stop } = waker;
  let end: HostProgramEnd;
  try {
    end = await cli.parts.runProgram({
      argv,
      cwd: record.folder,
      env: environment(waker),
      outputMaxBytes: OUTPUT_MAX_BYTES,
      timeoutMs,
      signal: stop,
    });
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return `could not start \`${argv[0]}\`: ${missing ? "command not found" : (error as Error).message}`;
  }
  if (end.ending === "ended" && end.exitCode === 0) return undefined;
  const said = (end.stderr.trim() || end.stdout.trim()).split("\n").at(-1) ?? "";
  const how = end.ending === "ended" ? `exit code ${end.exitCode ?? end.signal}` : end.ending;
  return `\`${argv[0]}\` failed (${how})${said === "" ? "" : `: ${cut(said, REASON_MAX_CHARS)}`}`;
}

/**
 * Passes the messages to a window of Qwen Code, over the socket that Qwen Code opens for its own child
 * processes. If this fails, returns the reason.
 */
async function tellBySocket(waker: Waker, { socket, token }: Conversation): Promise<string | undefined> {
  const { clock, ids } = waker.cli.parts.world;
  const write = (text: string): Promise<boolean> =>
    new Promise((resolve) => {
      const door = connect(socket ?? "");
      const timer = clock.after(SOCKET_MAX_MS, () => door.destroy(new Error("no answer")), "alive");
      door.once("error", () => resolve(false));
      door.once("close", () => {
        timer.cancel();
        resolve(true);
      });
      const message = { role: "user", content: text };
      const frames = [
        { msgV: 1, type: "auth", token },
        { msgV: 1, msgId: ids.uuid(), type: "user", priority: "next", message },
      ];
      door.end(`${frames.map((frame) => JSON.stringify(frame)).join("\n")}\n`);
      door.resume();
    });
  const done = await tellNews(waker.cli, waker, { stop: waker.stop, write });
  return done === "told" ? undefined : "its window did not accept the message";
}

/**
 * Starts a turn in an open window, in the way that the window's program supports. If this fails, returns the
 * reason.
 */
async function wakeWindow(waker: Waker, conversation: Conversation | undefined): Promise<string | undefined> {
  const { door } = PROGRAM[waker.record.program];
  if (conversation === undefined) return "none of its hooks has run in this window yet";
  if (door === "queue") {
    const argv = ["codex", "queue", "--thread", conversation.id, "--message", NUDGE];
    return runIn(waker, argv, QUEUE_MAX_MS);
  }
  if (door === "socket" && conversation.socket !== undefined) return tellBySocket(waker, conversation);
  return "it cannot be woken while it is idle";
}

/** Continues the conversation without a window. If this fails, returns the reason. */
async function resume(waker: Waker, conversation: Conversation | undefined): Promise<string | undefined> {
  const { folder, number, record } = waker;
  if (conversation === undefined) return "there is no conversation to continue";
  const done = continueWindow(folder, number);
  try {
    return await runIn(waker, PROGRAM[record.program].resume(conversation.id, NUDGE), RUN_MAX_MS);
  } finally {
    done();
  }
}

/**
 * Notifies the owner on the desktop and in the configured chat. If neither is available, writes to the chat
 * of the first owner.
 */
async function tellOwner(waker: Waker, reason: string): Promise<void> {
  const { cli, record, settings, stop } = waker;
  const { parts } = cli;
  const body = `A message waits for ${PROGRAM[record.program].name} in ${record.folder}: ${reason}.`;
  const { platform } = parts.machine;
  const notice = { parts, platform, cwd: record.folder, title: "Parley", body };
  const shown = await showOnDesktop(notice, stop);
  const place = record.notify ?? settings.joined.notify ?? (shown ? undefined : settings.owners[0]);
  const upstream = place === undefined ? undefined : await upstreamOf(cli, waker);
  if (place === undefined || upstream === undefined) return;
  const at = place.indexOf(":");
  const [channel, to] = [place.slice(0, at), place.slice(at + 1)];
  await callTool(upstream, { name: "message", arguments: { channel, to, message: body } }, stop);
}

/**
 * Returns the number of messages that no program has received yet, or undefined if the gateway cannot be
 * reached.
 */
async function countWaiting(waker: Waker, waitSeconds?: number): Promise<number | undefined> {
  const wanted = { limit: 0 as const, ...optional({ waitSeconds }) };
  return (await readNews(waker.cli, waker, wanted, waker.stop))?.count;
}

/**
 * Waits until the program has received all messages. Resolves to false if this takes longer than `withinMs`.
 * While the gateway is away, the program cannot receive them, so the time starts when the gateway answers.
 */
async function untilTaken(waker: Waker, withinMs: number): Promise<boolean> {
  const { clock } = waker.cli.parts.world;
  let until = clock.monotonic() + withinMs;
  for (;;) {
    const count = await countWaiting(waker);
    if (count === 0) return true;
    if (waker.stop.aborted) return false;
    if (count === undefined) until = clock.monotonic() + withinMs;
    else if (clock.monotonic() >= until) return false;
    await pause(clock, LOOK_EVERY_MS, waker.stop, "alive");
  }
}

/**
 * Waits for the end of a turn. Resolves to false if no messages are left, because the hook at the end of the
 * turn passed them on.
 */
async function untilIdle(waker: Waker): Promise<boolean> {
  const { clock } = waker.cli.parts.world;
  // Limit the wait, because no hook reports the end of a turn that a person interrupted.
  const until = clock.monotonic() + TURN_MAX_MS;
  const isBusy = () => isOpenNow(waker) && conversationOf(waker.folder, waker.number)?.busy === true;
  while (isBusy() && !waker.stop.aborted && clock.monotonic() < until)
    await pause(clock, LOOK_EVERY_MS, waker.stop, "alive");
  return !(await untilTaken(waker, GRACE_MS));
}

/**
 * Moves the cursor past messages that the model has read with a tool, so that no hook passes them on again.
 */
async function skipRead(waker: Waker, from: string | undefined): Promise<void> {
  const { cli, folder, number, stop } = waker;
  const page = await readNews(cli, waker, { limit: 0 }, stop);
  if (page?.count !== 0 || page.nextAfter === undefined) return;
  await skipNews(folder, number, { from, to: page.nextAfter }, cli.parts.world.clock);
}

/** Makes one attempt to pass the waiting messages to the model. If the attempt fails, returns the reason. */
async function attempt(waker: Waker): Promise<string | undefined> {
  const { folder, number } = waker;
  const from = cursorOf(folder, number);
  if (PROGRAM[waker.record.program].door === "none" && !(await untilIdle(waker))) return undefined;
  const conversation = conversationOf(folder, number);
  if (isOpenNow(waker)) {
    const refused = await wakeWindow(waker, conversation);
    if (refused === undefined) {
      const taken = await untilTaken(waker, TAKEN_WITHIN_MS);
      if (taken) await skipRead(waker, from);
      return taken ? undefined : "it was woken but has not read the message yet";
    }
    if (!mayResume(waker) || conversation?.busy !== false) return refused;
  }
  const failed = await resume(waker, conversation);
  if (failed !== undefined) return failed;
  const taken = await untilTaken(waker, 0);
  if (taken) await skipRead(waker, from);
  return taken ? undefined : "it was continued without a window but did not read the message";
}

/** Returns whether this process must continue to wait for messages to the window. */
function isNeeded(waker: Waker, isOurs: () => boolean): boolean {
  const { cli, record, stop } = waker;
  if (stop.aborted || !isOurs()) return false;
  const known = readRecord(cli.parts.home, record.handle);
  return known?.series === record.series && (isOpenNow(waker) || mayResume(waker));
}

/** Waits for messages once, and wakes the window if they arrive. */
async function wakeOnce(waker: Waker): Promise<void> {
  const { cli, record, folder, number, stop } = waker;
  const { home, world } = cli.parts;
  const ownDoor = (): boolean => PROGRAM[record.program].door === "own" && isOpenNow(waker);
  const rest = (ms: number): Promise<void> => pause(world.clock, ms, stop, "alive");
  if (ownDoor() || isContinued(folder, number)) return rest(LOOK_EVERY_MS);
  const known = readRecord(home, record.handle);
  if (known !== undefined) await renewTokens(cli, known);
  const count = await countWaiting(waker, INBOX_WAIT_SECONDS);
  if (count === undefined || count === 0) return rest(count === undefined ? AGAIN_EVERY_MS : LOOK_EVERY_MS);
  await rest(GRACE_MS);
  if (ownDoor() || (await countWaiting(waker)) === 0 || stop.aborted) return;
  await refresh(waker);
  // An attempt that throws is not repeated either: it may have started the program already (WK2).
  const failed = await attempt(waker).catch((error: unknown) => {
    world.log.warn({ err: error, dir: record.folder }, "a window could not be woken");
    return `it could not be woken: ${String(error)}`;
  });
  if (failed !== undefined) await tellOwner(waker, failed);
  while (!stop.aborted && (await countWaiting(waker)) !== 0) await rest(AGAIN_EVERY_MS);
}

/**
 * Waits for messages to one window, and wakes the window when they arrive. Ends when the window is closed. If
 * the setting is `resume`, closed windows are continued, so it ends only after `parley leave`.
 */
export async function wakeWhenIdle(
  cli: Cli,
  record: JoinRecord,
  number: number,
  stop: AbortSignal,
): Promise<void> {
  const { home, world } = cli.parts;
  const folder = join(joinedFolder(home), record.handle);
  const isOurs = takeOver(folder, number, "waker");
  const over = new AbortController();
  const waker: Waker = {
    cli,
    record,
    settings: { owners: [], joined: { wake: "notify" } },
    folder,
    number,
    stop: AbortSignal.any([stop, over.signal]),
    get token() {
      return windowToken(cli, record, number);
    },
  };
  await refresh(waker);
  const watch = async (): Promise<void> => {
    while (isNeeded(waker, isOurs) || isContinued(folder, number))
      await pause(world.clock, LOOK_EVERY_MS, waker.stop, "alive");
    over.abort();
  };
  void watch();
  for (let failures = 0; !waker.stop.aborted; ) {
    try {
      await wakeOnce(waker);
      failures = 0;
    } catch (error) {
      world.log.warn({ err: error, dir: record.folder }, "waiting for a window's messages failed");
      const ms = grownPause(FAILED_PAUSE_MS, FAILED_PAUSE_MAX_MS, failures);
      failures += 1;
      await pause(world.clock, ms, waker.stop, "alive");
    }
  }
}
