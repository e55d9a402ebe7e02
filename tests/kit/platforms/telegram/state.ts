// The state of the fake Bot API server: its bots, chats, files, and sent messages.

import { optional } from "../../../../src/core/optional.ts";

/** Any object of the Bot API. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every shape.
export type Json = Record<string, any>;

export interface FakeBot {
  readonly id: number;
  readonly token: string;
  readonly username: string;
  /** Unconfirmed updates in the order of their ids. */
  readonly updates: Json[];
  nextUpdateId: number;
  webhookUrl: string;
  commands: Json[];
  isRevoked: boolean;
  /** Answers the open long poll for updates. */
  waiting: ((answer: Answer) => void) | undefined;
  /** The value of `allowed_updates` in the last request. */
  allowed: readonly string[] | undefined;
  /** The offset of each request for updates. */
  readonly offsets: (number | undefined)[];
}

export interface FakeChat {
  readonly id: number;
  readonly type: "private" | "group" | "supergroup" | "channel";
  readonly title?: string;
  readonly isForum?: boolean;
  readonly topics: Set<number>;
  /** The error, in Telegram's words, of an action for which the bot has no right. */
  refusal?: { readonly code: number; readonly description: string };
  movedTo?: number;
  mayMakeTopics?: boolean;
}

export interface Sent {
  readonly messageId: number;
  readonly chatId: number;
  readonly threadId?: number;
  text: string;
  entities: readonly Json[];
  /** Rows of buttons below the text. */
  buttons: readonly (readonly Json[])[];
  /** Time of the last edit, in seconds since 1970. */
  editedAt?: number;
  readonly params: Json;
  readonly file?: { readonly name: string; readonly bytes: Buffer };
}

export interface Answer {
  readonly status: number;
  readonly body: Json | string;
  readonly headers?: Record<string, string>;
  /** Breaks the connection instead of answering. */
  readonly cut?: boolean;
}

/** A failure before the next answer of sendMessage. `after`: the message is accepted nevertheless. */
export interface Upset {
  readonly answer: Answer;
  readonly after?: boolean;
}

/** A press of a button, and the notice that its person got: empty for none, absent before the answer. */
export interface Press {
  readonly id: string;
  notice?: string;
}

export interface TelegramState {
  readonly presses: Press[];
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
