// Owns the keys of the page: handlers ask this table which action a key has, and the dialog of keys shows it.
// KY1: a single character does nothing while the reader types in a field.
// KY2: the reader can switch off keys that are a single character, because speech input may press them.

import { signal } from "@preact/signals";
import { keepChoice, keptChoice } from "../choice.ts";

/** Keys of the views of a chain, the tree of sessions and the lists. */
const ROWS = {
  next: "j ArrowDown",
  previous: "k ArrowUp",
  nextPage: "PageDown",
  previousPage: "PageUp",
  first: "Home",
  last: "End",
  open: "ArrowRight",
  close: "ArrowLeft",
  choose: "Enter Space",
};

/** Keys of each area and action, separated by spaces. `Mod` is Cmd on Apple platforms, otherwise Ctrl. */
export const KEYS = {
  page: { palette: "Mod+k", search: "/", keys: "?", dispatch: "@ w" },
  rows: ROWS,
  inbox: {
    peek: "Space",
    enter: "Enter",
    approve: "a",
    deny: "d",
    retry: "r",
    dismiss: "e",
    snooze: "z",
    select: "x",
  },
  runs: { select: "Space", range: "Shift+Space" },
  composer: { send: "Enter", line: "Shift+Enter", commands: "/" },
  menu: { next: "ArrowDown", previous: "ArrowUp", choose: "Enter", complete: "Tab", leave: "Escape" },
  column: { wider: "ArrowRight", narrower: "ArrowLeft", reset: "Home" },
  find: { next: "Enter", previous: "Shift+Enter" },
  plot: {
    next: "ArrowRight ArrowUp",
    previous: "ArrowLeft ArrowDown",
    nextPage: "PageUp",
    previousPage: "PageDown",
    first: "Home",
    last: "End",
    leave: "Escape",
  },
  editor: { review: "Mod+s" },
};

const STORED_UNDER = "parley.keys";

/** Whether keys that are a single character act. */
export const characterKeys = signal(keptChoice(STORED_UNDER) !== "off");

export function turnCharacterKeys(on: boolean): void {
  characterKeys.value = on;
  keepChoice(STORED_UNDER, on ? "on" : "off");
}

type Keys = typeof KEYS;
export type Area = keyof Keys;
export type ActionOf<A extends Area> = Extract<keyof Keys[A], string>;

/** Returns whether keys in this element write text or change a choice. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.matches("textarea, select, .editor-box, input:not([type=checkbox], [type=button])")
  );
}

/** Apple platforms use Ctrl with a letter to edit text. */
export const isApple = /^(Mac|iP)/.test(navigator.platform);

/** Returns the name that a key has in the table: `Mod+k`, `Shift+Enter`, `?`. */
function chordOf({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): string {
  const [hasMod, hasOther] = isApple ? [metaKey, ctrlKey] : [ctrlKey, metaKey];
  const name = key === " " ? "Space" : hasMod ? key.toLowerCase() : key;
  // A character that is typed with Shift, like "?", has it already.
  const hasShift = shiftKey && (hasMod || name.length > 1);
  const held = { Mod: hasMod, Other: hasOther, Alt: altKey, Shift: hasShift };
  return [...Object.entries(held).flatMap(([mod, isHeld]) => (isHeld ? mod : [])), name].join("+");
}

export function actionOf<A extends Area>(area: A, chord: string): ActionOf<A> | undefined {
  const keys: Record<string, string> = KEYS[area];
  return Object.keys(keys).find((action) => keys[action]?.split(" ").includes(chord)) as
    | ActionOf<A>
    | undefined;
}

export function pressed<A extends Area>(area: A, event: KeyboardEvent): ActionOf<A> | undefined {
  const { key, ctrlKey, metaKey, isComposing, target } = event;
  const isPlain = key.length === 1 && !ctrlKey && !metaKey;
  const isOff = isPlain && (isTyping(target) || (key !== " " && !characterKeys.value));
  return isComposing || isOff ? undefined : actionOf(area, chordOf(event));
}

/** Returns by how many rows or points an action moves. Undefined: it does not move. */
export function stepOf(action: string | undefined, page: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    next: 1,
    previous: -1,
    nextPage: page,
    previousPage: -page,
    first: Number.NEGATIVE_INFINITY,
    last: Number.POSITIVE_INFINITY,
  };
  return steps[action ?? ""];
}
