// Remembers facts about an account's chats in memory: the beginning of texts by message id, because the
// platform sends only the id of a quoted message, and the newest message of each chat.
// WM1: the memory has a limited size. The oldest entry is removed first.

import { evictOldest } from "../../core/bounded.ts";
import { cut } from "../../core/text/cut.ts";

const TEXTS_MAX = 2_000;
const TEXT_CHARS_MAX = 500;
const CHATS_MAX = 2_000;
const FAILURES_MAX = 200;

export interface Remembered {
  readonly text: string;
  /** Absent for the account's own messages, or if the name is unknown. */
  readonly senderName?: string;
  readonly isOurs: boolean;
  /** The ids of its author. Empty if it was forwarded. Absent for the account's own messages. */
  readonly author?: readonly string[];
}

export class ChatMemory {
  readonly #texts = new Map<string, Remembered>();
  readonly #newest = new Map<string, string>();
  readonly #failures = new Set<string>();

  note(chatId: string, messageId: string, said: Remembered): void {
    const id = JSON.stringify([chatId, messageId]);
    this.#texts.delete(id);
    this.#texts.set(id, { ...said, text: cut(said.text, TEXT_CHARS_MAX) });
    evictOldest(this.#texts, TEXTS_MAX);
  }

  said(chatId: string, messageId: string): Remembered | undefined {
    return this.#texts.get(JSON.stringify([chatId, messageId]));
  }

  /**
   * Records the newest message of a chat. It is needed to show a typing indicator, which marks this message
   * as read.
   */
  came(chatId: string, messageId: string): void {
    this.#newest.delete(chatId);
    this.#newest.set(chatId, messageId);
    evictOldest(this.#newest, CHATS_MAX);
  }

  newest(chatId: string): string | undefined {
    return this.#newest.get(chatId);
  }

  /** Records that a message was not delivered. Returns true only the first time. */
  failed(messageId: string): boolean {
    if (this.#failures.has(messageId)) return false;
    this.#failures.add(messageId);
    evictOldest(this.#failures, FAILURES_MAX);
    return true;
  }
}
