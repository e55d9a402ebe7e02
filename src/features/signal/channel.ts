// Implements the channel `signal`, over a signal-cli daemon (`signal-cli daemon --http`): accounts, and
// messages in both directions.
// SG1: the read position advances only after an event is stored (I2). Until then the stream is not read
//      further, and a reconnect resumes before this event.
// If the daemon repeats a message after a reconnect, the message has the same id, so it is recognised.
// SG3: if the daemon does not have the account, the problem is permanent, and its message contains the
//      number.
// SG5: an older daemon sends no event ids, so it cannot repeat an event. An event of such a daemon that names
//      files is stored until its message is stored, because loading files takes long.
// SG4: an attachment is fetched by the daemon's id for it, with a limited size.

import { accountName, ListenProblem } from "../../channels/accounts.ts";
import type { ChannelHost, DeliveryOutcome, InboundMedia, OutgoingMessage } from "../../channels/channel.ts";
import type { Read } from "../../channels/frame.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { Pump } from "../../channels/pump.ts";
import { fieldsOf, jsonOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Answer, type Daemon, daemonAt } from "./daemon.ts";
import { readEnvelope } from "./envelope.ts";
import { eventsOf, type StreamEvent } from "./events.ts";
import { dataUriOf, outcomeOf, recipientOf, styled } from "./send.ts";
import type { SignalAccount } from "./signal.ts";

const ID = "signal";
/**
 * Time limit for sending. It is long, because a group message is encrypted for each member, up to a thousand
 * times.
 */
const SEND_TIMEOUT_MS = 120_000;
const ASK_TIMEOUT_MS = 15_000;
const LOAD_TIMEOUT_MS = 60_000;
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Time limit for the head of the event stream. The daemon may send it only with its first heartbeat, after 15
 * seconds.
 */
const HEAD_MS = 30_000;
/** Limits on time and size for calls with a short answer. */
const ASK_LIMITS = { timeoutMs: ASK_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX };
const ACCOUNTS_MAX = 1_000;
/** Name under which the id of the last stored event is kept. */
const CURSOR = "events";
/** Name under which an event without an id is kept until its message is stored. Empty: none. */
const KEPT = "event";
const METHOD_NOT_FOUND = -32601;

/** One account, its daemon, and the gateway's services. */
interface SignalAccountContext {
  readonly settings: SignalAccount;
  readonly daemon: Daemon;
  readonly host: ChannelHost;
}

/** Describes for the account's status why the account cannot be reached. */
function whyNot(answer: Exclude<Answer, { kind: "result" }>, url: string): string {
  if (answer.kind === "failed") return `${answer.why}; the daemon should be at ${url}`;
  return `signal-cli: ${head(safeLine(answer.message), 200) || `error ${answer.code}`}`;
}

function strange({ number, url }: SignalAccount): ListenProblem {
  const what = `the signal-cli daemon at ${url} has no account ${number}`;
  return new ListenProblem(`${what}: register or link it with signal-cli`, true);
}

/**
 * Returns the account's ids, as far as they are known: a daemon that runs for a single account does not
 * report them.
 */
async function ownIds(
  { settings, daemon }: SignalAccountContext,
  signal?: AbortSignal,
): Promise<Set<string>> {
  const { number, url } = settings;
  const answer = await daemon.call("listAccounts", {}, { ...ASK_LIMITS, ...optional({ signal }) });
  if (answer.kind === "error" && answer.code === METHOD_NOT_FOUND) return new Set([number]);
  if (answer.kind !== "result") throw new ListenProblem(whyNot(answer, url));
  const own = objectsOf(answer.value, ACCOUNTS_MAX).find(
    (one) => one.number === number || one.aci === number,
  );
  if (own === undefined) throw strange(settings);
  return new Set([number, own.number, own.aci, own.uuid].flatMap((id) => textOf(id) ?? []));
}

function loadOf({ settings, daemon }: SignalAccountContext, id: string): InboundMedia["load"] {
  return async (maxBytes, signal) => {
    const params = { account: settings.number, id };
    // The answer is larger than the file, because the content is base64 inside JSON.
    const bytesMax = Math.ceil(maxBytes / 3) * 4 + 1_024;
    const answer = await daemon.call("getAttachment", params, {
      timeoutMs: LOAD_TIMEOUT_MS,
      bytesMax,
      signal,
    });
    if (answer.kind !== "result")
      return fail("file_problem", `the file could not be fetched: ${whyNot(answer, settings.url)}`);
    const data = textOf(fieldsOf(answer.value).data);
    if (data === undefined)
      return fail("file_problem", "the file could not be fetched: signal-cli returned no data");
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > maxBytes) return fail("too_large", `the file has more than ${maxBytes} bytes`);
    return ok(new Uint8Array(bytes));
  };
}

