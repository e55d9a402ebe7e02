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

import { fieldsOf, jsonOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { SignalAccount } from "../../core/shapes/settings/channels.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { accountFor } from "../account-for.ts";
import { type Account, accountName, type Ear, ListenProblem } from "../accounts.ts";
import type {
  Channel,
  ChannelHost,
  DeliveryOutcome,
  InboundMedia,
  InboundMessage,
  OutgoingMessage,
} from "../channel.ts";
import { receivePatiently } from "../retry-receive.ts";
import { type Answer, type Daemon, daemonAt } from "./daemon.ts";
import { type Read, readEnvelope } from "./envelope.ts";
import { eventsOf, type StreamEvent } from "./events.ts";
import { dataUriOf, outcomeOf, recipientOf, styled, TEXT_MAX_CHARS } from "./send.ts";

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

/** Returns the function that loads an attachment from the daemon. */
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

/** A message to store. */
interface Pending {
  readonly message: InboundMessage;
  /** Id of its event. */
  readonly id?: string;
  /** True if its event is kept in the store (SG5). */
  readonly isKept?: boolean;
}

/** Listens to one account. */
class Listener {
  readonly #place: SignalAccountContext;
  /** A message that could not be stored. When listening starts again, this message is stored first. */
  #pending: Pending | undefined;

  constructor(place: SignalAccountContext) {
    this.#place = place;
  }

  async listen({ signal, ready }: Ear): Promise<void> {
    const { settings, daemon, host } = this.#place;
    const { number, accountId } = settings;
    if (this.#pending !== undefined) await this.#store(this.#pending, signal);
    const own = await ownIds(this.#place, signal);
    const kept = await host.cursor(accountId, KEPT);
    if (kept) await this.#take({ data: kept, isKept: true }, own, signal);
    const last = await host.cursor(accountId, CURSOR);
    const headers = {
      accept: "text/event-stream",
      ...optional({ "last-event-id": last }),
    };
    const path = `/api/v1/events?account=${encodeURIComponent(number)}`;
    const opened = await daemon.open(path, headers, { headMs: HEAD_MS, signal });
    if (opened.kind === "failed")
      throw new ListenProblem(`${opened.why}; the daemon should be at ${settings.url}`);
    try {
      const { statusCode = 0 } = opened.answer;
      if (statusCode === 400) throw strange(settings);
      if (statusCode !== 200)
        throw new ListenProblem(`the server there is not a signal-cli daemon (HTTP ${statusCode})`);
      ready();
      const { log } = host.world;
      const tooLong = (): void =>
        log.warn({ account: accountName(ID, accountId) }, "an event was skipped because it is too long");
      for await (const event of eventsOf(opened.answer, host.world.clock, tooLong)) {
        await this.#take(event, own, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error instanceof ListenProblem
        ? error
        : new ListenProblem("the connection to signal-cli was lost");
    } finally {
      opened.close();
    }
  }

  async #take(
    { id, data, isKept: wasKept = false }: StreamEvent & Pick<Pending, "isKept">,
    own: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const { settings, host } = this.#place;
    const { accountId, number } = settings;
    const event = fieldsOf(jsonOf(data));
    const account = textOf(event.account);
    const isOther = account !== undefined && !own.has(account);
    // The daemon runs for a single account, and that is not the configured one.
    if (isOther && !wasKept) {
      const other = head(safeLine(account), 40);
      throw new ListenProblem(`the daemon at ${settings.url} receives for ${other}, not for ${number}`, true);
    }
    const load = (attachment: string) => loadOf(this.#place, attachment);
    // The number in the settings may have changed since the event was kept.
    const read: Read = isOther
      ? { kind: "nothing" }
      : readEnvelope(event, { channel: ID, accountId, own, load });
    if (read.kind === "unreadable") {
      host.world.log.warn({ account: accountName(ID, accountId) }, `a message was skipped: ${read.why}`);
    }
    if (read.kind !== "message") {
      if (wasKept) await this.#keep("");
      return;
    }
    const { message } = read;
    const isKept = wasKept || (id === undefined && message.media.length > 0 && (await this.#keep(data)));
    await this.#store({ message, isKept, ...optional({ id }) }, signal);
  }

  /** Stores an event, or an empty text. Returns false if that fails: the message is then only in memory. */
  async #keep(data: string): Promise<boolean> {
    const { settings, host } = this.#place;
    try {
      await host.remember(settings.accountId, KEPT, data);
      return true;
    } catch (error) {
      const account = accountName(ID, settings.accountId);
      host.world.log.warn({ err: error, account }, "an event of Signal could not be stored");
      return false;
    }
  }

  /** Stores a message. If that fails, keeps the message until listening starts again, and throws. */
  async #store(one: Pending, signal: AbortSignal): Promise<void> {
    const { settings, host } = this.#place;
    this.#pending = one;
    await receivePatiently(host, accountName(ID, settings.accountId), one.message, signal);
    this.#pending = undefined;
    // If one of these fails, no harm is done: the message is read again and recognised.
    if (one.isKept === true) await this.#keep("");
    if (one.id !== undefined) await host.remember(settings.accountId, CURSOR, one.id).catch(() => undefined);
  }
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

async function test(place: SignalAccountContext): Promise<Result<string>> {
  const { settings, daemon } = place;
  try {
    await ownIds(place);
  } catch (error) {
    return fail(
      "channel_failed",
      error instanceof Error ? error.message : "the request to signal-cli failed",
    );
  }
  const answer = await daemon.call("version", {}, ASK_LIMITS);
  const version = answer.kind === "result" ? textOf(fieldsOf(answer.value).version) : undefined;
  return ok(
    `${settings.number}, signal-cli ${version === undefined ? "" : head(safeLine(version), 40)}`.trimEnd(),
  );
}

/** Opens the channel with at least one account. */
export function openSignal(accounts: readonly SignalAccount[], host: ChannelHost): Channel {
  const places = accounts.map(
    (settings): SignalAccountContext => ({
      settings,
      host,
      daemon: daemonAt(settings.url, host.world.clock),
    }),
  );
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
    async typing(route) {
      const place = placeFor(route.accountId);
      const to = recipientOf(route.to);
      if (!place.ok || to === undefined) return;
      const { daemon, settings } = place.value;
      await daemon.call("sendTyping", { account: settings.number, ...to }, ASK_LIMITS);
    },
    async test(accountId) {
      const place = placeFor(accountId);
      return place.ok ? test(place.value) : place;
    },
  };
}
