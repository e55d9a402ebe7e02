// One text that grows while a run writes it. It is redacted once, in pieces (I14), and sent as deltas to
// clients that have all of it so far.

import type { LiveTextEvent } from "../../core/shapes/event.ts";
import type { MaskStream, Redactor } from "../../core/text/redact/redact.ts";
import { LongText, type TextDelta } from "../../core/text/text-delta.ts";

/** A text without subscribers is redacted when it has this many new characters. */
export const UNREAD_CHARS_MAX = 64 * 1024;

/** The text, or the thinking, of one unfinished message. */
export class GrowingText<Client> {
  readonly part: string;
  readonly runId: string;
  readonly sessionKey: string;
  /** The model's text, not redacted. */
  readonly raw = new LongText();
  /** The redacted text. */
  shown = new LongText();
  /** Clients that have received all of `shown`. */
  readonly inStep = new Set<Client>();
  /**
   * True if the text replaces one that was sent, because the run was resumed or the model restarted its
   * message.
   */
  beginsAnew = false;
  #stream: MaskStream;
  /** Text that is not redacted yet, because nobody subscribed. */
  #unread: string[] = [];
  unreadChars = 0;

  constructor(about: Pick<LiveTextEvent, "part" | "runId" | "sessionKey">, redactor: Redactor) {
    const { part, runId, sessionKey } = about;
    this.part = part;
    this.runId = runId;
    this.sessionKey = sessionKey;
    this.#stream = redactor.stream();
  }

  /**
   * Returns a change without the text that is already known. A run publishes its whole text again if any
   * process has missed a part; the others have most of it.
   */
  unknownOf<Change extends TextDelta>(change: Change): Change {
    const { length } = this.raw;
    if (change.offset > 0 || !this.raw.begins(change.text)) return change;
    return { ...change, offset: length, text: change.text.slice(length) };
  }

  /** Returns false if the delta does not continue the known text. */
  add(delta: TextDelta, redactor: Redactor): boolean {
    const continues = delta.offset === this.raw.length;
    if (!this.raw.change(delta)) return false;
    if (continues) {
      this.#unread.push(delta.text);
      this.unreadChars += delta.text.length;
    } else {
      this.#stream = redactor.stream();
      this.#unread = [this.raw.text];
      this.unreadChars = this.raw.length;
      this.shown = new LongText();
      this.beginsAnew = true;
      this.inStep.clear();
    }
    return true;
  }

  /** Redacts the new part; returns the text that can be shown. `last`: the text is complete. */
  read(last: boolean): string {
    const pieces = this.#unread;
    this.#unread = [];
    this.unreadChars = 0;
    let fresh = pieces.length === 0 ? "" : this.#stream.push(pieces.join(""));
    if (last) fresh += this.#stream.end();
    this.shown.append(fresh);
    return fresh;
  }

  /**
   * Returns how to send the newly redacted text to a client: as a delta, as the whole text, or not at all.
   * The client then has all of `shown`.
   */
  formFor(client: Client, fresh: string): "delta" | "whole" | undefined {
    const isFirst = fresh.length === this.shown.length && !this.beginsAnew;
    const form = isFirst || this.inStep.has(client) ? "delta" : "whole";
    if ((form === "delta" ? fresh : this.shown).length === 0) return undefined;
    this.inStep.add(client);
    return form;
  }
}