function createListener(place: SignalAccountContext): PlatformAccount["listen"] {
  const { settings, daemon, host } = place;
  const { number, accountId, url } = settings;
  const { clock, log } = host.world;
  const account = accountName(ID, accountId);
  /** An event whose message could not be stored. When listening starts again, it is read first. */
  let unread: string | undefined;
  /** Takes an event, and waits until it is stored. `wasKept`: it is not new. */
  const take = async (
    { id, data }: StreamEvent,
    own: ReadonlySet<string>,
    pump: Pump,
    wasKept = false,
  ): Promise<void> => {
    const fields = fieldsOf(jsonOf(data));
    const receiver = textOf(fields.account);
    const isOther = receiver !== undefined && !own.has(receiver);
    // The daemon runs for a single account, and that is not the configured one.
    if (isOther && !wasKept) {
      const other = head(safeLine(receiver), 40);
      throw new ListenProblem(`the daemon at ${url} receives for ${other}, not for ${number}`, true);
    }
    // The number in the settings may have changed since the event was kept.
    const read: Read = isOther
      ? { kind: "nothing" }
      : readEnvelope(fields, {
          channel: ID,
          accountId,
          own,
          load: (attachment) => loadOf(place, attachment),
        });
    if (read.kind === "unreadable") log.warn({ account }, `a message was skipped: ${read.why}`);
    const message = read.kind === "message" ? read.message : undefined;
    const isKept = wasKept || (id === undefined && message !== undefined && message.media.length > 0);
    unread = message && data;
    pump.push({
      take: async () => {
        if (isKept && !wasKept) await pump.keep(() => host.remember(accountId, KEPT, data));
        if (message !== undefined) await pump.store(message);
      },
      acknowledge: async () => {
        if (isKept) await host.remember(accountId, KEPT, "");
        if (message !== undefined && id !== undefined) await host.remember(accountId, CURSOR, id);
        unread = undefined;
      },
    });
    await pump.drain();
  };
  return async ({ signal, ready }) => {
    const pump = new Pump(host, account, signal);
    const own = await ownIds(place, signal);
    const kept = unread ?? (await host.cursor(accountId, KEPT));
    if (kept) await take({ data: kept }, own, pump, true);
    const last = await host.cursor(accountId, CURSOR);
    const headers = { accept: "text/event-stream", ...optional({ "last-event-id": last }) };
    const path = `/api/v1/events?account=${encodeURIComponent(number)}`;
    const opened = await daemon.open(path, headers, { headMs: HEAD_MS, signal });
    if (opened.kind === "failed") throw new ListenProblem(`${opened.why}; the daemon should be at ${url}`);
    try {
      const { statusCode = 0 } = opened.answer;
      if (statusCode === 400) throw strange(settings);
      if (statusCode !== 200)
        throw new ListenProblem(`the server there is not a signal-cli daemon (HTTP ${statusCode})`);
      ready();
      const onTooLong = (): void => log.warn({ account }, "an event was skipped because it is too long");
      for await (const event of eventsOf(opened.answer, clock, onTooLong)) {
        await take(event, own, pump);
        if (signal.aborted) return;
      }
    } catch (error) {
      throw error instanceof ListenProblem
        ? error
        : new ListenProblem("the connection to signal-cli was lost");
    } finally {
      opened.close();
    }
  };
}

async function deliver(
  { settings, daemon }: SignalAccountContext,
  { route, text, file }: OutgoingMessage,
): Promise<DeliveryOutcome> {
  const to = recipientOf(route.to);
  if (to === undefined) {
    const words = head(safeLine(route.to), 60);
    return { kind: "refused", error: `${words} is not a Signal number, account id or group id` };
  }
  const { message, textStyle } = styled(text);
  const params = {
    account: settings.number,
    ...to,
    message,
    ...(textStyle.length === 0 ? {} : { textStyle }),
    ...(file === undefined ? {} : { attachments: [dataUriOf(file)] }),
  };
  return outcomeOf(
    await daemon.call("send", params, { timeoutMs: SEND_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX }),
  );
}

/** Returns the account's number and the version of the daemon. Throws the reason if it does not work. */
async function test(place: SignalAccountContext): Promise<string> {
  const { settings, daemon } = place;
  await ownIds(place);
  const answer = await daemon.call("version", {}, ASK_LIMITS);
  const version = answer.kind === "result" ? (textOf(fieldsOf(answer.value).version) ?? "") : "";
  return `${settings.number}, signal-cli ${head(safeLine(version), 40)}`.trimEnd();
}

export function openAccounts(accounts: readonly SignalAccount[], host: ChannelHost): PlatformAccount[] {
  return accounts.map((settings) => {
    const daemon = daemonAt(settings.url, host.world.clock);
    const place = { settings, host, daemon };
    return {
      accountId: settings.accountId,
      listen: createListener(place),
      deliver: (message) => deliver(place, message),
      async typing(route) {
        const to = recipientOf(route.to);
        if (to === undefined) return;
        await daemon.call("sendTyping", { account: settings.number, ...to }, ASK_LIMITS);
      },
      test: () => test(place),
    };
  });
}
