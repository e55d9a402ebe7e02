// Implements the channel `imessage` with `imsg rpc`, a program that controls the Messages app on this Mac:
// accounts, and messages in both directions.
// IC1: the read position is stored after the message (I2). After a restart, messages after this position are
//      read again, and those that are stored already are recognised.
// IC2: if messages arrive faster than they are stored, reading stops before they fill the memory, and starts
//      again at the stored position.
// If the program exits, the listener starts it again after growing pauses, and a delivery starts it at once.

import { accountName, ListenProblem } from "../../channels/accounts.ts";
import type { ChannelHost, DeliveryOutcome, OutgoingMessage } from "../../channels/channel.ts";
import { plainText, readMarkdown } from "../../channels/markdown.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { Pump } from "../../channels/pump.ts";
import { countOf, type Fields, fieldsOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { readAttachment } from "./files.ts";
import type { IMessageAccount } from "./imessage.ts";
import { isGroupId, type Parent, readMessage } from "./message.ts";
import type { Answer, Program } from "./program.ts";
import { createRunner, type Runner } from "./runner.ts";

const ID = "imessage";
const ASK_TIMEOUT_MS = 15_000;
const UNWATCH_MS = 2_000;
/** Time limit for sending. It is long, because the Messages app may have to start and connect first. */
const SEND_TIMEOUT_MS = 120_000;
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

function createListener({ settings, host, runner }: IMessageAccountContext): PlatformAccount["listen"] {
  const { accountId, names, attachmentFolders } = settings;
  const account = accountName(ID, accountId);
  /**
   * Number of a row in the database of the Messages app. All messages up to this row are stored or were
   * skipped.
   */
  let stored: number | undefined;
  const take = async (fields: Fields, program: Program, pump: Pump): Promise<void> => {
    const read = await readMessage(fields, {
      channel: ID,
      accountId,
      names,
      now: host.world.clock.now(),
      load: (path) => (maxBytes, stop) => readAttachment(path, attachmentFolders, maxBytes, stop),
      parentOf: (guid, chatId) => findParent(program, guid, chatId),
    });
    if (read.kind === "unreadable") host.world.log.warn({ account }, `a message was skipped: ${read.why}`);
    // Newer versions of the program send the row number as `cursor`.
    const row = countOf(fields.cursor) ?? countOf(fields.id);
    if (read.kind !== "message") return;
    // If there is no stored position, set one before this message. Otherwise a restart would begin after the
    // message and skip it.
    if (stored === undefined && row !== undefined && row > 1) stored = row - 1;
    await pump.store(read.message);
    if (row === undefined || row <= (stored ?? 0)) return;
    stored = row;
    await pump.keep(() => host.remember(accountId, CURSOR, String(row)));
  };
  return async ({ signal, ready }) => {
    const pump = new Pump(host, account, signal);
    const program = await runner.program();
    let subscription: unknown;
    const unhear = program.listen((method, params, bytes) => {
      if (method === "message") {
        // A message of an earlier subscription is ignored.
        const takeOwn = async () => {
          if (params.subscription === subscription) await take(fieldsOf(params.message), program, pump);
        };
        pump.push({ bytes, take: takeOwn });
      }
      if (method === "watch.overflow")
        pump.fail(new ListenProblem("imsg dropped messages because they were not read fast enough"));
      if (method === "error") {
        const words = textOf(fieldsOf(params.error).message) ?? "reading messages is no longer possible";
        pump.fail(problemOf({ kind: "error", code: 0, message: words, data: {} }));
      }
    });
    void program.ended.then((why) => pump.fail(new ListenProblem(why)));
    const subscribe = async (): Promise<void> => {
      stored ??= countOf(Number(await host.cursor(accountId, CURSOR)));
      const since = stored === undefined || stored === 0 ? {} : { since_rowid: stored };
      const wanted = { attachments: true, ...since };
      const answer = await program.request("watch.subscribe", wanted, ASK_TIMEOUT_MS);
      if (answer.kind !== "result") throw problemOf(answer);
      subscription = fieldsOf(answer.value).subscription;
      ready();
    };
    try {
      // A message that arrives before the answer waits for it.
      pump.push({ take: subscribe });
      await pump.end();
    } finally {
      unhear();
      // Stop watching for messages, because the program may continue to run for deliveries.
      if (subscription !== undefined)
        await program.request("watch.unsubscribe", { subscription }, UNWATCH_MS);
    }
  };
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
    ...(isOwn ? {} : optional({ sender, senderId: textOf(found.sender) })),
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

/** Returns the version of the program. Throws the reason if it does not work. */
async function test({ runner }: IMessageAccountContext): Promise<string> {
  const program = await runner.program();
  const chats = await program.request("chats.list", { limit: 1 }, ASK_TIMEOUT_MS);
  if (chats.kind !== "result") throw problemOf(chats);
  const status = await program.request("status", {}, ASK_TIMEOUT_MS);
  const version = status.kind === "result" ? (textOf(fieldsOf(status.value).version) ?? "") : "";
  return `iMessage through imsg ${head(safeLine(version), 40)}`.trimEnd();
}

export function openAccounts(accounts: readonly IMessageAccount[], host: ChannelHost): PlatformAccount[] {
  return accounts.map((settings) => {
    const name = accountName(ID, settings.accountId);
    const runner = createRunner(settings.command, name, host.world);
    const place = { settings, host, runner };
    return {
      accountId: settings.accountId,
      listen: createListener(place),
      deliver: (message) => deliver(place, message),
      test: () => test(place),
      close: () => runner.close(),
    };
  });
}
