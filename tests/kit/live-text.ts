// Converts between whole texts and the deltas in which a gateway streams them.

import { LongText, type TextDelta } from "../../src/core/text/text-delta.ts";

/** Returns a delta that replaces the text by this one. */
export function whole(text: string): TextDelta {
  return { offset: 0, text };
}

/** Collects the whole text after each change. */
export function collectTexts(texts: string[]): (delta: TextDelta) => void {
  const text = new LongText();
  return (delta) => {
    if (!text.change(delta)) throw new Error(`a delta at ${delta.offset} of a text of ${text.length}`);
    texts.push(text.text);
  };
}

/** Converts whole texts to deltas. Each delta continues the previous text or replaces it. */
export function deltas(): (text: string) => TextDelta {
  let before = "";
  return (text) => {
    const goesOn = text.startsWith(before);
    const delta = goesOn ? { offset: before.length, text: text.slice(before.length) } : whole(text);
    before = text;
    return delta;
  };
}
