// Shows the state of a session, a run or another process: a dot and a word.

import type { ComponentChildren } from "preact";

export type Tone = "quiet" | "busy" | "waiting" | "good" | "bad" | "warn";

const TONES: Readonly<Record<string, Tone>> = {
  idle: "quiet",
  queued: "warn",
  running: "busy",
  waiting: "waiting",
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

/** Shows a state. `text`: the word to show. Default: the state itself. */
export function State(props: { state: string; text?: ComponentChildren; tone?: Tone }) {
  const { state, text = state, tone } = props;
  return (
    <span class={`state tone-${tone ?? TONES[state] ?? "quiet"}`}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  );
}
