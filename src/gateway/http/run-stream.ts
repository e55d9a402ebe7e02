// Follows a run for HTTP clients, and streams it: converts live events to frames, no faster than the reader
// reads them.
// OS1: the final text comes from the run's row. Live events only show text earlier, and may be lost.
// OS2: a slow reader gets fewer and larger pieces; a reader that takes nothing for a while is disconnected.
// OS3: comments are sent during silence, so that no proxy closes the stream as inactive.

import { spokenText } from "../../core/rules/turn-rules.ts";
import type { Failure, Result } from "../../core/shapes/errors.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import { textOf, toolCallsOf } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Bus } from "../../engine/bus.ts";
import type { Clock, Timer } from "../../world.ts";
import { TextPieces } from "./text-pieces.ts";

/** A run whose end is awaited. */
export type Followed = Pick<Run, "runId" | "sessionKey" | "agentId" | "acceptedAt">;

export interface SentPicture {
  readonly id: string;
  readonly mimeType: string;
  /** Base64. */
  readonly content: string;
}

/** A run that succeeded. `cutShort`: the model reached its output limit. */
export interface EndedRun {
  readonly run: Run;
  readonly cutShort: boolean;
  /** Absent: the door shows none. */
  readonly pictures?: readonly SentPicture[];
  /** Calls that the client has to answer. Absent: none. */
  readonly calls?: readonly LeftCall[];
}

/** A call of a client's tool. */
export interface LeftCall {
  /** Names the place of the call in the transcript. */
  readonly place: string;
  readonly name: string;
  /** JSON, redacted. */
  readonly arguments: string;
}

export function tokensOf({ usage }: Run) {
  const { input, cacheRead, cacheWrite, output } = usage;
  const details = { cached_tokens: cacheRead, cache_write_tokens: cacheWrite };
  return { input: input + cacheRead + cacheWrite, output, details };
}

/** The frames of a stream, for one of the APIs. */
export interface StreamShape {
  begin(): string;
  piece(text: string): string;
  /**
   * Called when a text was not the final one, because calls of tools follow it. The next piece belongs to a
   * new text. Absent: the stream contains the texts of all messages, one after the other.
   */
  restart?(): void;
  /** `text`: all pieces together. */
  end(ended: EndedRun, text: string): string;
  /** `hasEnded`: true if the run failed; false if the run continues and only the stream ends. */
  fail(failure: Failure, hasEnded: boolean): string;
}

export function dataFrame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

const KEEP_ALIVE_MS = 15_000;
const KEEP_ALIVE = ": keep-alive\n\n";
/** A reader that reads nothing for this long, while data is waiting, counts as disconnected. */
const STALLED_MS = 60_000;

type OfRun = Extract<LiveEvent, { kind: "text" | "tool" | "message" }>;

/** Passes live events to the followers of each run, with one subscription for all of them. */
export class RunFeed {
  readonly #bus: Bus;
  readonly #followers = new Map<string, Set<(event: OfRun) => void>>();
  #leave: (() => void) | undefined;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  follow(runId: string, follower: (event: OfRun) => void): () => void {
    const set = this.#followers.get(runId) ?? new Set();
    this.#followers.set(runId, set.add(follower));
    this.#leave ??= this.#bus.subscribe((event) => {
      if (event.kind !== "text" && event.kind !== "tool" && event.kind !== "message") return;
      for (const follower of this.#followers.get(event.runId ?? "") ?? []) follower(event);
    });
    const hideText = this.#bus.showText();
    return () => {
      hideText();
      set.delete(follower);
      if (set.size === 0 && this.#followers.get(runId) === set) this.#followers.delete(runId);
      if (this.#followers.size > 0) return;
      this.#leave?.();
      this.#leave = undefined;
    };
  }
}

