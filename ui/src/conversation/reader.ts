// Reads one session while it is open: its newest messages or those around a given message, older and newer
// pages, and new messages. Reads run one after the other, so that answers arrive in order. Events during a
// read cause one more read.
// RE2: events only tell that there is something new. The messages are read from the transcript, from the last
//      known message on. So no message is shown twice, and a message is shown even if its event was missed.
// RE3: the gateway reports if a transcript was replaced (reset) or deleted; the page never infers this by
//      itself.

import { signal } from "@preact/signals";
import { GatewayError } from "../../../src/contract/client/error.ts";
import { retryWords } from "../../../src/core/shapes/model-retry.ts";
import { batched } from "../clock.ts";
import { ask, on, streamedSoFar, whenConnected } from "../gateway.ts";
import { StreamedTexts } from "./live.ts";
import { type Page, type Thread, threadOf, withNewer, withNow, withOlder } from "./thread.ts";

const PAGE_MESSAGES = 100;
/**
 * Maximum number of pages that are read in a row to catch up. If more messages are missing, a reader who
 * follows the end gets the newest page, and other readers get a button that leads to it.
 */
const CATCH_UP_PAGES_MAX = 10;
/** All events within this time cause only one read. */
const BATCH_MS = 80;
/** All events of other sessions within this time cause only one read of the states of this session's jobs. */
const JOBS_BATCH_MS = 500;

/** A change after which the shown transcript is no longer valid. */
export type Fate = "reset" | "deleted" | "message_missing";

function reasonOf(error: unknown): string | undefined {
  return error instanceof GatewayError ? error.reason : undefined;
}

export class SessionReader {
  readonly thread = signal<Thread | undefined>(undefined);
  readonly problem = signal<unknown>(undefined);
  readonly fate = signal<Fate | undefined>(undefined);
  readonly unseen = signal(0);
  /** Changes when the view must scroll: to the message, or without one to the end. */
  readonly jump = signal<{ readonly messageId?: string | undefined }>({});
  readonly live = new StreamedTexts();
  /** The run whose model call will be retried, with a text that says when. */
  readonly retry = signal<{ readonly runId: string; readonly words: string } | undefined>(undefined);
  /** True while the view stays at the newest message. */
  readonly following = signal(true);

  readonly #sessionKey: string;
  readonly #ends: (() => void)[] = [];
  /** Id of the newest message that is known. It may be outside of the loaded window. */
  #tail: string | undefined;
  #last: Promise<void> = Promise.resolve();
  #newsWaits = false;

  constructor(sessionKey: string) {
    this.#sessionKey = sessionKey;
  }

  /** Starts to read and to handle events, until `close` is called. */
  open(): void {
    const news = batched(BATCH_MS, () => this.news());
    const newsOfJobs = batched(JOBS_BATCH_MS, () => this.news());
    this.#ends.push(
      on("chat", ({ sessionKey, runId, state, message }) => {
        if (!this.#isMine(sessionKey)) return;
        const text = message?.content[0]?.text;
        if (this.retry.value?.runId === runId) this.retry.value = undefined;
        if (state === "delta" && text !== undefined) return this.live.say(runId, "text", text);
        this.live.written(runId);
        news();
      }),
      on("agent", (event) => {
        if (!this.#isMine(event.sessionKey) || event.stream === "assistant" || event.stream === "flow")
          return;
        const { runId } = event;
        if (event.stream === "retry") {
          this.retry.value = { runId, words: retryWords(event.data) };
          this.live.forgetThinking(runId);
          return;
        }
        if (this.retry.value?.runId === runId) this.retry.value = undefined;
        if (event.stream === "thinking_delta")
          return this.live.say(runId, "thinking", event.data.text ?? "", event.data.ms);
        this.live.written(runId);
        news();
      }),
      on("sessions", ({ key, change }) => {
        if (!this.#isMine(key)) {
          // The event does not say whether the other session is a job of this one.
          if (this.thread.value?.now?.session.jobs !== undefined) newsOfJobs();
          return;
        }
        if (change === "deleted") this.fate.value = "deleted";
        else news();
      }),
    );
    for (const { sessionKey, runId, message } of streamedSoFar("chat"))
      if (this.#isMine(sessionKey)) this.live.say(runId, "text", message?.content[0]?.text ?? "");
    for (const { stream, sessionKey, runId, data } of streamedSoFar("agent"))
      if (stream === "thinking_delta" && this.#isMine(sessionKey))
        this.live.say(runId, "thinking", data.text ?? "", data.ms);
    this.#ends.push(whenConnected(() => this.news()));
  }

  close(): void {
    for (const end of this.#ends.splice(0)) end();
    this.live.clear();
  }

  /** Records that the view has reached or left the newest message. */
  follow(follows: boolean): void {
    this.following.value = follows;
    if (follows) this.unseen.value = 0;
  }

  around(messageId: string): void {
    this.#then(async () => {
      try {
        this.#replace(await this.#read({ around: messageId }), messageId);
      } catch (error) {
        if (reasonOf(error) !== "message_not_found") throw error;
        this.fate.value = "message_missing";
        this.#replace(await this.#read({}));
      }
    });
  }

  latest(): void {
    if (this.thread.value?.nextAfter === undefined) {
      this.jump.value = {};
      return;
    }
    this.#then(async () => this.#replace(await this.#read({})));
  }

  older(): void {
    const before = this.thread.value?.nextBefore;
    if (before === undefined) return;
    this.#then(async () => {
      const { value } = this.thread;
      if (value?.nextBefore === before) this.#show(withOlder(value, await this.#read({ before })));
    });
  }

