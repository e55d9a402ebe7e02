// Owns the channel `whatsapp`: numbers at the Cloud API of the platform. It calls our web hook with what
// comes in, and is asked to send what goes out.
// WA1: an account whose token, number or app stopped working says so as its state, whoever noticed first.
// WA2: two accounts share nothing but an app: what its web hook brings goes to the number that it names.
// WA3: there are no threads, and no second attempt that the platform would know again.

import type { WhatsAppAccount } from "../../core/channel-settings.ts";
import { fail, ok, type Result } from "../../core/errors.ts";
import { optional } from "../../core/optional.ts";
import { safeLine } from "../../core/safe-text.ts";
import type { Route } from "../../core/session.ts";
import { accountFor } from "../account-for.ts";
import { type Account, accountName, type Ear, ListenProblem } from "../accounts.ts";
import type { Channel, ChannelHost, DeliveryOutcome, InboundMessage, OutgoingMessage } from "../channel.ts";
import { answerCall } from "./calls.ts";
import { formatText } from "./format.ts";
import type { Arrived, NumberNews } from "./incoming.ts";
import { readMedia } from "./media.ts";
import { type ChatMemory, createChatMemory } from "./memory.ts";
import { chatIdOf, recipientOf } from "./places.ts";
import { type GraphProblem, outcomeOf, saidProblem } from "./problems.ts";
import { askNumber, sendText, showTyping } from "./sending.ts";

const WHATSAPP = "whatsapp";
/** The platform takes 4096; marks and addresses that are written out need some. */
const TEXT_MAX_CHARS = 4_000;
const CHECK_EVERY_MS = 5 * 60_000;
/** How long a text that was not delivered is told of when the account is tested. */
const FAILURE_KEPT_MS = 24 * 3_600_000;
const MS_PER_MINUTE = 60_000;

/** One number, and what this process knows of it. */
interface Line {
  readonly account: WhatsAppAccount;
  readonly name: string;
  readonly memory: ChatMemory;
  /** Whoever listens at the account, while somebody does. */
  trouble: ((problem: GraphProblem) => void) | undefined;
  calledAt: number | undefined;
  failure: { readonly words: string; readonly atMs: number } | undefined;
}

interface Parts {
  readonly host: ChannelHost;
  readonly lines: readonly Line[];
}

const openLine = (account: WhatsAppAccount): Line => ({
  account,
  name: accountName(WHATSAPP, account.accountId),
  memory: createChatMemory(),
  trouble: undefined,
  calledAt: undefined,
  failure: undefined,
});

/** The line that a route means. */
function lineFor({ lines }: Parts, accountId: string | undefined): Result<Line> {
  return accountFor(WHATSAPP, lines, ({ account }) => account.accountId)(accountId);
}

/** Tells whoever listens, if it is the account itself that has trouble. */
function noteTrouble(line: Line, problem: GraphProblem): void {
  if (problem.kind === "account") line.trouble?.(problem);
}

function messageOf({ host }: Parts, line: Line, arrived: Arrived): InboundMessage {
  const { account, memory } = line;
  const { accountId } = account;
  const { messageId, edit, groupId, senderId, senderName, alsoKnownAs, content, answers } = arrived;
  const { world } = host;
  const chatId = groupId ?? senderId;
  const quoted = answers === undefined ? undefined : memory.said(chatId, answers.id);
  const isAnswerToUs = answers?.isOurs === true || quoted?.isOurs === true;
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
    ...optional({ edit, forwarded: content.forwarded }),
    ...(quoted === undefined
      ? {}
      : { quoted: { text: quoted.text, ...optional({ senderName: quoted.senderName }) } }),
  };
}

async function takeMessage(parts: Parts, line: Line, arrived: Arrived): Promise<void> {
  const { memory } = line;
  const { messageId, senderName, content } = arrived;
  const message = messageOf(parts, line, arrived);
  await parts.host.receive(message);
  memory.came(message.chat.id, messageId);
  const text = content.text || "[a file]";
  memory.note(message.chat.id, messageId, { text, isOurs: false, ...optional({ senderName }) });
}

/** Stores what a web hook brings of one number, in its order. */
async function take(parts: Parts, called: Line, { phoneNumberId, events }: NumberNews): Promise<void> {
  const { clock, log } = parts.host.world;
  // Only what the app of the account has signed: another one's secret proves nothing of this number.
  const line = parts.lines.find(
    ({ account }) =>
      account.phoneNumberId === phoneNumberId && account.appSecret === called.account.appSecret,
  );
  if (line === undefined) {
    log.debug({ account: called.name }, "a web hook of WhatsApp is about a number that no account here has");
    return;
  }
  const { name, memory } = line;
  for (const event of events) {
    switch (event.kind) {
      case "message":
        await takeMessage(parts, line, event);
        break;
      case "failed": {
        // The platform tells of it until it is answered, and may do so twice.
        if (!memory.failed(event.messageId)) break;
        const words =
          saidProblem(event.error, line.account.accessToken)?.words ?? "WhatsApp does not say why";
        line.failure = { words, atMs: clock.now() };
        const fields = { account: name, to: safeLine(event.to), messageId: safeLine(event.messageId) };
        log.warn(fields, `a text that WhatsApp had taken was not delivered: ${words}`);
        break;
      }
      case "told": {
        const problem = saidProblem(event.error, line.account.accessToken);
        if (problem !== undefined) noteTrouble(line, problem);
        const words = problem?.words ?? "it does not say which";
        log.warn({ account: name }, `WhatsApp tells of trouble: ${words}`);
        break;
      }
      case "skipped":
        if (event.isFine) log.debug({ account: name }, `skipped: ${event.why}`);
        else log.warn({ account: name }, `part of a web hook can't be read and is skipped: ${event.why}`);
    }
  }
}

