// Implements the channel `whatsapp`: phone numbers at the platform's Cloud API.
// Messages arrive by webhook, and texts are sent by API calls.
// WA1: if an account's token, number or app stops working, the account's status shows this, whichever request
//      fails first.
// WA2: two accounts can share an app. Messages in a webhook go to the account that has their phone number.
// WA3: the messages of one chat are stored in order, and do not wait for the files of other chats.
// The platform has no threads and does not deduplicate.

import { accountName, type ListenPort, ListenProblem } from "../../channels/accounts.ts";
import type {
  ChannelHost,
  DeliveryOutcome,
  InboundMessage,
  OutgoingMessage,
} from "../../channels/channel.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { Pump } from "../../channels/pump.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { pause } from "../../world/pause.ts";
import { answerCall } from "./calls.ts";
import { formatText } from "./format.ts";
import type { Arrived, NumberNews, WebHookEvent } from "./incoming.ts";
import { readMedia } from "./media.ts";
import { ChatMemory } from "./memory.ts";
import { type GraphProblem, outcomeOf, saidProblem } from "./problems.ts";
import { chatIdOf, recipientOf } from "./recipient.ts";
import { askNumber, sendFile, sendText, showTyping } from "./sending.ts";
import type { WhatsAppAccount } from "./whatsapp.ts";

const WHATSAPP = "whatsapp";
const CHECK_EVERY_MS = 5 * 60_000;
/** If a text was not delivered, `parley channels test` reports this for so long. */
const FAILURE_KEPT_MS = 24 * 3_600_000;
const MS_PER_MINUTE = 60_000;

/** One account (a phone number), and its state in this process. */
interface WhatsAppNumber {
  readonly account: WhatsAppAccount;
  readonly name: string;
  readonly memory: ChatMemory;
  /** Tells the current listener about a problem. Undefined if nobody listens. */
  trouble: ((problem: GraphProblem) => void) | undefined;
  calledAt: number | undefined;
  failure: { readonly words: string; readonly atMs: number } | undefined;
}

interface Parts {
  readonly host: ChannelHost;
  readonly lines: readonly WhatsAppNumber[];
}

/** Tells the listener about a problem, if it concerns the whole account. */
function noteTrouble(line: WhatsAppNumber, problem: GraphProblem): void {
  if (problem.kind === "account") line.trouble?.(problem);
}

function messageOf({ host }: Parts, line: WhatsAppNumber, arrived: Arrived): InboundMessage {
  const { account, memory } = line;
  const { accountId } = account;
  const { messageId, edit, groupId, senderId, senderName, alsoKnownAs, content, answers } = arrived;
  const { world } = host;
  const chatId = groupId ?? senderId;
  const said = answers && memory.said(chatId, answers.id);
  const quoted = said && { text: said.text, ...optional({ senderName: said.senderName }) };
  const forwarders: readonly (readonly string[])[] = content.forwarded === true ? [[]] : [];
  const isAnswerToUs = answers?.isOurs === true || said?.isOurs === true;
  return {
    channel: WHATSAPP,
    accountId,
    messageId,
    chat: {
      type: groupId === undefined ? "direct" : "group",
      id: chatId,
      ...(groupId === undefined ? optional({ name: senderName }) : {}),
    },
    sender: {
      id: senderId,
      ...optional({ name: senderName }),
      ...(alsoKnownAs.length > 0 ? { alsoKnownAs } : {}),
    },
    text: content.text,
    mentioned: groupId === undefined || arrived.namesUs || isAnswerToUs,
    media: content.media.map(({ id, ...media }) => ({
      ...media,
      load: (maxBytes, signal) => readMedia(account, id, maxBytes, { world, signal }),
    })),
    sentAt: arrived.sentAtMs ?? world.clock.now(),
    replyTo: { channel: WHATSAPP, accountId, to: chatId },
    authors: [...forwarders, ...(said?.author === undefined ? [] : [said.author])],
    ...optional({ edit, forwarded: content.forwarded, quoted }),
  };
}

async function takeMessage(parts: Parts, line: WhatsAppNumber, arrived: Arrived): Promise<void> {
  const { memory } = line;
  const { messageId, senderName, content } = arrived;
  const message = messageOf(parts, line, arrived);
  await parts.host.receive(message);
  memory.came(message.chat.id, messageId);
  const text = content.text || "[a file]";
  const author = content.forwarded === true ? [] : [arrived.senderId, ...arrived.alsoKnownAs];
  memory.note(message.chat.id, messageId, { text, isOurs: false, author, ...optional({ senderName }) });
}

/** Handles an event that is not a message. */
function note(parts: Parts, line: WhatsAppNumber, event: Exclude<WebHookEvent, Arrived>): void {
  const { clock, log } = parts.host.world;
  const { name, memory } = line;
  switch (event.kind) {
    case "failed": {
      // Ignore a failure that the platform reports a second time.
      if (!memory.failed(event.messageId)) return;
      const words = saidProblem(event.error, line.account.accessToken)?.words ?? "WhatsApp gives no reason";
      line.failure = { words, atMs: clock.now() };
      const fields = { account: name, to: safeLine(event.to), messageId: safeLine(event.messageId) };
      log.warn(fields, `WhatsApp accepted a text but did not deliver it: ${words}`);
      return;
    }
    case "told": {
      const problem = saidProblem(event.error, line.account.accessToken);
      if (problem !== undefined) noteTrouble(line, problem);
      const words = problem?.words ?? "no details";
      log.warn({ account: name }, `WhatsApp reports a problem: ${words}`);
      return;
    }
    case "skipped":
      if (event.isFine) log.debug({ account: name }, `skipped: ${event.why}`);
      else log.warn({ account: name }, `part of a webhook was skipped: ${event.why}`);
  }
}

