// Reads the answer of a model server in whatever form it comes, and passes on the plain event stream of its
// API. An answer may come as events with or without names, as one JSON document, or as lines of JSON. Empty
// events, comments and events that are not JSON are skipped.
// PS1: an answer that said why it ends is over after a second without events, and after about five seconds in
//      any case, whether or not the server closes.
// PS2: the words of a failure are kept in `seen`, because each client library words them in its own way.

import { ReadableStream as NodeStream } from "node:stream/web";
import { createParser } from "eventsource-parser";
import { isObject, jsonOf } from "../../../core/json.ts";
import { JsonMeter, meteredBody } from "../../../core/meter.ts";
import { createPaces } from "../../../core/pace.ts";
import { head } from "../../../core/text/cut.ts";
import { connectionCause, type Fetch, isConnectTimeout } from "../../../world/outgoing.ts";
import type { World } from "../../../world.ts";
import { type Call, RequestError } from "../call.ts";
import { messageIn } from "./error-words.ts";

export type Json = Record<string, unknown>;

/** Puts the events of one API into their plain form. */
export interface PlainForm {
  /** Takes one event. Throws a `RequestError` if the provider has stopped the answer. */
  take(event: Json): void;
  /** True once the provider has said why the answer ends. */
  readonly hasEnded: boolean;
  /** True once nothing more can follow. */
  readonly isOver: boolean;
  /** True once anything of an answer has come. */
  readonly hasContent: boolean;
  /** Takes the end. `isWhole`: whether the server has marked the end, or sent one whole document. */
  end(isWhole: boolean): void;
  /** Returns the plain events since the last call. */
  flush(): readonly Json[];
}

/** Silence after the reason of the end that is taken for the end. */
const END_WAIT_MS = 1_000;
/** Time after the reason of the end in which usage may still come. */
const END_MAX_MS = 5_000;
const ERROR_BYTES_MAX = 64 * 1024;
const STRAY_CHARS_MAX = 500;
const DONE = "[DONE]";

type Part = Pick<Call, "seen" | "world" | "heard" | "model">;

/** Wraps a fetch to report what it receives, and to make the answer plain. */
export function plainFetch(inner: Fetch, call: Part, form: () => PlainForm): Fetch {
  const { seen, heard, model } = call;
  return async (input, init) => {
    const sent = new Headers(init?.headers);
    const names = new Set(Object.keys(model.provider.headers).map((name) => name.toLowerCase()));
    for (const name of [...sent.keys()])
      if (!NEEDED_HEADERS.some((needed) => name.startsWith(needed)) && !names.has(name)) sent.delete(name);
    const response = await inner(input, { ...init, headers: sent }).catch((error: unknown) => {
      seen.notConnected = isConnectTimeout(error);
      seen.words = causeIn(error);
      throw error;
    });
    heard(0);
    const { status, statusText, headers, body } = response;
    seen.status = status;
    seen.headers = headers;
    if (status >= 300 && status < 400) {
      const target = headers.get("location") ?? "";
      const isAddress = URL.canParse(target, response.url);
      seen.redirectedTo = isAddress ? new URL(target, response.url).origin : "nowhere";
      await body?.cancel();
      return new Response(null, { status, statusText });
    }
    if (body === null) return response;
    if (!response.ok) {
      const text = await beginningOf(body, call);
      seen.words = `${status} ${text === "" ? "status code (no body)" : text}`;
      return new Response(text, { status, statusText, headers });
    }
    const type = { "content-type": "text/event-stream" };
    const metered = meteredBody(body, new JsonMeter("event"));
    const plain = NodeStream.from(plainEvents(metered, call, form()));
    return new Response(plain as typeof body, { status, statusText, headers: type });
  };
}

/** Headers that a provider needs. Libraries take others from the environment, for any server. */
const NEEDED_HEADERS = [
  ...["accept", "user-agent", "authorization", "api-key", "x-api-key", "session_id", "x-client-request-id"],
  ...["content-", "anthropic-", "x-goog-", "x-session-"],
];

/** Returns the innermost cause of a failed connection, because the outer errors only say that it failed. */
const causeIn = (error: unknown): string =>
  connectionCause(error) ?? (error instanceof Error ? error.message : String(error));

/** Reads the beginning of an error's body, as far as it comes without a long silence. */
async function beginningOf(body: ReadableStream<Uint8Array>, { heard, world }: Part): Promise<string> {
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < ERROR_BYTES_MAX) {
    const silence = createSilence(world.clock);
    const reading = reader.read().catch(() => undefined);
    const next = await Promise.race([reading, silence.isOver]);
    silence.timer.cancel();
    if (next?.value === undefined) break;
    heard(next.value.byteLength);
    pieces.push(next.value);
    bytes += next.value.byteLength;
  }
  await reader.cancel().catch(() => {});
  return Buffer.concat(pieces).toString().trim();
}

async function* plainEvents(
  body: ReadableStream<Uint8Array>,
  call: Part,
  form: PlainForm,
): AsyncGenerator<Uint8Array> {
  const pace = createPaces(call.world)("with this step");
  const arrival = new Arrival(form, call.model.provider.id);
  try {
    for await (const text of textsOf(body, call, arrival)) {
      for (const event of arrival.eventsIn(text)) {
        arrival.take(event);
        await pace();
      }
      yield* encodeEvents(form.flush());
      if (arrival.isOver) break;
    }
    arrival.end();
    yield* encodeEvents(form.flush());
  } catch (error) {
    if (error instanceof RequestError) call.seen.words = error.message;
    yield* encodeEvents(form.flush());
    throw error;
  }
}

