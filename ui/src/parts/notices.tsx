// Owns notices to the reader. A notice is visible for a short time, and screen readers announce it. Errors
// stay until the reader dismisses them.

import { signal } from "@preact/signals";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { after } from "../clock.ts";
import { wordsOf } from "../gateway.ts";

const SHOWN_MS = 5_000;
const NOTICES_MAX = 4;

interface Notice {
  readonly id: number;
  readonly kind: "info" | "problem";
  readonly text: string;
}

const notices = signal<readonly Notice[]>([]);
let count = 0;

function dismiss(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

function show(kind: Notice["kind"], text: string): number {
  const id = ++count;
  notices.value = [...notices.value, { id, kind, text }].slice(-NOTICES_MAX);
  return id;
}

/** Shows that an action succeeded. */
export function say(text: string): void {
  const id = show("info", safeText(text));
  after(SHOWN_MS, () => dismiss(id));
}

/** Shows an error. `problem`: a text, or a thrown value. */
export function complain(problem: unknown): void {
  show("problem", safeText(wordsOf(problem)));
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, kind, text }) => (
        <div key={id} class={`notice ${kind}`}>
          <bdi>{text}</bdi>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
