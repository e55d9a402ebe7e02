// Owns the interface of a channel: a messaging platform that messages come from and text goes to.
// CH1: a message is stored before the platform gets its acknowledgment (I2): `receive` has resolved.
// CH2: a channel that fails affects no other: it throws from `listen` or returns an outcome, in clear
//      words without secrets.
// Product rules are not here: inbound.ts decides who gets an answer, in which session and when.

import type { Result } from "../core/shapes/errors.ts";
import type { Route } from "../core/shapes/session.ts";
import type { World } from "../world.ts";
import type { Account } from "./accounts.ts";

export interface OutgoingMessage {
  /** The same for every attempt. With `part` it is the deduplication key of channels that can deduplicate. */
  readonly deliveryId: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly route: Route;
  /** Markdown; the channel converts it for its platform. */
  readonly text: string;
  /** Number of this part of a long text, from 1, and the number of parts. */
  readonly part: number;
  readonly parts: number;
}

/** Outcome of one attempt (I5). */
export type DeliveryOutcome =
  | { readonly kind: "sent" }
  /** Certainly not delivered; may be tried again. */
  | { readonly kind: "retry"; readonly error: string; readonly afterMs?: number }
  /** Certainly not delivered, and never will be. */
  | { readonly kind: "refused"; readonly error: string }
  /** The text may have been delivered; it is never retried automatically. */
  | { readonly kind: "unknown"; readonly error: string };

/** A picture, voice message or file that came with a message. */
export interface InboundMedia {
  readonly kind: "image" | "voice" | "audio" | "video" | "file";
  /** The sender's name for the file; untrusted. */
  readonly name?: string;
  readonly mimeType?: string;
  /** The size reported by the platform, which may be wrong. */
  readonly bytes?: number;
  /** Reads at most `maxBytes`. A failure says why the content is unavailable. */
  load(maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>>;
}

/** A message from a channel, in the same shape for every platform. Ids keep their case. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId: string;
  /** The platform's id, unique in its chat. A redelivered message has the same id. */
  readonly messageId: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly name?: string;
    readonly thread?: { readonly kind: "thread" | "topic"; readonly id: string; readonly name?: string };
    /** Other ids that settings may use, for example its guild. A public name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: {
    readonly id: string;
    readonly name?: string;
    /** Other ids that settings may use for the sender. A user name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly text: string;
  /** Whether it mentions the agent's account or replies to it. */
  readonly mentioned: boolean;
  readonly quoted?: { readonly text: string; readonly senderName?: string };
  readonly media: readonly InboundMedia[];
  /** Set for an edit of an earlier message with this id; different for each edit. */
  readonly edit?: string;
  /** ms since 1970. */
  readonly sentAt: number;
  /** Route of the reply: channel, account, chat and thread. */
  readonly replyTo: Route;
  /** The message is a command from the platform's own menu: text is `/name arguments`. */
  readonly nativeCommand?: boolean;
  /** The sender forwarded another person's message. */
  readonly forwarded?: boolean;
  /** The account's name in `/command@name`. Absent: `/command@name` is for us if we are mentioned. */
  readonly accountName?: string;
}

/** Services that a channel gets from the gateway. */
export interface ChannelHost {
  readonly world: World;
  /**
   * Accepts a message. Resolves when it is stored; rejects if not, and then the platform must redeliver it.
   */
  receive(message: InboundMessage): Promise<void>;
  /** Returns the last value stored under this name of an account, for example its read position. */
  cursor(accountId: string, name: string): Promise<string | undefined>;
  remember(accountId: string, name: string, value: string): Promise<void>;
  /** Commands for the platform's own menu. */
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
  /** Plain text. */
  readonly body: string;
}

export interface Channel {
  readonly id: string;
  /** Whether a second attempt with the same delivery id shows the text only once. */
  readonly deduplicates: boolean;
  /** Maximum characters of one part; longer texts are sent in parts. Absent: no limit. */
  readonly textMaxChars?: number;
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  /**
   * Accounts to listen to, each by one process of the deployment at a time. Absent: nothing to listen to, or
   * any process receives.
   */
  readonly accounts?: readonly Account[];
  /** Shows a typing sign for some seconds. Failures are ignored. */
  typing?(route: Route): Promise<void>;
  /** Creates a thread for a separate conversation below or beside this chat. Absent: not supported. */
  openThread?(at: Route, title: string): Promise<Result<OpenedThread>>;
  /** Answers the platform's request. Resolves after its messages are stored. */
  called?(call: PlatformCall): Promise<PlatformAnswer>;
  /**
   * Checks with the platform whether an account works. Returns its name there, or a failure: `channel_failed`
   * with the reason, or `channel_unknown` for an unknown account.
   */
  test?(accountId: string): Promise<Result<string>>;
  close?(): Promise<void>;
}

export interface OpenedThread {
  readonly route: Route;
  /** `created`: a new thread. `bound`: the platform has no threads here, so the chat itself is used. */
  readonly kind: "created" | "bound";
}