function* encodeEvents(events: readonly Json[]): Generator<Uint8Array> {
  if (events.length === 0) return;
  const texts = events.map((event) => {
    const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  yield Buffer.from(texts.join(""));
}

/** Returns the decoded texts of the body. After the reason of the end, a silence of a second is the end. */
async function* textsOf(
  body: ReadableStream<Uint8Array>,
  { world, seen, heard }: Part,
  arrival: Arrival,
): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let silence: ReturnType<typeof createSilence> | undefined;
  let endedAt: number | undefined;
  try {
    for (;;) {
      if (arrival.hasEnded) endedAt ??= world.clock.monotonic();
      const isLate = world.clock.monotonic() - (endedAt ?? Number.POSITIVE_INFINITY) > END_MAX_MS;
      if (arrival.hasNews() && arrival.hasEnded && !isLate) {
        silence?.timer.cancel();
        silence = createSilence(world.clock);
      }
      const reading = reader.read();
      reading.catch(() => {});
      const next = await (silence === undefined ? reading : Promise.race([reading, silence.isOver]));
      if (next === undefined) return;
      if (next.done) break;
      heard(next.value.byteLength);
      yield decoder.decode(next.value, { stream: true });
    }
    yield decoder.decode();
  } catch (error) {
    // A connection that breaks after the end of the answer takes nothing away.
    if (arrival.hasEnded) return;
    seen.words ??= causeIn(error);
    throw error;
  } finally {
    silence?.timer.cancel();
    await reader.cancel().catch(() => {});
  }
}

function createSilence(clock: World["clock"]) {
  const over = Promise.withResolvers<undefined>();
  return { isOver: over.promise, timer: clock.after(END_WAIT_MS, () => over.resolve(undefined)) };
}

interface ServerEvent {
  readonly name?: string | undefined;
  readonly data: string;
}

/** Finds out at the first character whether the answer is events or a document, and passes its events on. */
class Arrival {
  readonly #form: PlainForm;
  readonly #providerId: string;
  #waiting: ServerEvent[] = [];
  readonly #parser = createParser({
    onEvent: ({ event, data }) => this.#waiting.push({ name: event, data }),
  });
  #document: string[] | undefined;
  #isKnown = false;
  #isDone = false;
  #taken = 0;
  #seen = 0;
  /** Beginning of the first event that is not JSON. It may be the words of an error. */
  #stray = "";
  /** The last event. It may have the words of an error in a form of the server's own. */
  #last = "";

  constructor(form: PlainForm, providerId: string) {
    this.#form = form;
    this.#providerId = providerId;
  }

  get isOver(): boolean {
    return this.#isDone || this.#form.isOver;
  }

  get hasEnded(): boolean {
    return this.#form.hasEnded;
  }

  /** Returns whether events have arrived since the last call. */
  hasNews(): boolean {
    const before = this.#seen;
    this.#seen = this.#taken;
    return this.#seen > before;
  }

  /** Returns the events that are complete with this text. */
  eventsIn(text: string): readonly ServerEvent[] {
    if (!this.#isKnown && text.trim() !== "") {
      this.#isKnown = true;
      if (/^\s*[{[<]/.test(text)) this.#document = [];
    }
    if (this.#document !== undefined) this.#document.push(text);
    else this.#parser.feed(text);
    const events = this.#waiting;
    this.#waiting = [];
    return events;
  }

  take({ name, data }: ServerEvent): void {
    const text = data.trim();
    this.#isDone ||= text === DONE;
    if (text === "" || this.isOver) return;
    const event = jsonOf(text);
    if (isObject(event)) {
      this.#last = head(text, STRAY_CHARS_MAX);
      this.#pass(event, name);
    } else this.#stray ||= head(text, STRAY_CHARS_MAX);
  }

  end(): void {
    // An event without its empty line counts as complete.
    for (const event of this.eventsIn("\n\n")) this.take(event);
    const whole = this.#document?.join("") ?? this.#stray;
    if (this.#document !== undefined) this.#takeDocument(whole);
    const isNothing = this.#document !== undefined && !this.#form.hasContent && !this.hasEnded;
    if (this.#taken === 0 || isNothing) {
      const words = this.#taken === 0 ? undefined : messageIn(whole);
      throw new RequestError(words ?? this.#wrongAddress(whole));
    }
    if (!this.#form.hasContent && !this.hasEnded && !this.isOver) {
      const words = messageIn(this.#last);
      if (words !== undefined) throw new RequestError(words);
    }
    if (!this.#form.hasContent && this.#stray !== "")
      throw new RequestError(`the server sent an event that is not JSON: ${this.#stray}`);
    this.#form.end(this.isOver || this.#document !== undefined);
  }

  /** Passes an event on, or throws the failure that it reports. */
  #pass(event: Json, name?: string): void {
    this.#taken += 1;
    if (name === "error" || event.type === "error" || event.error)
      throw new RequestError(JSON.stringify(event));
    this.#form.take(name === undefined ? event : { type: name, ...event });
  }

  /** Reads a document. Some servers send a line of JSON for each piece, or all pieces as a list. */
  #takeDocument(text: string): void {
    const whole = jsonOf(text);
    const events = whole === undefined ? text.split("\n").map(jsonOf) : [whole].flat();
    for (const event of events) if (isObject(event)) this.#pass(event);
  }

  #wrongAddress(text: string): string {
    const words = messageIn(text) ?? head(text.trim(), STRAY_CHARS_MAX);
    const what = words === "" ? "an empty text" : JSON.stringify(words);
    const hint = `Check models.providers.${this.#providerId}.baseUrl: most servers need /v1 at its end.`;
    return `The address answered with ${what} instead of a model's answer. ${hint}`;
  }
}
