/** Text for each state of a message between sessions. */
export const RECEIPT_WORDS = {
  queued: "queued",
  offered: "offered",
  in_turn: "read",
  answered: "answered",
  declined: "declined",
  expired: "expired",
  failed: "failed",
} as const;
