// Owns Signal as a channel, over a signal-cli daemon (`signal-cli daemon --http`): its accounts, what comes
// in from them, and what leaves.
// SG1: an event is passed by once it is stored (I2): until then the stream stands still, and the place to go
//      on from is that of the event before it.
// SG2: what a daemon that keeps events brings again after a break is the same message again: its id is.
// SG3: an account that the daemon does not have is a lasting problem, told by its number.
// SG4: of an attachment no more than is wanted is taken from the daemon, by the id that it gave it.

import type { SignalAccount } from "../../core/channel-settings.ts";
import { fail, ok, type Result } from "../../core/errors.ts";
import { fieldsOf, jsonOf } from "../../core/json.ts";
import { safeLine } from "../../core/safe-text.ts";
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
import { type Fields, objectsOf, textOf } from "../fields.ts";
import { receivePatiently } from "../patient-receive.ts";
import { type Answer, type Daemon, daemonAt } from "./daemon.ts";
import { readEnvelope } from "./envelope.ts";
import { eventsOf } from "./events.ts";
import { outcomeOf, recipientOf, styled, TEXT_MAX_CHARS } from "./send.ts";

const ID = "signal";
/** A group of a thousand is encrypted a thousand times. */
const SEND_TIMEOUT_MS = 120_000;
const ASK_TIMEOUT_MS = 15_000;
const LOAD_TIMEOUT_MS = 60_000;
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** The daemon may send its answer's head with the first sign of life, after 15 seconds. */
const HEAD_MS = 30_000;
/** Of a call that asks for little. */
const ASK_LIMITS = { timeoutMs: ASK_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX };
const ACCOUNTS_MAX = 1_000;
/** Under this name the place in the daemon's events is remembered. */
const CURSOR = "events";
const METHOD_NOT_FOUND = -32601;

/** Whoever is spoken for, and where. */
interface Place {
  readonly settings: SignalAccount;
  readonly daemon: Daemon;
  readonly host: ChannelHost;
}

/** Words for the state of an account that can't be asked. */
function whyNot(answer: Exclude<Answer, { kind: "result" }>, url: string): string {
  if (answer.kind === "failed") return `${answer.why}; the daemon should be at ${url}`;
  return `signal-cli: ${safeLine(answer.message).slice(0, 200) || `error ${answer.code}`}`;
}

function strange({ number, url }: SignalAccount): ListenProblem {
  const what = `the signal-cli daemon at ${url} has no account ${number}`;
  return new ListenProblem(`${what}: register or link it with signal-cli`, true);
}

/** The ids that the account is known by. A daemon for one account alone does not tell. */
async function ownIds({ settings, daemon }: Place, signal?: AbortSignal): Promise<Set<string>> {
  const { number, url } = settings;
  const answer = await daemon.call(
    "listAccounts",
    {},
    { ...ASK_LIMITS, ...(signal === undefined ? {} : { signal }) },
  );
  if (answer.kind === "error" && answer.code === METHOD_NOT_FOUND) return new Set([number]);
  if (answer.kind !== "result") throw new ListenProblem(whyNot(answer, url));
  const own = objectsOf(answer.value, ACCOUNTS_MAX).find(
    (one) => one.number === number || one.aci === number,
  );
  if (own === undefined) throw strange(settings);
  return new Set([number, own.number, own.aci, own.uuid].flatMap((id) => textOf(id) ?? []));
}

/** Reads an attachment that the daemon keeps. */
function loadOf({ settings, daemon }: Place, id: string): InboundMedia["load"] {
  return async (maxBytes, signal) => {
    const params = { account: settings.number, id };
    // Base64, and what stands around it.
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
      return fail("file_problem", "the file could not be fetched: signal-cli gave no data");
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > maxBytes) return fail("too_large", `the file has more than ${maxBytes} bytes`);
    return ok(new Uint8Array(bytes));
  };
}

