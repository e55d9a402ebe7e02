// The path of a value in a JSON-like document, and its text in messages.

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
