// Removes thinking and tool calls that a model wrote as text from its answer, before anything else reads it.
// - The streamed text and the message of an answer are split in the same way: the last streamed text equals
// the message's.
// - If a model has once omitted the opening tag, its text is held back from then on, until the closing tag or
//   the end.
// - A streamed text is split only once: the message reuses the result.

import { HiddenText, type SplitText, splitHidden, withoutHidden } from "../../core/text/hidden-text.ts";
import { LongText, type TextDelta } from "../../core/text/text-delta.ts";
import type { ModelPort, WrittenMessage } from "./model.ts";

/** Computes the visible part of a text that arrives in pieces. */
export class HiddenStream {
  readonly #holds: boolean;
  #split = new HiddenText();
  readonly #heard = new LongText();
  #shownLength = 0;
  #withdrew = false;

  /** `holds`: whether text is held back until a closing tag. */
  constructor(holds = false) {
    this.#holds = holds;
  }

  /**
   * True if text that was already shown had to be withdrawn, because a closing tag came without an opening
   * one.
   */
  get withdrew(): boolean {
    return this.#withdrew;
  }

  /** Takes a delta. Returns the visible delta, or undefined if nothing visible changed. */
  next(delta: TextDelta): TextDelta | undefined {
    const beginsAnew = delta.offset < this.#heard.length;
    if (beginsAnew) this.#split = new HiddenText();
    this.#heard.change(delta);
    const { text, restarted } = this.#split.push(beginsAnew ? this.#heard.text : delta.text);
    this.#withdrew ||= restarted;
    if (this.#holds && !this.#withdrew) return undefined;
    if (text === "" && !restarted && !beginsAnew) return undefined;
    const offset = restarted || beginsAnew ? 0 : this.#shownLength;
    this.#shownLength = offset + text.length;
    return { offset, text };
  }

  /** Ends the stream. Returns the message's text, split into its visible and its hidden part. */
  settle(whole: string): SplitText {
    return this.#heard.is(whole) ? this.#split.settle(whole) : splitHidden(whole);
  }
}

/** Wraps a port so that its answers contain no hidden text. */
export function withoutHiddenText(port: ModelPort): ModelPort {
  const withdrew = new Set<string>();
  return {
    async call(request, onText, signal, log) {
      const { ref } = request.model;
      const stream = new HiddenStream(withdrew.has(ref));
      const outcome = await port.call(
        request,
        (delta) => {
          const visible = stream.next(delta);
          if (visible !== undefined) onText(visible);
        },
        signal,
        log,
      );
      if (stream.withdrew) withdrew.add(ref);
      const cleanMessage = (message: WrittenMessage): WrittenMessage => ({
        ...message,
        content: withoutHidden(message.content, (whole) => stream.settle(whole)),
      });
      if (outcome.kind === "message") return { ...outcome, message: cleanMessage(outcome.message) };
      if (!("partial" in outcome) || outcome.partial === undefined) return outcome;
      return { ...outcome, partial: cleanMessage(outcome.partial) };
    },
  };
}