/** One account that is listened at. */
class Listener {
  readonly #place: Place;
  /** What came and could not be stored: it is the first thing to be stored when it is listened again. */
  #pending: { readonly message: InboundMessage; readonly id?: string } | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  async listen({ signal, ready }: Ear): Promise<void> {
    const { settings, daemon, host } = this.#place;
    const { number, accountId } = settings;
    if (this.#pending !== undefined) await this.#store(this.#pending, signal);
    const own = await ownIds(this.#place, signal);
    const last = await host.cursor(accountId, CURSOR);
    const headers = {
      accept: "text/event-stream",
      ...(last === undefined ? {} : { "last-event-id": last }),
    };
    const path = `/api/v1/events?account=${encodeURIComponent(number)}`;
    const opened = await daemon.open(path, headers, { headMs: HEAD_MS, signal });
    if (opened.kind === "failed")
      throw new ListenProblem(`${opened.why}; the daemon should be at ${settings.url}`);
    try {
      const { statusCode = 0 } = opened.answer;
      if (statusCode === 400) throw strange(settings);
      if (statusCode !== 200)
        throw new ListenProblem(`what answers there is no signal-cli daemon (HTTP ${statusCode})`);
      ready();
      const { log } = host.world;
      const tooLong = (): void =>
        log.warn({ account: accountName(ID, accountId) }, "an event was left out: it is too long");
      for await (const { id, data } of eventsOf(opened.answer, host.world.clock, tooLong)) {
        await this.#take(fieldsOf(jsonOf(data)), own, id, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error instanceof ListenProblem
        ? error
        : new ListenProblem("the connection to signal-cli broke off");
    } finally {
      opened.close();
    }
  }

  async #take(
    event: Fields,
    own: ReadonlySet<string>,
    id: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { settings, host } = this.#place;
    const { accountId, number } = settings;
    const account = textOf(event.account);
    // A daemon for one account alone, which is not the one that is configured.
    if (account !== undefined && !own.has(account)) {
      const other = safeLine(account).slice(0, 40);
      throw new ListenProblem(`the daemon at ${settings.url} receives for ${other}, not for ${number}`, true);
    }
    const load = (attachment: string) => loadOf(this.#place, attachment);
    const read = readEnvelope(event, { channel: ID, accountId, own, load });
    if (read.kind === "unreadable") {
      host.world.log.warn({ account: accountName(ID, accountId) }, `a message was left out: ${read.why}`);
    }
    if (read.kind !== "message") return;
    await this.#store({ message: read.message, ...(id === undefined ? {} : { id }) }, signal);
  }

  /** Stores it, or throws; what could not be stored is kept for the next time. */
  async #store(
    one: { readonly message: InboundMessage; readonly id?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { settings, host } = this.#place;
    this.#pending = one;
    await receivePatiently(host, accountName(ID, settings.accountId), one.message, signal);
    this.#pending = undefined;
    // Lost, it costs that the message comes again, and is known.
    if (one.id !== undefined) await host.remember(settings.accountId, CURSOR, one.id).catch(() => undefined);
  }
}

async function deliver(
  { settings, daemon }: Place,
  { route, text }: OutgoingMessage,
): Promise<DeliveryOutcome> {
  const to = recipientOf(route.to);
  if (to === undefined) {
    const words = safeLine(route.to).slice(0, 60);
    return { kind: "refused", error: `${words} is no number, account id or group id of Signal` };
  }
  const { message, textStyle } = styled(text);
  const params = {
    account: settings.number,
    ...to,
    message,
    ...(textStyle.length === 0 ? {} : { textStyle }),
  };
  return outcomeOf(
    await daemon.call("send", params, { timeoutMs: SEND_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX }),
  );
}

async function test(place: Place): Promise<Result<string>> {
  const { settings, daemon } = place;
  try {
    await ownIds(place);
  } catch (error) {
    return fail("channel_failed", error instanceof Error ? error.message : "signal-cli could not be asked");
  }
  const answer = await daemon.call("version", {}, ASK_LIMITS);
  const version = answer.kind === "result" ? textOf(fieldsOf(answer.value).version) : undefined;
  return ok(
    `${settings.number}, signal-cli ${version === undefined ? "" : safeLine(version).slice(0, 40)}`.trimEnd(),
  );
}

/** Opens Signal with its accounts, of which there is at least one. */
export function openSignal(accounts: readonly SignalAccount[], host: ChannelHost): Channel {
  const places = accounts.map(
    (settings): Place => ({ settings, host, daemon: daemonAt(settings.url, host.world.clock) }),
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
      return place.ok ? deliver(place.value, message) : { kind: "refused", error: place.error };
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
