// Shows the state of a session, a run or another process: a dot and a word.

import type { ComponentChildren } from "preact";
import { TONES, type Tone } from "../styles/tones.ts";

export function State(props: { state: string; text?: ComponentChildren; tone?: Tone }) {
  const { state, text = state, tone } = props;
  return (
    <span class={`state tone-${tone ?? TONES[state] ?? "quiet"}`}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  );
}
