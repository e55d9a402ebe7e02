// Implements the channel `imessage` with `imsg rpc`, a program that controls the Messages app on this Mac:
// accounts, and messages in both directions.
// IC1: the read position is stored after the message (I2). After a restart, messages after this position are
//      read again, and those that are stored already are recognised.
// IC2: if messages arrive faster than they are stored, reading stops before they fill the memory, and starts
//      again at the stored position.
// If the program exits, the listener starts it again after growing pauses, and a delivery starts it at once.

import { countOf, type Fields, fieldsOf, objectsOf, textOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { IMessageAccount } from "../../core/shapes/settings/channels.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { accountFor } from "../account-for.ts";
import { type Account, accountName, type Ear, ListenProblem } from "../accounts.ts";
import type { Channel, ChannelHost, DeliveryOutcome, OutgoingMessage } from "../channel.ts";
import { plainText, readMarkdown } from "../markdown.ts";
import { receivePatiently } from "../retry-receive.ts";
import { readAttachment } from "./files.ts";
import { isGroupId, type Parent, readMessage } from "./message.ts";
import type { Answer, Program } from "./program.ts";
import { createRunner, type Runner } from "./runner.ts";

const ID = "imessage";
/** Maximum length of a text. The Messages app would accept longer texts, but people prefer shorter ones. */
const TEXT_MAX_CHARS = 4_000;
const ASK_TIMEOUT_MS = 15_000;
const UNWATCH_MS = 2_000;
/** Time limit for sending. It is long, because the Messages app may have to start and connect first. */
const SEND_TIMEOUT_MS = 120_000;
/** Maximum size of the messages that were received and are not stored yet. */
const BACKLOG_BYTES_MAX = 8 * 1024 * 1024;
/** Number of recent messages in which the quoted message is searched. */
const HISTORY = 100;
const CURSOR = "rowid";

const CODES = {
  database: -32002,
  busy: -32000,
  params: -32602,
  method: -32601,
  blocked: -32004,
};

interface IMessageAccountContext {
  readonly settings: IMessageAccount;
  readonly host: ChannelHost;
  readonly runner: Runner;
}

const NO_ACCESS =
  /full disk access|authorization denied|unable to open database|not authorized|operation not permitted/i;

function wordsOf(answer: Exclude<Answer, { kind: "result" }>): string {
  return answer.kind === "failed"
    ? answer.why
    : `imsg: ${head(safeLine(answer.message), 200) || answer.code}`;
}

/** Converts a failed request to the problem that the account's status shows. */
function problemOf(answer: Exclude<Answer, { kind: "result" }>): ListenProblem {
  if (answer.kind === "error" && (answer.code === CODES.database || NO_ACCESS.test(answer.message))) {
    const text =
      "imsg cannot read the Messages database: give the program that runs the gateway Full Disk Access";
    return new ListenProblem(`${text} (${head(safeLine(answer.message), 100)}); see docs/IMESSAGE.md`, true);
  }
  return new ListenProblem(wordsOf(answer));
}

interface ReceivedMessage {
  readonly subscription: unknown;
  readonly message: Fields;
  readonly bytes: number;
}

/** A queue of messages that the program reported. */
class Backlog {
  readonly #waiting: ReceivedMessage[] = [];
  #bytes = 0;
  #wake: (() => void) | undefined;
  #problem: ListenProblem | undefined;
  #isOver = false;

  add(told: ReceivedMessage): void {
    if (this.#problem !== undefined || this.#isOver) return;
    this.#bytes += told.bytes;
    if (this.#bytes > BACKLOG_BYTES_MAX)
      this.fail(new ListenProblem("messages arrive faster than they are stored"));
    else this.#waiting.push(told);
    this.#wake?.();
  }

  /**
   * Ends the queue with a problem: `next` first returns the messages in the queue, and then throws the
   * problem.
   */
  fail(problem: ListenProblem): void {
    this.#problem ??= problem;
    this.#wake?.();
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /** Waits for the next message. Returns undefined when the queue has ended. */
  async next(): Promise<ReceivedMessage | undefined> {
    while (!this.#isOver) {
      const told = this.#waiting.shift();
      if (told !== undefined) {
        this.#bytes -= told.bytes;
        return told;
      }
      if (this.#problem !== undefined) throw this.#problem;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return undefined;
  }
}

/** Listens to one account. */
class Listener {
  readonly #place: IMessageAccountContext;
  /**
   * Number of a row in the database of the Messages app. All messages up to this row are stored or were
   * skipped.
   */
  #row: number | undefined;

  constructor(place: IMessageAccountContext) {
    this.#place = place;
  }

  async listen({ signal, ready }: Ear): Promise<void> {
    const { settings, host, runner } = this.#place;
    const backlog = new Backlog();
    const end = (): void => backlog.end();
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    const program = await runner.program();
    const unhear = program.listen((method, params, bytes) => this.#hear(backlog, { method, params, bytes }));
    void program.ended.then((why) => backlog.fail(new ListenProblem(why)));
    let subscription: unknown;
    try {
      const stored = await host.cursor(settings.accountId, CURSOR);
      this.#row ??= countOf(Number(stored));
      const since = this.#row === undefined || this.#row === 0 ? {} : { since_rowid: this.#row };
      const answer = await program.request(
        "watch.subscribe",
        { attachments: true, ...since },
        ASK_TIMEOUT_MS,
      );
      if (answer.kind !== "result") throw problemOf(answer);
      subscription = fieldsOf(answer.value).subscription;
      ready();
      await this.#work(backlog, program, subscription, signal);
    } finally {
      unhear();
      // Stop watching for messages, because the program may continue to run for deliveries.
      if (subscription !== undefined)
        await program.request("watch.unsubscribe", { subscription }, UNWATCH_MS);
      signal.removeEventListener("abort", end);
    }
  }

  #hear(
    backlog: Backlog,
    { method, params, bytes }: { method: string; params: Fields; bytes: number },
  ): void {
    const { subscription } = params;
    if (method === "message") backlog.add({ subscription, message: fieldsOf(params.message), bytes });
    if (method === "watch.overflow")
      backlog.fail(new ListenProblem("imsg dropped messages because they were not read fast enough"));
    if (method === "error") {
      const words = textOf(fieldsOf(params.error).message) ?? "reading messages is no longer possible";
      backlog.fail(problemOf({ kind: "error", code: 0, message: words, data: {} }));
    }
  }

  async #work(backlog: Backlog, program: Program, mine: unknown, signal: AbortSignal): Promise<void> {
    for (let told = await backlog.next(); told !== undefined; told = await backlog.next()) {
      // Ignore a message that belongs to an earlier subscription.
      if (told.subscription !== mine) continue;
      await this.#take(told.message, program, signal);
    }
  }

  async #take(told: Fields, program: Program, signal: AbortSignal): Promise<void> {
    const { settings, host } = this.#place;
    const { accountId, names, attachmentFolders } = settings;
    const read = await readMessage(told, {
      channel: ID,
      accountId,
      names,
      now: host.world.clock.now(),
      load: (path) => (maxBytes, stop) => readAttachment(path, attachmentFolders, maxBytes, stop),
      parentOf: (guid, chatId) => findParent(program, guid, chatId),
    });
    const account = accountName(ID, accountId);
    if (read.kind === "unreadable") host.world.log.warn({ account }, `a message was skipped: ${read.why}`);
    // Newer versions of the program send the row number as `cursor`.
    const row = countOf(told.cursor) ?? countOf(told.id);
    if (read.kind !== "message") return;
    // If there is no stored position, set one before this message. Otherwise a restart would begin after the
    // message and skip it.
    if (this.#row === undefined && row !== undefined && row > 1) this.#row = row - 1;
    await receivePatiently(host, account, read.message, signal);
    if (row === undefined || row <= (this.#row ?? 0)) return;
    this.#row = row;
    // If this fails, no harm is done: the message arrives again and is recognised.
    await host.remember(accountId, CURSOR, String(row)).catch(() => undefined);
  }
}

/** Looks for a message with this id among the newest messages of its chat. */
async function findParent(program: Program, guid: string, chatId: number): Promise<Parent | undefined> {
  const answer = await program.request(
    "messages.history",
    { chat_id: chatId, limit: HISTORY },
    ASK_TIMEOUT_MS,
  );
  if (answer.kind !== "result") return undefined;
  const found = objectsOf(fieldsOf(answer.value).messages, HISTORY).find((one) => one.guid === guid);
  if (found === undefined) return undefined;
  const sender = textOf(found.sender_name) ?? textOf(found.sender);
  const isOwn = found.is_from_me === true;
  return {
    text: textOf(found.text) ?? "[a file]",
    isOwn,
    ...(isOwn || sender === undefined ? {} : { sender }),
  };
}

const HANDLE = /^(?:\+?[0-9]{3,20}|[^\s@;]{1,100}@[^\s@;]{1,100})$/;

/** Returns the recipient in the format of `send`: a person's number or address, or the id of a group. */
function targetOf(to: string): Fields | undefined {
  if (isGroupId(to) && /^[\x21-\x7e]{1,300}$/.test(to)) return { chat_guid: to };
  return HANDLE.test(to) ? { to } : undefined;
}

function outcomeOf(answer: Answer): DeliveryOutcome {
  if (answer.kind === "result") return { kind: "sent" };
  const error = wordsOf(answer);
  if (answer.kind === "failed") return { kind: answer.reached ? "unknown" : "retry", error };
  // Newer versions of the program report whether a retry would be safe.
  if (answer.data.retry_safe === true) return { kind: "retry", error };
  switch (answer.code) {
    case CODES.params:
      return { kind: "refused", error };
    case CODES.busy:
    case CODES.database:
    case CODES.method:
    case CODES.blocked:
      return { kind: "retry", error };
    default:
      // This includes imsg's error -32001, which means that the text may have been sent.
      if (!NO_ACCESS.test(answer.message)) return { kind: "unknown", error };
      return {
        kind: "retry",
        error: "imsg cannot control Messages: allow it in System Settings, Privacy & Security, Automation",
      };
  }
}

async function deliver(
  { runner }: IMessageAccountContext,
  { route, text }: OutgoingMessage,
): Promise<DeliveryOutcome> {
  const target = targetOf(route.to);
  if (target === undefined) {
    const words = head(safeLine(route.to), 60);
    return { kind: "refused", error: `${words} is not an iMessage number, mail address or group id` };
  }
  let program: Program;
  try {
    program = await runner.program();
  } catch (error) {
    return { kind: "retry", error: error instanceof Error ? error.message : "imsg could not be started" };
  }
  const answer = await program.request(
    "send",
    { ...target, text: plainText(readMarkdown(text)) },
    SEND_TIMEOUT_MS,
  );
  // After a text whose result is unknown, the program rejects further texts until it is restarted.
  if (answer.kind === "error" && answer.code === CODES.blocked) await runner.restart();
  return outcomeOf(answer);
}

async function test({ runner }: IMessageAccountContext): Promise<Result<string>> {
  try {
    const program = await runner.program();
    const chats = await program.request("chats.list", { limit: 1 }, ASK_TIMEOUT_MS);
    if (chats.kind !== "result") throw problemOf(chats);
    const status = await program.request("status", {}, ASK_TIMEOUT_MS);
    const version = status.kind === "result" ? textOf(fieldsOf(status.value).version) : undefined;
    return ok(
      version === undefined
        ? "iMessage through imsg"
        : `iMessage through imsg ${head(safeLine(version), 40)}`,
    );
  } catch (error) {
    return fail("channel_failed", error instanceof Error ? error.message : "the request to imsg failed");
  }
}

/** Opens the channel with at least one account. */
export function openIMessage(accounts: readonly IMessageAccount[], host: ChannelHost): Channel {
  const places = accounts.map((settings): IMessageAccountContext => {
    const name = accountName(ID, settings.accountId);
    return { settings, host, runner: createRunner(settings.command, name, host.world) };
  });
  const placeFor = accountFor(ID, places, ({ settings }) => settings.accountId);
  return {
    id: ID,
    deduplicates: false,
    textMaxChars: TEXT_MAX_CHARS,
    accounts: places.map((place): Account => {
      const listener = new Listener(place);
      return { name: accountName(ID, place.settings.accountId), listen: (ear) => listener.listen(ear) };
    }),
    async deliver(message) {
      const place = placeFor(message.route.accountId);
      return place.ok ? deliver(place.value, message) : { kind: "absent", error: place.error };
    },
    async test(accountId) {
      const place = placeFor(accountId);
      return place.ok ? test(place.value) : place;
    },
    async close() {
      await Promise.all(places.map(({ runner }) => runner.close()));
    },
  };
}
