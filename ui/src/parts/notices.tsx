// Owns notices to the reader. A notice is visible for a short time, and screen readers announce it. Errors
// stay until the reader dismisses them.

import { signal } from "@preact/signals";
import { optional } from "../../../src/core/optional.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { after } from "../clock.ts";
import { wordsOf } from "../gateway.ts";
import { Button } from "./button.tsx";

const SHOWN_MS = 5_000;
/** A notice with which an action can be undone is shown for longer. */
const UNDO_SHOWN_MS = 15_000;
const NOTICES_MAX = 4;

interface Notice {
  readonly id: number;
  readonly kind: "info" | "problem";
  readonly text: string;
  readonly undo?: () => void;
}

const notices = signal<readonly Notice[]>([]);
let count = 0;

function dismiss(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

function show(notice: Omit<Notice, "id">): number {
  const id = ++count;
  notices.value = [...notices.value, { id, ...notice }].slice(-NOTICES_MAX);
  return id;
}

/** Shows that an action succeeded. `undo`: undoes it. */
export function say(text: string, undo?: () => void): void {
  const id = show({ kind: "info", text: safeText(text), ...optional({ undo }) });
  after(undo === undefined ? SHOWN_MS : UNDO_SHOWN_MS, () => dismiss(id));
}

/** Shows an error. `problem`: a text, or a thrown value. */
export function complain(problem: unknown): void {
  show({ kind: "problem", text: safeText(wordsOf(problem)) });
}

export function Notices() {
  return (
    <div class="stack notices" role="status" aria-live="polite">
      {notices.value.map(({ id, kind, text, undo }) => (
        <div key={id} class={`notice ${kind}`}>
          <bdi>{text}</bdi>
          {undo !== undefined && (
            <Button
              text="Undo"
              onClick={() => {
                dismiss(id);
                undo();
              }}
            />
          )}
          <Button text="×" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
