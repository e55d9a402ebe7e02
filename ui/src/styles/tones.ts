// The tone in which each state is shown.

export type Tone = "quiet" | "busy" | "waiting" | "good" | "bad" | "warn";

export const TONES: Readonly<Record<string, Tone>> = {
  idle: "quiet",
  queued: "warn",
  running: "busy",
  waiting: "waiting",
  held: "warn",
  pending: "warn",
  sent: "good",
  ok: "good",
  skipped: "quiet",
  ended: "quiet",
  aborted: "warn",
  timeout: "bad",
  error: "bad",
  failed: "bad",
  refused: "bad",
};
