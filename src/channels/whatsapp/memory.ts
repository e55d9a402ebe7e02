// Owns what is remembered of an account's chats while the process lives: short texts by their id, because the
// platform tells of a quoted message only which one it is, and the newest message of each chat.
// WM1: it is bounded, whoever writes how much: the oldest is forgotten first.

import { dropOldest } from "../../core/bounded.ts";

const TEXTS_MAX = 2_000;
const TEXT_CHARS_MAX = 500;
const CHATS_MAX = 2_000;
const FAILURES_MAX = 200;

export interface Remembered {
  readonly text: string;
  /** Absent: it was our own, or nobody knows. */
  readonly senderName?: string;
  readonly isOurs: boolean;
}

export interface ChatMemory {
  note(chatId: string, messageId: string, said: Remembered): void;
  said(chatId: string, messageId: string): Remembered | undefined;
  /** The newest message that came in there, for marking it as read. */
  came(chatId: string, messageId: string): void;
  newest(chatId: string): string | undefined;
  /** True for the first time that it is told of this message. */
  failed(messageId: string): boolean;
}

/** Text cut where no character is taken apart. */
function beginning(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  return `${text.slice(0, TEXT_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, "")}…`;
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
      texts.set(id, { ...said, text: beginning(said.text) });
      dropOldest(texts, TEXTS_MAX);
    },
    said: (chatId, messageId) => texts.get(idOf(chatId, messageId)),
    came(chatId, messageId) {
      newest.delete(chatId);
      newest.set(chatId, messageId);
      dropOldest(newest, CHATS_MAX);
    },
    newest: (chatId) => newest.get(chatId),
    failed(messageId) {
      if (failures.has(messageId)) return false;
      failures.add(messageId);
      dropOldest(failures, FAILURES_MAX);
      return true;
    },
  };
}
