// Owns what the fake Bot API server knows: its bots, chats, files, and what was sent.

import { optional } from "../../src/core/optional.ts";

/** Any object of the Bot API. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every shape.
export type Json = Record<string, any>;

export interface FakeBot {
  readonly id: number;
  readonly token: string;
  readonly username: string;
  /** Not confirmed yet, by rising id. */
  readonly updates: Json[];
  nextUpdateId: number;
  webhookUrl: string;
  commands: Json[];
  isRevoked: boolean;
  /** The request that waits for news. */
  waiting: ((answer: Answer) => void) | undefined;
  /** The allowed_updates that were asked for last. */
  allowed: readonly string[] | undefined;
  /** How often news was asked for, and with which offsets. */
  readonly offsets: (number | undefined)[];
}

export interface FakeChat {
  readonly id: number;
  readonly type: "private" | "group" | "supergroup" | "channel";
  readonly title?: string;
  readonly isForum?: boolean;
  readonly topics: Set<number>;
  /** Missing right of the bot, in the platform's words. */
  refusal?: { readonly code: number; readonly description: string };
  movedTo?: number;
  mayMakeTopics?: boolean;
}

export interface Sent {
  readonly chatId: number;
  readonly threadId?: number;
  readonly text: string;
  readonly entities: readonly Json[];
  readonly params: Json;
}

export interface Answer {
  readonly status: number;
  readonly body: Json | string;
  readonly headers?: Record<string, string>;
  /** The connection is broken off instead of an answer. */
  readonly cut?: boolean;
}

/** Goes before what would be answered to the next sendMessage. `after`: the message was taken. */
export interface Upset {
  readonly answer: Answer;
  readonly after?: boolean;
}

export interface TelegramState {
  readonly bots: FakeBot[];
  readonly chats: Map<number, FakeChat>;
  readonly files: Map<string, { readonly path: string; readonly bytes: Uint8Array }>;
  readonly sent: Sent[];
  readonly actions: Json[];
  readonly upsets: Upset[];
  nextMessageId: number;
}

export const failed = (code: number, description: string, parameters?: Json): Answer => ({
  status: code,
  body: { ok: false, error_code: code, description, ...optional({ parameters }) },
});
