// Takes thinking and tool calls that a model wrote as text out of its answer, before anything else reads it.
// HA1: the stream and the message of one answer are split alike: its last text is the message's.
// HA2: a model that once left out the opening tag is held back from then on, until its closing tag or its
//      end.

import { HiddenText, withoutHidden } from "../core/hidden-text.ts";
import type { ModelOutcome, ModelPort, WrittenMessage } from "./model.ts";

/** The visible text of a stream whose text so far is passed on, again and again. */
export class HiddenStream {
  readonly #split = new HiddenText();
  readonly #holds: boolean;
  #heard = 0;
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
  next(textSoFar: string): string | undefined {
    const { text, restarted } = this.#split.push(textSoFar.slice(this.#heard));
    this.#heard = textSoFar.length;
    this.#withdrew ||= restarted;
    if (this.#holds && !this.#withdrew) return undefined;
    return text === "" && !restarted ? undefined : this.#split.visible;
  }
}

function cleaned(message: WrittenMessage): WrittenMessage {
  return { ...message, content: withoutHidden(message.content) };
}

function cleanedOutcome(outcome: ModelOutcome): ModelOutcome {
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
        (textSoFar) => {
          const visible = stream.next(textSoFar);
          if (visible !== undefined) onText(visible);
        },
        signal,
        log,
      );
      if (stream.withdrew) withdrew.add(ref);
      return cleanedOutcome(outcome);
    },
  };
}
