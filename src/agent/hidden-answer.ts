// Takes thinking and tool calls that a model wrote as text out of its answer, before anything else reads it.
// HA1: the stream and the message of one answer are split alike: its last text is the message's.
// HA2: a model that once left out the opening tag is held back from then on, until its closing tag or its
//      end.
// HA3: a text that was streamed is split once: the message takes over what the stream has found.

import { HiddenText, type SplitText, splitHidden, withoutHidden } from "../core/hidden-text.ts";
import { type TextDelta, withDelta } from "../core/text-delta.ts";
import type { ModelOutcome, ModelPort, WrittenMessage } from "./model.ts";

/** The visible part of a text that comes in pieces. */
export class HiddenStream {
  readonly #holds: boolean;
  #split = new HiddenText();
  #heard = "";
  #shownLength = 0;
  #withdrew = false;

  /** `holds`: nothing is shown before a closing tag. */
  constructor(holds = false) {
    this.#holds = holds;
  }

  /** A closing tag came that had no opening one. */
  get withdrew(): boolean {
    return this.#withdrew;
  }

  /** Undefined: nothing changes for whoever watches. */
  next(delta: TextDelta): TextDelta | undefined {
    const beginsAnew = delta.offset < this.#heard.length;
    if (beginsAnew) this.#split = new HiddenText();
    this.#heard = withDelta(this.#heard, delta) ?? this.#heard;
    const { text, restarted } = this.#split.push(beginsAnew ? this.#heard : delta.text);
    this.#withdrew ||= restarted;
    if (this.#holds && !this.#withdrew) return undefined;
    if (text === "" && !restarted && !beginsAnew) return undefined;
    const offset = restarted || beginsAnew ? 0 : this.#shownLength;
    this.#shownLength = offset + text.length;
    return { offset, text };
  }

  /** The message's text, split; the stream is over. */
  settle(whole: string): SplitText {
    if (whole !== this.#heard) return splitHidden(whole);
    this.#split.end();
    return { visible: this.#split.visible, hidden: this.#split.hidden };
  }
}

function cleanedOutcome(outcome: ModelOutcome, stream: HiddenStream): ModelOutcome {
  const cleaned = (message: WrittenMessage): WrittenMessage => ({
    ...message,
    content: withoutHidden(message.content, (whole) => stream.settle(whole)),
  });
  if (outcome.kind === "message") return { ...outcome, message: cleaned(outcome.message) };
  if (outcome.kind === "overflow" || outcome.partial === undefined) return outcome;
  return { ...outcome, partial: cleaned(outcome.partial) };
}

/** The port without what its models hide in their text. */
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
      return cleanedOutcome(outcome, stream);
    },
  };
}
