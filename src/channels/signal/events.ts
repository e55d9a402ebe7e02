// Owns the stream of server-sent events of a signal-cli daemon, read one event at a time.
// SE1: the next event is read when the one before it was dealt with: a slow store slows the daemon down, and
//      fills no memory.
// SE2: an event that is too long is left out and told; the ones behind it are read.
// SE3: a stream that is silent for longer than the daemon ever is, is broken: there is nothing to wait for.

import type { IncomingMessage } from "node:http";
import type { Clock } from "../../world.ts";
import { ListenProblem } from "../accounts.ts";

/** The daemon writes a line every 15 seconds. */
const SILENCE_MAX_MS = 60_000;
/** Of one event. A message's text has at most 64 KiB; attachments are not in it. */
const EVENT_CHARS_MAX = 1024 * 1024;

export interface StreamEvent {
  /** What the daemon is given to go on from here. Older daemons have none. */
  readonly id?: string;
  readonly data: string;
}

/** Lines become events, as the standard says. */
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
      // A line without end: what it begins with is enough to know that it is no end of an event.
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
    if (name === "id" && value.length <= 200) this.#id = value;
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
    return { data, ...(this.#id === undefined ? {} : { id: this.#id }) };
  }
}

/** The events of an answer, until it ends. Throws where it breaks, or stays silent. */
export async function* eventsOf(
  answer: IncomingMessage,
  clock: Clock,
  onTooLong: () => void,
): AsyncGenerator<StreamEvent> {
  const reader = new EventReader(onTooLong);
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  while (true) {
    const silence = clock.at(clock.now() + SILENCE_MAX_MS, () => {
      answer.destroy(new ListenProblem(`signal-cli was silent for ${SILENCE_MAX_MS / 1_000} s`));
    });
    const next = await chunks.next().finally(() => silence.cancel());
    if (next.done === true) return;
    yield* reader.add(next.value);
  }
}
