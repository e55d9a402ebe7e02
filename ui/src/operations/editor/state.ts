// Keeps the edited text as long as the page is open, so that the reader can visit another view without losing
// it. The text is not stored, because it may contain a new secret.
// ES1: edits belong to the revision of the file on which they are based. A newer file never replaces the
//      edits: the reader chooses.

import { effect, signal } from "@preact/signals";
import type { PayloadOf } from "../../../../src/contract/methods.ts";

export type ConfigText = PayloadOf<"config.get">;

/** The file on which the edits are based. */
export const base = signal<ConfigText | undefined>(undefined);
/** The edited text. Undefined if there are no edits. */
export const draft = signal<string | undefined>(undefined);
/** The newer file, if somebody else saved the file after the edits began. */
export const newer = signal<ConfigText | undefined>(undefined);

/** If there are edits, the browser asks before it closes the page. */
effect(() => {
  if (draft.value === undefined) return;
  const stop = (event: Event): void => event.preventDefault();
  window.addEventListener("beforeunload", stop);
  return () => window.removeEventListener("beforeunload", stop);
});

export function fileRead(file: ConfigText): void {
  if (draft.value === undefined || base.value === undefined) base.value = file;
  newer.value = file.revision === base.value?.revision ? undefined : file;
}

export function edit(text: string): void {
  draft.value = text === base.value?.text ? undefined : text;
  if (draft.value === undefined && newer.value !== undefined) discard();
}

export function discard(): void {
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  draft.value = undefined;
}

export function keepMine(): void {
  const mine = draft.value;
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  if (mine !== undefined) edit(mine);
}

export function saved(text: string, revision: string): void {
  if (base.value !== undefined) base.value = { ...base.value, exists: true, text, revision };
  newer.value = undefined;
  draft.value = undefined;
}
