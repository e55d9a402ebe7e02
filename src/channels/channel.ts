// Owns what a channel is to the outbox: a place that takes text and says whether it has it.

import type { Route } from "../core/session.ts";
import type { Account } from "./accounts.ts";

export interface OutgoingMessage {
  /** The same at every attempt: with `part`, what a channel that can de-duplicate does so by. */
  readonly deliveryId: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly route: Route;
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

export interface Channel {
  readonly id: string;
  /** Whether a second attempt with the same delivery id shows the text once. */
  readonly deduplicates: boolean;
  /** Longer texts are sent in parts. Absent: any length. */
  readonly textMaxChars?: number;
  deliver(message: OutgoingMessage): Promise<DeliveryOutcome>;
  /** Where messages come in, at one process of the deployment at a time. Absent: at none, or at any. */
  readonly accounts?: readonly Account[];
}