async function deliver(parts: Parts, { route, text }: OutgoingMessage): Promise<DeliveryOutcome> {
  const { accountId, to } = route;
  const found = lineFor(parts, accountId);
  if (!found.ok) return { kind: "refused", error: found.error };
  const line = found.value;
  const recipient = recipientOf(to);
  if (recipient === undefined) {
    const error = `"${safeLine(to.slice(0, 100))}" is neither a number, like +491701234567, nor a group's id`;
    return { kind: "refused", error };
  }
  const { sent, seen } = formatText(text);
  const done = await sendText(line.account, recipient, sent, parts.host.world);
  if ("messageId" in done) {
    line.memory.note(chatIdOf(recipient), done.messageId, { text: seen, isOurs: true });
    return { kind: "sent" };
  }
  noteTrouble(line, done);
  return outcomeOf(done);
}

/** Waits until the account is to be asked again, has trouble, or is no longer ours to listen at. */
function untilNext({ host }: Parts, line: Line, signal: AbortSignal): Promise<GraphProblem | undefined> {
  const { clock } = host.world;
  return new Promise((resolve) => {
    const end = (problem?: GraphProblem): void => {
      timer.cancel();
      signal.removeEventListener("abort", stop);
      line.trouble = undefined;
      resolve(problem);
    };
    const stop = (): void => end();
    const timer = clock.at(clock.now() + CHECK_EVERY_MS, stop);
    line.trouble = end;
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** The account is asked now and then; messages come in by the web hook, whoever listens. */
async function listen(parts: Parts, line: Line, { signal, ready }: Ear): Promise<void> {
  for (;;) {
    const asked = await askNumber(line.account, parts.host.world, signal);
    if (signal.aborted) return;
    // A number or an address that is wrong stays so, like a token.
    if ("words" in asked) throw new ListenProblem(asked.words, ["account", "text"].includes(asked.kind));
    ready();
    const problem = await untilNext(parts, line, signal);
    if (signal.aborted) return;
    if (problem !== undefined) throw new ListenProblem(problem.words, true);
  }
}

/** What an operator wants to know beside the name. */
function remarks({ calledAt, failure }: Line, nowMs: number): string[] {
  const minutes = Math.floor((nowMs - (calledAt ?? nowMs)) / MS_PER_MINUTE);
  const called =
    calledAt === undefined
      ? "its web hook has not been called since this gateway began"
      : `its web hook was called ${minutes} min ago`;
  const isFresh = failure !== undefined && nowMs - failure.atMs < FAILURE_KEPT_MS;
  return [called, ...(isFresh ? [`the last text that did not arrive: ${failure.words}`] : [])];
}

/** Opens the channel with its accounts, of which there is at least one. */
export async function openWhatsApp(
  accounts: readonly WhatsAppAccount[],
  host: ChannelHost,
): Promise<Channel> {
  const { world } = host;
  const lines = accounts.map(openLine);
  const parts: Parts = { host, lines };
  return {
    id: WHATSAPP,
    deduplicates: false,
    textMaxChars: TEXT_MAX_CHARS,
    accounts: lines.map((line): Account => ({ name: line.name, listen: (ear) => listen(parts, line, ear) })),
    deliver: (message) => deliver(parts, message),
    async typing({ accountId, to }: Route) {
      const line = lineFor(parts, accountId);
      const recipient = recipientOf(to);
      // In groups it can't be shown.
      if (!line.ok || recipient?.recipient_type !== "individual") return;
      const messageId = line.value.memory.newest(chatIdOf(recipient));
      if (messageId === undefined) return;
      await showTyping(line.value.account, messageId, world);
    },
    async called(call) {
      const found = lineFor(parts, call.accountId);
      if (!found.ok) return { status: 404, body: "not found" };
      const line = found.value;
      return answerCall(call, line.account, async (news) => {
        line.calledAt = world.clock.now();
        await take(parts, line, news);
      });
    },
    async test(accountId) {
      const line = lineFor(parts, accountId);
      if (!line.ok) return line;
      const asked = await askNumber(line.value.account, world);
      if ("words" in asked) return fail("channel_failed", asked.words);
      return ok([asked.name, ...remarks(line.value, world.clock.now())].join("; "));
    },
  };
}
