// The path of a value in a JSON-like document, and its text in messages.

import { jsonOf } from "../json.ts";

/** The keys of objects and the positions in lists that lead to a value. */
export type Path = readonly (string | number)[];

/** Returns a path as messages show it, such as `hooks.outgoing[0].url`. */
export function showPath(path: Path): string {
  const shown = path.map((part, index) => {
    if (typeof part === "number") return `[${part}]`;
    if (!/^[\w$-]+$/.test(part)) return `[${JSON.stringify(part)}]`;
    return index === 0 ? part : `.${part}`;
  });
  return shown.join("");
}

const STEP = /(?:^|\.)([\w$-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Names of no setting. A change by such a name would reach the prototype of all objects. */
const RESERVED: readonly unknown[] = ["__proto__", "constructor", "prototype"];

/** Parses a path as messages show it. Returns undefined if the text is not a path of settings. */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const found = STEP.exec(text);
    if (found === null) return undefined;
    const [, name, index, quoted] = found;
    path.push(name ?? (index === undefined ? String(jsonOf(quoted ?? "") ?? "") : Number(index)));
  }
  return path.length === 0 || path.some((part) => RESERVED.includes(part)) ? undefined : path;
}
