// Reads the messages that were added to a transcript since the last read.
// Each message is returned once, in order. If too many were added, reads only the newest ones, and the result
// says so.

import type { HistoryPage } from "../../contract/methods/talk.ts";
import { optional } from "../../core/optional.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Link, Reply } from "../gateway-link.ts";

const PAGE_MESSAGES = 200;
/** Maximum number of pages that one read loads. */
const PAGES_MAX = 5;

export interface CaughtUp {
  /** The new messages, oldest first. */
  readonly messages: readonly Message[];
  /** True after a reset of the session: the messages are those of its new transcript. */
  readonly wasReset: boolean;
  /** True if some of the new messages were skipped, because there were too many. */
  readonly gap: boolean;
}

export class TranscriptReader {
  readonly #link: Link;
  readonly #sessionKey: string;
  #sessionId: string | undefined;
  #lastId: string | undefined;

  constructor(link: Link, sessionKey: string) {
    this.#link = link;
    this.#sessionKey = sessionKey;
  }

  /** Returns the newest `limit` messages. `readNew` then returns the messages after them. */
  async begin(limit: number): Promise<Reply<readonly Message[]>> {
    const page = await this.#page(limit, undefined);
    if (!page.ok) return page;
    this.#noteRead(page.value);
    return { ok: true, value: limit === 0 ? [] : page.value.messages };
  }

  async readNew(): Promise<Reply<CaughtUp>> {
    const fresh: Message[] = [];
    let newest: HistoryPage | undefined;
    let before: string | undefined;
    let gap = true;
    for (let pages = 0; pages < PAGES_MAX && gap; pages++) {
      const page = await this.#page(PAGE_MESSAGES, before);
      if (!page.ok) return page;
      newest ??= page.value;
      const { messages, nextBefore, sessionId } = page.value;
      const knownAt =
        sessionId === this.#sessionId ? messages.findIndex((message) => message.id === this.#lastId) : -1;
      fresh.unshift(...messages.slice(knownAt + 1));
      gap = knownAt < 0 && nextBefore !== undefined;
      before = nextBefore;
    }
    const wasReset = newest !== undefined && newest.sessionId !== this.#sessionId;
    if (newest !== undefined) this.#noteRead(newest);
    return { ok: true, value: { messages: fresh, wasReset, gap } };
  }

  #noteRead(newest: HistoryPage): void {
    const last = newest.messages.at(-1)?.id;
    if (last !== undefined || newest.sessionId !== this.#sessionId) this.#lastId = last;
    this.#sessionId = newest.sessionId;
  }

  #page(limit: number, before: string | undefined): Promise<Reply<HistoryPage>> {
    return this.#link.request("chat.history", {
      sessionKey: this.#sessionKey,
      limit: Math.max(1, limit),
      ...optional({ before }),
    });
  }
}
