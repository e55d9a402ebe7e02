// Owns the edited text as long as the page is open, so that it survives a look at another view. It is not
// stored, because it may have a new secret.
// ES1: the edited text belongs to the revision of the file that it was made from. A newer file never replaces
//      edits; the reader chooses.

import { effect, signal } from "@preact/signals";
import type { PayloadOf } from "../../../../src/contract/methods.ts";

export type ConfigText = PayloadOf<"config.get">;

/** The file as the edits began with it. */
export const base = signal<ConfigText | undefined>(undefined);
/** The edited text. Undefined if nothing was edited. */
export const draft = signal<string | undefined>(undefined);
/** The file that somebody else saved since, while there are edits. */
export const newer = signal<ConfigText | undefined>(undefined);

/** Asks before the page is left with edits, also from another view. */
effect(() => {
  if (draft.value === undefined) return;
  const stop = (event: Event): void => event.preventDefault();
  window.addEventListener("beforeunload", stop);
  return () => window.removeEventListener("beforeunload", stop);
});

/** Takes the file that was read. */
export function fileRead(file: ConfigText): void {
  if (draft.value === undefined || base.value === undefined) base.value = file;
  newer.value = file.revision === base.value?.revision ? undefined : file;
}

export function edit(text: string): void {
  draft.value = text === base.value?.text ? undefined : text;
  if (draft.value === undefined && newer.value !== undefined) discard();
}

/** Drops the edits, and shows the newest file. */
export function discard(): void {
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  draft.value = undefined;
}

/** Keeps the edits as changes of the newest file. */
export function keepMine(): void {
  const mine = draft.value;
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  if (mine !== undefined) edit(mine);
}

/** The edits were saved. */
export function saved(text: string, revision: string): void {
  if (base.value !== undefined) base.value = { ...base.value, exists: true, text, revision };
  newer.value = undefined;
  draft.value = undefined;
}