/** Stores the messages of a webhook. Throws if one of them could not be stored. */
async function take(parts: Parts, called: WhatsAppNumber, listed: readonly NumberNews[]): Promise<void> {
  const { log } = parts.host.world;
  const pump = new Pump(parts.host, called.name);
  for (const { phoneNumberId, events } of listed) {
    // Accept only an account of the app that signed the webhook: the secret of another app proves nothing.
    const line = parts.lines.find(
      ({ account }) =>
        account.phoneNumberId === phoneNumberId && account.appSecret === called.account.appSecret,
    );
    if (line === undefined) {
      log.debug({ account: called.name }, "a WhatsApp webhook for a number without an account was ignored");
      continue;
    }
    for (const event of events) {
      if (event.kind !== "message") {
        note(parts, line, event);
        continue;
      }
      const lane = JSON.stringify([line.name, event.groupId ?? event.senderId]);
      // The size of the webhook is limited already.
      pump.push({ lane, bytes: 0, take: () => takeMessage(parts, line, event) });
    }
  }
  await pump.drain();
}

async function deliver(
  { world }: ChannelHost,
  line: WhatsAppNumber,
  { route, text, file }: OutgoingMessage,
): Promise<DeliveryOutcome> {
  const { to } = route;
  const recipient = recipientOf(to);
  if (recipient === undefined) {
    const error = `"${safeLine(head(to, 100))}" is not a number like +491701234567 or a group id`;
    return { kind: "refused", error };
  }
  const { sent, seen } = formatText(text);
  const done =
    file === undefined
      ? await sendText(line.account, recipient, sent, world)
      : await sendFile(line.account, recipient, { file, caption: sent }, world);
  if ("messageId" in done) {
    line.memory.note(chatIdOf(recipient), done.messageId, { text: seen, isOurs: true });
    return { kind: "sent" };
  }
  noteTrouble(line, done);
  return outcomeOf(done);
}

/**
 * Checks periodically whether the account works. Its messages do not come here, but by webhook to any
 * process.
 */
async function listen(
  { world }: ChannelHost,
  line: WhatsAppNumber,
  { signal, ready }: ListenPort,
): Promise<void> {
  for (;;) {
    const asked = await askNumber(line.account, world, signal);
    if (signal.aborted) return;
    // A wrong number or URL is a permanent problem, as a wrong token is.
    if ("words" in asked) throw new ListenProblem(asked.words, ["account", "text"].includes(asked.kind));
    ready();
    // A problem that another request meets ends the wait early.
    const trouble = new AbortController();
    line.trouble = ({ words }) => trouble.abort(new ListenProblem(words, true));
    await pause(world.clock, CHECK_EVERY_MS, AbortSignal.any([signal, trouble.signal]));
    line.trouble = undefined;
    if (signal.aborted) return;
    trouble.signal.throwIfAborted();
  }
}

/** Returns details about the account for an operator. */
function remarks({ calledAt, failure }: WhatsAppNumber, nowMs: number): string[] {
  const minutes = Math.floor((nowMs - (calledAt ?? nowMs)) / MS_PER_MINUTE);
  const called =
    calledAt === undefined
      ? "its web hook has not been called since this gateway started"
      : `its web hook was called ${minutes} min ago`;
  const isFresh = failure !== undefined && nowMs - failure.atMs < FAILURE_KEPT_MS;
  return [called, ...(isFresh ? [`the last undelivered text: ${failure.words}`] : [])];
}

export function openAccounts(accounts: readonly WhatsAppAccount[], host: ChannelHost): PlatformAccount[] {
  const { world } = host;
  const lines = accounts.map(
    (account): WhatsAppNumber => ({
      account,
      name: accountName(WHATSAPP, account.accountId),
      memory: new ChatMemory(),
      trouble: undefined,
      calledAt: undefined,
      failure: undefined,
    }),
  );
  return lines.map((line) => ({
    accountId: line.account.accountId,
    listen: (ear) => listen(host, line, ear),
    deliver: (message) => deliver(host, line, message),
    async typing({ to }) {
      const recipient = recipientOf(to);
      // WhatsApp has no typing indicator for groups.
      if (recipient?.recipient_type !== "individual") return;
      const messageId = line.memory.newest(chatIdOf(recipient));
      if (messageId !== undefined) await showTyping(line.account, messageId, world);
    },
    called: (call) =>
      answerCall(call, line.account, async (news) => {
        line.calledAt = world.clock.now();
        await take({ host, lines }, line, news);
      }),
    async test() {
      const asked = await askNumber(line.account, world);
      if ("words" in asked) throw new ListenProblem(asked.words);
      return [asked.name, ...remarks(line, world.clock.now())].join("; ");
    },
  }));
}
