// Owns what a channel is: a place where people talk, from which messages come and to which text goes.
// CH1: what comes in is stored before the platform is told that it was received (I2): `receive` has resolved.
// CH2: a channel that fails fails alone: it throws out of `listen` or answers an outcome, in clear words that
//      hold no secret.
// CH3: product rules are not here: who is answered, in which session and when is decided by inbound.ts.

import type { Result } from "../core/errors.ts";
import type { Route } from "../core/session.ts";
import type { World } from "../world.ts";
import type { Account } from "./accounts.ts";

export interface OutgoingMessage {
  /** The same at every attempt: with `part`, what a channel that can de-duplicate does so by. */
  readonly deliveryId: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly route: Route;
  /** Markdown; the channel turns it into what its platform shows. */
  readonly text: string;
  /** Which part of a long text this is, from 1, and of how many. */
  readonly part: number;
  readonly parts: number;
}

/** What became of one attempt (I5). */
export type DeliveryOutcome =
  | { readonly kind: "sent" }
  /** Certainly not delivered; may be tried again. */
  | { readonly kind: "retry"; readonly error: string; readonly afterMs?: number }
  /** Certainly not delivered, and never will be. */
  | { readonly kind: "refused"; readonly error: string }
  /** It may have been delivered; never tried again of itself. */
  | { readonly kind: "unknown"; readonly error: string };

/** A picture, a voice message or a file that came with a message. */
export interface InboundMedia {
  readonly kind: "image" | "voice" | "audio" | "video" | "file";
  /** As the sender wrote it; not to be trusted. */
  readonly name?: string;
  readonly mimeType?: string;
  /** As the platform says; it may be wrong. */
  readonly bytes?: number;
  /** Reads it, at most so many bytes. A failure says why it can't be had. */
  load(maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>>;
}

/** What somebody said at a channel, in words that are the same for every platform. Ids keep their case. */
export interface InboundMessage {
  readonly channel: string;
  readonly accountId: string;
  /** The platform's id, unique in its chat. The same message that comes again has the same id. */
  readonly messageId: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly name?: string;
    readonly thread?: { readonly kind: "thread" | "topic"; readonly id: string; readonly name?: string };
    /** Other ids that settings may name it by, such as its guild. A public name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: {
    readonly id: string;
    readonly name?: string;
    /** Other ids that settings may name the sender by. A user name begins with `@`. */
    readonly alsoKnownAs?: readonly string[];
  };
  readonly text: string;
  /** Whether it names the agent's account, or replies to it. */
  readonly mentioned: boolean;
  readonly quoted?: { readonly text: string; readonly senderName?: string };
  readonly media: readonly InboundMedia[];
  /** Set when an earlier message of this id was changed to this; different for every change. */
  readonly edit?: string;
  /** ms since 1970. */
  readonly sentAt: number;
  /** Where an answer goes: channel, account, chat and thread as one value. */
  readonly replyTo: Route;
  /** It came as a command of the platform's own menu: text is `/name arguments`. */
  readonly nativeCommand?: boolean;
  /** Somebody else wrote it elsewhere, and the sender passed it on. */
  readonly forwarded?: boolean;
  /** What the account is called in `/command@name`. Absent: such a name is ours where we are mentioned. */
  readonly accountName?: string;
}

/** What a channel is given. */
export interface ChannelHost {
  readonly world: World;
  /** Takes a message. Resolves once it is stored; rejects if not, and the platform must bring it again. */
  receive(message: InboundMessage): Promise<void>;
  /** What was last remembered under this name of an account, such as how far it has read. */
  cursor(accountId: string, name: string): Promise<string | undefined>;
  remember(accountId: string, name: string, value: string): Promise<void>;
  /** For menus of the platform's own. */
  readonly commands: readonly { readonly name: string; readonly description: string }[];
}

/** A call of the platform to our own web server. */
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
  /** Whether a second attempt with the same delivery id shows the text once. */
  readonly deduplicates: boolean;
  /** Longer texts are sent in parts. Absent: any length. */
  readonly textMaxChars?: number;
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  /** Where messages come in, at one process of the deployment at a time. Absent: at none, or at any. */
  readonly accounts?: readonly Account[];
  /** Shows for some seconds that an answer is being written. Failures are nobody's concern. */
  typing?(route: Route): Promise<void>;
  /** Makes a thread for a conversation of its own below, or beside, this place. Absent: there are none. */
  openThread?(at: Route, title: string): Promise<Result<OpenedThread>>;
  /** Answers the platform's call. What it brings has been stored when it resolves. */
  called?(call: PlatformCall): Promise<PlatformAnswer>;
  /**
   * Asks the platform whether an account works: its name there, or what is wrong in clear words, as
   * `channel_failed`; `channel_unknown`: there is no such account.
   */
  test?(accountId: string): Promise<Result<string>>;
  close?(): Promise<void>;
}

export interface OpenedThread {
  readonly route: Route;
  /** `created`: it is new. `bound`: the platform has none here, and the chat itself is taken. */
  readonly kind: "created" | "bound";
}
