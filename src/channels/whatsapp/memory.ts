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
}

export interface ChatMemory {
  note(chatId: string, messageId: string, said: Remembered): void;
  said(chatId: string, messageId: string): Remembered | undefined;
  /**
   * Records the newest message of a chat. It is needed to show a typing indicator, which marks this message
   * as read.
   */
  came(chatId: string, messageId: string): void;
  newest(chatId: string): string | undefined;
  /** Records that a message was not delivered. Returns true only the first time. */
  failed(messageId: string): boolean;
}

export function createChatMemory(): ChatMemory {
  const texts = new Map<string, Remembered>();
  const newest = new Map<string, string>();
  const failures = new Set<string>();
  const idOf = (chatId: string, messageId: string): string => JSON.stringify([chatId, messageId]);
  return {
    note(chatId, messageId, said) {
      const id = idOf(chatId, messageId);
      texts.delete(id);
      texts.set(id, { ...said, text: cut(said.text, TEXT_CHARS_MAX) });
      evictOldest(texts, TEXTS_MAX);
    },
    said: (chatId, messageId) => texts.get(idOf(chatId, messageId)),
    came(chatId, messageId) {
      newest.delete(chatId);
      newest.set(chatId, messageId);
      evictOldest(newest, CHATS_MAX);
    },
    newest: (chatId) => newest.get(chatId),
    failed(messageId) {
      if (failures.has(messageId)) return false;
      failures.add(messageId);
      evictOldest(failures, FAILURES_MAX);
      return true;
    },
  };
}
