// Matches paths against globs and against the rules of `.gitignore` files.

/** A rule of a `.gitignore` file. The last matching rule decides. */
interface IgnoreRule {
  readonly matches: RegExp;
  readonly ignores: boolean;
  readonly foldersOnly: boolean;
}

/** The rules of the `.gitignore` file in one folder. Paths are relative to that folder. */
export interface IgnoreFile {
  /** The folder, relative to the start of the walk: "" or "src/". */
  readonly below: string;
  readonly rules: readonly IgnoreRule[];
}

const PIECES = /\*\*\/|\*\*|\*|\?|\[!?\]?[^\]]*\]|\\.|[{},]|./gs;

/**
 * Converts a glob to a regular expression: `*`, `**`, `?`, `[abc]` and, with `alternatives`, `{a,b}`. A glob
 * without a slash matches in every folder.
 */
export function globPattern(glob: string, alternatives: boolean): RegExp {
  let open = 0;
  const converted = glob.replace(/^\//, "").replaceAll(PIECES, (piece) => {
    if (piece === "**/") return "(?:.*/)?";
    if (piece === "**") return ".*";
    if (piece === "*") return "[^/]*";
    if (piece === "?") return "[^/]";
    if (piece.length > 2 && piece.startsWith("["))
      return piece.replaceAll("\\", "\\\\").replace(/^\[!/, "[^/");
    if (alternatives && piece === "{") {
      open += 1;
      return "(?:";
    }
    if (open > 0 && piece === ",") return "|";
    if (open > 0 && piece === "}") {
      open -= 1;
      return ")";
    }
    return piece.slice(-1).replace(/[.*+?^${}()|[\]\\/-]/, "\\$&");
  });
  const anywhere = glob.slice(0, -1).includes("/") ? "" : "(?:.*/)?";
  return new RegExp(`^${anywhere}${converted}$`, "s");
}

function ruleOf(line: string): IgnoreRule[] {
  const text = line.replace(/\r$/, "").replace(/(?<!\\)[ \t]+$/, "");
  if (text === "" || text.startsWith("#")) return [];
  const ignores = !text.startsWith("!");
  const glob = ignores ? text : text.slice(1);
  const foldersOnly = glob.endsWith("/");
  try {
    const matches = globPattern(foldersOnly ? glob.slice(0, -1) : glob, false);
    return [{ matches, ignores, foldersOnly }];
  } catch {
    // Git, too, skips a rule that it can't read.
    return [];
  }
}

export const ignoreFile = (below: string, text: string): IgnoreFile => ({
  below,
  rules: text.split("\n").flatMap(ruleOf),
});

/** Returns whether the files, outermost first, exclude this path from a search. */
export function isIgnored(files: readonly IgnoreFile[], path: string, isFolder: boolean): boolean {
  let ignored = false;
  for (const { below, rules } of files) {
    const inside = path.slice(below.length);
    for (const { matches, ignores, foldersOnly } of rules)
      if ((isFolder || !foldersOnly) && matches.test(inside)) ignored = ignores;
  }
  return ignored;
}
