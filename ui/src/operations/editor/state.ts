// Keeps the edited text while the page is open, so that it survives a visit to another view. The text is not
// stored, because it may contain a new secret.
// ES1: edits belong to the revision of the file on which they are based. A newer file never replaces them:
//      the reader chooses.

import { effect, signal } from "@preact/signals";
import type { PayloadOf } from "../../../../src/contract/methods.ts";

export type ConfigText = PayloadOf<"config.get">;

/** The file on which the edits are based. */
export const base = signal<ConfigText | undefined>(undefined);
/** The edited text. Undefined if there are no edits. */
export const draft = signal<string | undefined>(undefined);
/** The newer file, if somebody else saved the file while there are edits. */
export const newer = signal<ConfigText | undefined>(undefined);

/** While there are edits, the browser asks before the page is closed. */
effect(() => {
  if (draft.value === undefined) return;
  const stop = (event: Event): void => event.preventDefault();
  window.addEventListener("beforeunload", stop);
  return () => window.removeEventListener("beforeunload", stop);
});

/** Stores the file that was read. */
export function fileRead(file: ConfigText): void {
  if (draft.value === undefined || base.value === undefined) base.value = file;
  newer.value = file.revision === base.value?.revision ? undefined : file;
}

export function edit(text: string): void {
  draft.value = text === base.value?.text ? undefined : text;
  if (draft.value === undefined && newer.value !== undefined) discard();
}

/** Drops the edits and shows the newest file. */
export function discard(): void {
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  draft.value = undefined;
}

/** Keeps the edits, now based on the newest file. */
export function keepMine(): void {
  const mine = draft.value;
  base.value = newer.value ?? base.value;
  newer.value = undefined;
  if (mine !== undefined) edit(mine);
}

/** Records that the edits were saved. */
export function saved(text: string, revision: string): void {
  if (base.value !== undefined) base.value = { ...base.value, exists: true, text, revision };
  newer.value = undefined;
  draft.value = undefined;
}
