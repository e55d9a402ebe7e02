// Defines the interface of a channel: a messaging platform that people use to write to agents, and that
// receives texts for people.
// CH1: a message is acknowledged to the platform only after `receive` has resolved, which means that the
//      message is stored (I2).
// CH2: a failing channel does not affect the others. It reports the failure by throwing from `listen` or by
//      returning an outcome, with a clear message that contains no secrets.
// A channel contains no product rules: inbound.ts decides which messages get an answer, in which session and
// when.

import type { Choice } from "../core/rules/command.ts";
import type { Result } from "../core/shapes/errors.ts";
import type { Route } from "../core/shapes/session.ts";
import type { World } from "../world.ts";
import type { Account } from "./accounts.ts";

export interface OutgoingFile {
  readonly name: string;
  readonly mimeType: string;
  readonly data: Buffer;
}

export interface OutgoingMessage {
  /**
   * Id of the delivery, the same for every attempt. If a channel supports deduplication, this id and `part`
   * are the key.
   */
  readonly deliveryId: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly route: Route;
  /** Text in Markdown. The channel converts it for its platform. With a file: its caption, or empty. */
  readonly text: string;
  /** Only for platforms that declare `sendsFiles`. */
  readonly file?: OutgoingFile;
  /** Number of this part of a long text (from 1), and number of all parts. */
  readonly part: number;
  readonly parts: number;
  /** Buttons below the text. A channel without buttons ignores them. */
  readonly choices?: readonly Choice[];
  /**
   * The message of a press (`Press`) that the text answers. The channel adds the text to that message, and
   * replaces its buttons. If that is impossible, it sends a message.
   */
  readonly answers?: string;
}

/** Outcome of one attempt to deliver a text (I5). */
export type DeliveryOutcome =
  | { readonly kind: "sent" }
  /** The text was certainly not delivered. A retry is safe. */
  | { readonly kind: "retry"; readonly error: string; readonly afterMs?: number }
  /**
   * The text was certainly not delivered, and a retry would fail, too. `isGone`: the receiver exists no more.
   */
  | { readonly kind: "refused"; readonly error: string; readonly isGone?: true }
  /** The text is not wanted any more, so it was not sent. */
  | { readonly kind: "skipped"; readonly error: string }
  /** The channel has no such account now. It may be configured a moment later, or by another gateway. */
  | { readonly kind: "absent"; readonly error: string }
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
  /**
   * Reads the content. Fails if it has more than `maxBytes`, or cannot be read; the failure contains the
   * reason.
   */
  load(maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>>;
}

/** Refusal of a press that followed too soon after the button appeared. */
export const TOO_SOON = "This button has just appeared. Press it again.";

/** The press of a button. The text of its message is the command for which the button stands. */
export interface Press {
  /** The message that has the button, in a form that only the channel reads. */
  readonly message: string;
  /** Shows words to the person who pressed, and to nobody else: the press has changed nothing. */
  refuse(words: string): void;
}

/** A message from a channel, in the format that all channels share. Ids keep their upper and lower case. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId: string;
  /**
   * The platform's id of the message, unique in its chat. If the platform delivers the message again, the id
   * is the same.
   */
  readonly messageId: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly name?: string;
    readonly thread?: { readonly kind: "thread" | "topic"; readonly id: string; readonly name?: string };
    /**
     * Other ids of the chat that settings may use, for example the id of its guild. A public name begins with
     * `@`.
     */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: {
    readonly id: string;
    readonly name?: string;
    /** Other ids of the sender that settings may use. A user name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly text: string;
  /** True if the message mentions the agent's account or replies to it. */
  readonly mentioned: boolean;
  readonly quoted?: { readonly text: string; readonly senderName?: string };
  readonly media: readonly InboundMedia[];
  /**
   * Present if the platform has several messages for this one, like the pictures of an album: the id and the
   * text of each. An edit has the id of its part.
   */
  readonly parts?: readonly { readonly messageId: string; readonly text: string }[];
  /**
   * Present if this message is an edit of an earlier message. Both have the same message id, and each edit
   * has a different value here.
   */
  readonly edit?: string;
  /** Time of the message, in ms since 1970. */
  readonly sentAt: number;
  readonly replyTo: Route;
  /**
   * True if the sender chose the command from the platform's own menu. The text is then `/name arguments`.
   */
  readonly nativeCommand?: boolean;
  /** Present if the sender pressed a button of a message from the agent's account. */
  readonly pressed?: Press;
  /** True if the sender forwarded the message of another person. */
  readonly forwarded?: boolean;
  /**
   * The ids of each author of a text that the message quotes or forwards; none if the platform names nobody.
   * The agent's account is left out.
   */
  readonly authors?: readonly (readonly string[])[];
  /**
   * The agent's account name, which may follow a command: `/command@name`. If absent, a command with any name
   * counts if the account is mentioned.
   */
  readonly accountName?: string;
}

/** The services that the gateway offers to a channel. */
export interface ChannelHost {
  readonly world: World;
  /**
   * Accepts a message. Resolves after the message is stored. Rejects if it could not be stored: then the
   * platform must deliver it again.
   */
  receive(message: InboundMessage): Promise<void>;
  /** Returns the last value that the account stored under this name, for example its read position. */
  cursor(accountId: string, name: string): Promise<string | undefined>;
  remember(accountId: string, name: string, value: string): Promise<void>;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
}

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
  /** Set if the platform shows a text only once, even if it is sent twice with the same delivery id. */
  readonly deduplicates?: boolean;
  /** Maximum number of characters in one part. Longer texts are sent in several parts. Absent: no limit. */
  readonly textMaxChars?: number;
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  /**
   * The accounts to each of which exactly one process must listen. Absent if every process can receive
   * messages, or if there is nothing to receive.
   */
  readonly accounts?: readonly Account[];
  /** Shows a typing indicator for some seconds. Failures are ignored. */
  typing?(route: Route): Promise<void>;
  /**
   * Creates a thread for a separate conversation, in this chat or next to it. Absent if the platform has no
   * threads.
   */
  openThread?(at: Route, title: string): Promise<Result<OpenedThread>>;
  /** Answers a request from the platform. Resolves after all messages in the request are stored. */
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
   * `created`: a new thread was created. `bound`: the platform has no threads here, so the sub-agent gets the
   * chat itself.
   */
  readonly kind: "created" | "bound";
}