interface StreamParts {
  readonly feed: RunFeed;
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly runId: string;
  readonly shape: StreamShape;
  /**
   * Streams only the final text, because texts between tool calls would make a formatted answer unreadable.
   * Default false.
   */
  readonly finalOnly?: boolean;
  /**
   * How the run ended, read from its row. A failure whose details contain `ended` means that the run failed.
   * Any other failure means that its row could not be read.
   */
  readonly ended: Promise<Result<EndedRun>>;
  /** Called when the reader has disconnected. */
  onGone(): void;
  /** Closes the connection. */
  cut(): void;
}

class RunStream {
  readonly #parts: StreamParts;
  #pieces: TextPieces;
  readonly #unfollow: () => void;
  #pending = "";
  #end: Result<EndedRun> | undefined;
  #begun = false;
  #closed = false;
  #wake: () => void = () => {};
  #stalled: Timer | undefined;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#pieces = new TextPieces(parts.redactor);
    this.#unfollow = parts.feed.follow(parts.runId, (event) => this.#hear(event));
    void parts.ended.then((end) => {
      this.#end = end;
      this.#unfollow();
      this.#wake();
    });
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#stalled?.cancel();
    const frames = await this.#next();
    if (this.#closed) return;
    controller.enqueue(Buffer.from(frames.text));
    if (frames.last) {
      this.#closed = true;
      controller.close();
      return;
    }
    const { clock, cut } = this.#parts;
    this.#stalled = clock.after(STALLED_MS, cut);
  }

  cancel(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stalled?.cancel();
    this.#unfollow();
    this.#wake();
    this.#parts.onGone();
  }

  #hear(event: OfRun): void {
    if (this.#parts.finalOnly === true) return;
    if (event.kind === "text") {
      this.#pending += this.#pieces.next(event);
    } else if (event.kind === "tool") {
      if (event.phase === "start") this.#closeText();
    } else if (event.message.role === "assistant") {
      const text = textOf(event.message);
      if (toolCallsOf(event.message).length > 0) this.#closeText(text);
      else if (text.trim() !== "") this.#pieces.last();
    }
    this.#wake();
  }

  /** Handles the end of a message that is not the last one. */
  #closeText(text?: string): void {
    const { shape, redactor } = this.#parts;
    if (shape.restart === undefined) {
      this.#pending += this.#pieces.close(text);
      return;
    }
    this.#pending = "";
    this.#pieces = new TextPieces(redactor);
    shape.restart();
  }

  /** Waits for text, and returns all that can be sent. */
  async #next(): Promise<{ text: string; last: boolean }> {
    const { shape } = this.#parts;
    if (!this.#begun) {
      this.#begun = true;
      return { text: shape.begin(), last: false };
    }
    for (;;) {
      if (this.#end !== undefined) return { text: this.#last(this.#end), last: true };
      const piece = this.#pending;
      this.#pending = "";
      if (piece !== "") return { text: shape.piece(piece), last: false };
      if (!(await this.#woken()) || this.#closed) return { text: KEEP_ALIVE, last: false };
    }
  }

  #last(end: Result<EndedRun>): string {
    const { shape } = this.#parts;
    const rest = this.#pending + (end.ok ? this.#pieces.end(spokenText(end.value.run.reply ?? "")) : "");
    this.#pending = "";
    const frames = rest === "" ? "" : shape.piece(rest);
    if (end.ok) return frames + shape.end(end.value, this.#pieces.whole);
    return frames + shape.fail(end, end.details?.ended === true);
  }

  /** Waits for the next event. Returns false if none came for `KEEP_ALIVE_MS`. */
  async #woken(): Promise<boolean> {
    const { clock } = this.#parts;
    const woken = Promise.withResolvers<boolean>();
    this.#wake = () => woken.resolve(true);
    const late = clock.after(KEEP_ALIVE_MS, () => woken.resolve(false));
    const happened = await woken.promise;
    late.cancel();
    this.#wake = () => {};
    return happened;
  }
}

export function streamRun(parts: StreamParts): ReadableStream<Uint8Array> {
  const stream = new RunStream(parts);
  const source = {
    pull: (controller: ReadableStreamDefaultController<Uint8Array>) => stream.pull(controller),
    cancel: () => stream.cancel(),
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}
