// Reads the daemon's stream of server-sent events, one event at a time.
// SE1: the next event is read only after the previous one is processed. So if the store is slow, the daemon
//      waits, and events do not fill the memory.
// An event that is too long is skipped and reported; later events are read.
// SE3: a stream that is silent for longer than the heartbeat interval counts as broken.

import type { IncomingMessage } from "node:http";
import { ListenProblem } from "../../channels/accounts.ts";
import { optional } from "../../core/optional.ts";
import type { Clock } from "../../world.ts";

/** If nothing arrives for this long, the stream is broken. The daemon writes a line every 15 seconds. */
const SILENCE_MAX_MS = 60_000;
/**
 * Size limit of one event. It is sufficient: the text of a message has at most 64 KiB, and attachments are
 * not part of the event.
 */
const EVENT_CHARS_MAX = 1024 * 1024;

/** Matches valid event ids. An id is sent back in a header. */
const ID = /^[\x21-\x7e]{1,200}$/;

export interface StreamEvent {
  /** The id with which the stream can be resumed after this event. Older daemons send none. */
  readonly id?: string;
  readonly data: string;
}

/** Parses lines to events, according to the standard for server-sent events. */
class EventReader {
  readonly #onTooLong: () => void;
  readonly #decoder = new TextDecoder();
  #rest = "";
  #id: string | undefined;
  #data: string[] = [];
  #chars = 0;
  #isTooLong = false;

  constructor(onTooLong: () => void) {
    this.#onTooLong = onTooLong;
  }

  add(chunk: Uint8Array): StreamEvent[] {
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    if (this.#chars + this.#rest.length > EVENT_CHARS_MAX) {
      // Of a line that is too long only the beginning is needed. It shows that this is not the empty line
      // that ends an event.
      this.#isTooLong = true;
      this.#data = [];
      this.#rest = this.#rest.slice(0, 1);
    }
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): StreamEvent | undefined {
    if (line === "") return this.#end();
    this.#chars += line.length;
    if (this.#chars > EVENT_CHARS_MAX) this.#isTooLong = true;
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "id" && ID.test(value)) this.#id = value;
    if (name === "data" && !this.#isTooLong) this.#data.push(value);
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const data = this.#data.join("\n");
    const isTooLong = this.#isTooLong;
    this.#data = [];
    this.#chars = 0;
    this.#isTooLong = false;
    if (isTooLong) this.#onTooLong();
    if (isTooLong || data === "") return undefined;
    return { data, ...optional({ id: this.#id }) };
  }
}

/** Yields the events of a response until it ends. Throws if the connection is lost or silent for too long. */
export async function* eventsOf(
  answer: IncomingMessage,
  clock: Clock,
  onTooLong: () => void,
): AsyncGenerator<StreamEvent> {
  const reader = new EventReader(onTooLong);
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  while (true) {
    const silence = clock.after(SILENCE_MAX_MS, () => {
      answer.destroy(new ListenProblem(`signal-cli was silent for ${SILENCE_MAX_MS / 1_000} s`));
    });
    const next = await chunks.next().finally(() => silence.cancel());
    if (next.done === true) return;
    yield* reader.add(next.value);
  }
}