  newer(): void {
    const after = this.thread.value?.nextAfter;
    if (after === undefined) return;
    this.#then(async () => {
      const { value } = this.thread;
      if (value?.nextAfter === after) this.#show(withNewer(value, await this.#read({ after }), "newest"));
    });
  }

  /** Reads the messages that were added since the last read. */
  news(): void {
    if (this.#newsWaits) return;
    this.#newsWaits = true;
    this.#then(async () => {
      this.#newsWaits = false;
      const dropStored = this.live.onDisk();
      await this.#readNews();
      dropStored();
    });
  }

  #isMine(key: string): boolean {
    return key === (this.thread.value?.sessionKey ?? this.#sessionKey);
  }

  #then(read: () => Promise<void>): void {
    this.#last = this.#last.then(read).then(
      () => {
        this.problem.value = undefined;
      },
      (error: unknown) => {
        const isGone = reasonOf(error) === "session_not_found" || reasonOf(error) === "not_visible";
        if (isGone && this.thread.value !== undefined) this.fate.value = "deleted";
        else this.problem.value = error;
      },
    );
  }

  #read(place: { before?: string; after?: string; around?: string; limit?: number }): Promise<Page> {
    const request = { sessionKey: this.#sessionKey, limit: PAGE_MESSAGES, includeRuns: true };
    return ask("chat.history", { ...request, ...place });
  }

  #show(thread: Thread): void {
    this.thread.value = thread;
    if (thread.nextAfter !== undefined) return;
    this.#tail = thread.messages.at(-1)?.id;
  }

  #replace(page: Page, messageId?: string): void {
    const before = this.thread.value;
    if (before?.sessionId !== undefined && before.sessionId !== page.sessionId) {
      this.fate.value = "reset";
      this.live.clear();
    }
    const now = page.now ?? before?.now;
    this.unseen.value = 0;
    this.#tail = undefined;
    this.#show({ ...threadOf(page), now });
    this.jump.value = { messageId };
  }

  async #readNews(): Promise<void> {
    const { value } = this.thread;
    if (value === undefined) return this.#replace(await this.#read({}));
    if (this.#tail === undefined) return this.#findTail(value);
    try {
      for (let pages = 0; pages < CATCH_UP_PAGES_MAX && this.#tail !== undefined; pages += 1) {
        const page = await this.#read({ after: this.#tail });
        this.#add(page);
        if (page.nextAfter === undefined) return;
      }
      if (this.following.value) this.#replace(await this.#read({}));
    } catch (error) {
      if (reasonOf(error) !== "message_not_found") throw error;
      this.#replace(await this.#read({}));
    }
  }

  /** Finds the newest message if the session was empty, or the window does not reach the end. */
  async #findTail(thread: Thread): Promise<void> {
    const newest = await this.#read(thread.nextAfter === undefined ? {} : { limit: 1 });
    if (thread.nextAfter === undefined || newest.sessionId !== thread.sessionId) {
      return this.#replace(newest.messages.length > 1 ? newest : await this.#read({}));
    }
    this.#show(withNow(thread, newest));
    this.#tail = newest.messages.at(-1)?.id;
  }

  /** Adds a page after the newest known message. Outside of the window, updates only runs and state. */
  #add(page: Page): void {
    const thread = this.thread.value;
    if (thread === undefined) return;
    if (!this.following.value)
      this.unseen.value += page.messages.filter((message) => message.role !== "toolResult").length;
    if (thread.messages.at(-1)?.id === this.#tail) {
      this.#show(withNewer(thread, page, this.following.value ? "newest" : "oldest"));
    } else {
      this.#show(withNow(thread, page));
    }
    this.#tail = page.messages.at(-1)?.id ?? this.#tail;
  }
}
