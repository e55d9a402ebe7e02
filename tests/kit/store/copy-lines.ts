// Reads the JSONL copy of a transcript as a person would.

import { type Fields, isObject, ownJson } from "../../../src/core/json.ts";

/** Returns the last header of a copy and the entries after it. Ignores lines that a crash has cut. */
export function linesOfCopy(text: string): { readonly head: Fields | undefined; readonly entries: string[] } {
  const lines = text.split("\n").filter((line) => isObject(ownJson(line)));
  const at = lines.findLastIndex((line) => (ownJson(line) as Fields).type === "session");
  const head = lines[at];
  return { head: head === undefined ? undefined : (ownJson(head) as Fields), entries: lines.slice(at + 1) };
}
