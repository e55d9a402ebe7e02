// Defines the interface of a channel: a messaging platform that people use to write to agents, and that
// receives texts for people.
// CH1: the platform gets the acknowledgment of a message only after `receive` has resolved and so stored it
//      (I2).
// CH2: a failing channel does not affect the others. It throws from `listen`, or returns an outcome, with a
//      clear message that contains no secrets.
// A channel contains no product rules: inbound.ts decides which messages get an answer, in which session and
// when.

import type { Result } from "../core/shapes/errors.ts";
import type { Route } from "../core/shapes/session.ts";
import type { World } from "../world.ts";
import type { Account } from "./accounts.ts";

export interface OutgoingMessage {
  /**
   * The same id for every attempt. Together with `part`, it is the deduplication key for channels that
   * support one.
   */
  readonly deliveryId: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly route: Route;
  /** Text in Markdown. The channel converts it for its platform. */
  readonly text: string;
  /** Number of this part of a long text (from 1), and total number of parts. */
  readonly part: number;
  readonly parts: number;
}

/** Outcome of one attempt to deliver a text (I5). */
export type DeliveryOutcome =
  | { readonly kind: "sent" }
  /** The text was certainly not delivered. A retry is safe. */
  | { readonly kind: "retry"; readonly error: string; readonly afterMs?: number }
  /** The text was certainly not delivered, and a retry cannot help. */
  | { readonly kind: "refused"; readonly error: string }
  /** The text may have been delivered. It is never sent again automatically. */
  | { readonly kind: "unknown"; readonly error: string };

/** A picture, voice message or other file that was sent with a message. */
export interface InboundMedia {
  readonly kind: "image" | "voice" | "audio" | "video" | "file";
  /** Name of the file, as the sender chose it. Untrusted. */
  readonly name?: string;
  readonly mimeType?: string;
  /** Size that the platform reports. It may be wrong. */
  readonly bytes?: number;
  /** Reads the content, at most `maxBytes`. A failure contains the reason. */
  load(maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>>;
}

/** A message from a channel. All platforms use this format. Ids keep their upper and lower case. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId: string;
  /** The platform's id of the message, unique in its chat. A redelivered message has the same id. */
  readonly messageId: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly name?: string;
    readonly thread?: { readonly kind: "thread" | "topic"; readonly id: string; readonly name?: string };
    /** Other ids of the chat that settings may use, for example its guild. A public name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: {
    readonly id: string;
    readonly name?: string;
    /** Other ids of the sender that settings may use. A user name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly text: string;
  /** Whether the message mentions the agent's account or replies to it. */
  readonly mentioned: boolean;
  readonly quoted?: { readonly text: string; readonly senderName?: string };
  readonly media: readonly InboundMedia[];
  /**
   * Present if this message edits an earlier message. Both have the same message id; `edit` differs for each
   * edit.
   */
  readonly edit?: string;
  /** Time of the message, in ms since 1970. */
  readonly sentAt: number;
  /** Route for the reply: channel, account, chat and thread. */
  readonly replyTo: Route;
  /**
   * True if the sender chose the command from the platform's own menu. The text is then `/name arguments`.
   */
  readonly nativeCommand?: boolean;
  /** The sender forwarded another person's message. */
  readonly forwarded?: boolean;
  /** Name of the account in `/command@name`. If absent, such a command counts if the account is mentioned. */
  readonly accountName?: string;
}

/** Services that a channel gets from the gateway. */
export interface ChannelHost {
  readonly world: World;
  /**
   * Accepts a message. Resolves after it is stored. If it rejects, the platform must deliver the message
   * again.
   */
  receive(message: InboundMessage): Promise<void>;
  /** Returns the last value that an account has stored under this name, for example its read position. */
  cursor(accountId: string, name: string): Promise<string | undefined>;
  remember(accountId: string, name: string, value: string): Promise<void>;
  /** Commands to publish in the platform's own menu. */
  readonly commands: readonly { readonly name: string; readonly description: string }[];
}

/** An HTTP request from the platform to our web server. */
export interface PlatformCall {
  readonly accountId: string;
  readonly method: string;
  readonly query: URLSearchParams;
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}
export interface PlatformAnswer {
  readonly status: number;
  /** Body of the answer, as plain text. */
  readonly body: string;
}

export interface Channel {
  readonly id: string;
  /** Whether a second attempt with the same delivery id shows the text only once. */
  readonly deduplicates: boolean;
  /** Maximum characters of one part. Longer texts are sent in parts. No limit if absent. */
  readonly textMaxChars?: number;
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  /**
   * Accounts that exactly one process of the deployment must listen to. Absent if every process can receive
   * messages, or if there is nothing to receive.
   */
  readonly accounts?: readonly Account[];
  /** Shows a typing indicator for some seconds. Failures are ignored. */
  typing?(route: Route): Promise<void>;
  /** Creates a thread for a separate conversation, in this chat or next to it. Absent if not supported. */
  openThread?(at: Route, title: string): Promise<Result<OpenedThread>>;
  /** Answers a request from the platform. Resolves after the messages in the request are stored. */
  called?(call: PlatformCall): Promise<PlatformAnswer>;
  /**
   * Tests at the platform whether an account works. Returns the account's name there, or a failure:
   * `channel_failed` with the reason, or `channel_unknown` for an unknown account.
   */
  test?(accountId: string): Promise<Result<string>>;
  close?(): Promise<void>;
}

export interface OpenedThread {
  readonly route: Route;
  /**
   * `created`: a new thread was created. `bound`: the platform has no threads here, so the chat itself is
   * used.
   */
  readonly kind: "created" | "bound";
}
