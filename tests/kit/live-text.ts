// Helpers for text that comes as deltas: whole texts in, deltas out, and back.

import { type TextDelta, withDelta } from "../../src/core/text/text-delta.ts";

/** The whole text so far as one change. */
export function whole(text: string): TextDelta {
  return { offset: 0, text };
}

/** Collects the whole text after each change. */
export function collectTexts(texts: string[]): (delta: TextDelta) => void {
  let text = "";
  return (delta) => {
    const after = withDelta(text, delta);
    if (after === undefined) throw new Error(`a delta at ${delta.offset} of a text of ${text.length}`);
    text = after;
    texts.push(text);
  };
}

/** Turns whole texts into changes: a continuation of the text before, or a new text. */
export function deltas(): (text: string) => TextDelta {
  let before = "";
  return (text) => {
    const goesOn = text.startsWith(before);
    const delta = goesOn ? { offset: before.length, text: text.slice(before.length) } : whole(text);
    before = text;
    return delta;
  };
}
