// Matches paths against globs and against the rules of `.gitignore` files.
// GP1: the matcher does not backtrack: one match takes at most as many steps as the product of both lengths.
//      Steps are counted, because a hostile folder may have many rules, and end the search at its limit.

/** The steps that are left for a search. */
export interface Steps {
  left: number;
}

/** Maximum number of globs that the alternatives of one glob stand for. */
const ALTERNATIVES_MAX = 1_000;

interface Class {
  readonly excludes: boolean;
  readonly ranges: readonly (readonly [from: number, to: number])[];
}

const STAR = -1;
const ANY_SIGN = -2;
/** A UTF-16 unit, `STAR`, `ANY_SIGN` or a class. */
type Sign = number | Class;
/** Stands for `**`: any number of folders. */
const ANY_FOLDERS = "**";
type Part = readonly Sign[] | typeof ANY_FOLDERS;

/** The alternatives of a glob, each as its parts between slashes. */
export type Glob = readonly (readonly Part[])[];

/** Splits a glob at its signs: escaped ones, classes, and single characters. */
function* signsOf(glob: string): Generator<string> {
  const lastClose = glob.lastIndexOf("]");
  for (let at = 0; at < glob.length; ) {
    const start = at;
    const sign = glob[at];
    at += 1;
    if (sign === "\\" && at < glob.length) at += 1;
    if (sign === "[" && at < lastClose) {
      // A bracket directly after the start is a sign of the class.
      const close = glob.indexOf("]", at + (/[!^]/.test(glob[at] ?? "") ? 2 : 1));
      if (close >= 0) at = close + 1;
    }
    yield glob.slice(start, at);
  }
}

function classOf(text: string): Class {
  const excludes = text.startsWith("!") || text.startsWith("^");
  const ranges: [number, number][] = [];
  for (let at = excludes ? 1 : 0; at < text.length; at++) {
    const from = text.charCodeAt(at);
    const isRange = text[at + 1] === "-" && at + 2 < text.length;
    if (isRange) at += 2;
    if (text.charCodeAt(at) < from) throw new Error(`[${text}] has a range in the wrong order`);
    ranges.push([from, text.charCodeAt(at)]);
  }
  return { excludes, ranges };
}

function partOf(text: string): Part {
  if (text === ANY_FOLDERS) return ANY_FOLDERS;
  const part: Sign[] = [];
  for (const sign of signsOf(text)) {
    if (sign === "*") part.push(STAR);
    else if (sign === "?") part.push(ANY_SIGN);
    else part.push(sign.length > 2 ? classOf(sign.slice(1, -1)) : sign.charCodeAt(sign.length - 1));
  }
  return part;
}

/** Returns the globs for which a glob with `{a,b}` stands. */
function alternativesOf(glob: string): string[] {
  let made = [""];
  const open: { readonly before: string[]; readonly done: string[] }[] = [];
  for (const sign of signsOf(glob)) {
    const inner = open.at(-1);
    if (sign === "{") {
      open.push({ before: made, done: [] });
      made = [""];
    } else if (inner !== undefined && sign === ",") {
      inner.done.push(...made);
      made = [""];
    } else if (inner !== undefined && sign === "}") {
      open.pop();
      const all = [...inner.done, ...made];
      if (inner.before.length * all.length > ALTERNATIVES_MAX)
        throw new Error(`it has more than ${ALTERNATIVES_MAX} alternatives`);
      made = inner.before.flatMap((before) => all.map((one) => before + one));
    } else made = made.map((one) => one + sign);
  }
  if (open.length > 0) throw new Error("a { has no }");
  return made;
}

/**
 * Reads a glob: `*`, `**`, `?`, `[abc]` and, with `alternatives`, `{a,b}`. A glob without a slash matches in
 * every folder. Throws if the glob is invalid.
 */
export function readGlob(glob: string, alternatives: boolean): Glob {
  const isAnywhere = !glob.slice(0, -1).includes("/");
  const plain = glob.replace(/^\//, "");
  return (alternatives ? alternativesOf(plain) : [plain]).map((one) => {
    const parts = one.split("/").map(partOf);
    return isAnywhere ? [ANY_FOLDERS, ...parts] : parts;
  });
}

function matchesSign(sign: Sign | undefined, code: number, steps: Steps): boolean {
  if (typeof sign !== "object") return sign === code || sign === ANY_SIGN;
  steps.left -= sign.ranges.length;
  return sign.ranges.some(([from, to]) => from <= code && code <= to) !== sign.excludes;
}

/** Only the last star is tried again, because an earlier one can give nothing that this one cannot. */
function matchesPart(part: readonly Sign[], name: string, steps: Steps): boolean {
  let [at, done, star, tried] = [0, 0, -1, 0];
  while (done < name.length) {
    steps.left -= 1;
    if (steps.left < 0) return false;
    if (part[at] === STAR) {
      [star, tried] = [at, done];
      at += 1;
    } else if (matchesSign(part[at], name.charCodeAt(done), steps)) {
      at += 1;
      done += 1;
    } else if (star >= 0) {
      tried += 1;
      [at, done] = [star + 1, tried];
    } else return false;
  }
  while (part[at] === STAR) at += 1;
  return at === part.length;
}

/** Matches like `matchesPart`, with names instead of characters. A `**` at the end needs one more name. */
function matchesParts(parts: readonly Part[], names: readonly string[], steps: Steps): boolean {
  let [at, done, star, tried] = [0, 0, -1, 0];
  while (done < names.length) {
    steps.left -= 1;
    if (steps.left < 0) return false;
    const part = parts[at];
    if (part === ANY_FOLDERS) {
      [star, tried] = [at, done];
      at += 1;
      if (at === parts.length) return true;
    } else if (part !== undefined && matchesPart(part, names[done] ?? "", steps)) {
      at += 1;
      done += 1;
    } else if (star >= 0) {
      tried += 1;
      [at, done] = [star + 1, tried];
    } else return false;
  }
  return at === parts.length;
}

/** Returns whether a glob matches the whole path. False if no steps are left. */
export function matchesGlob(glob: Glob, path: string, steps: Steps): boolean {
  const names = path.split("/");
  return glob.some((parts) => matchesParts(parts, names, steps));
}

/** A rule of a `.gitignore` file. The last matching rule decides. */
interface IgnoreRule {
  readonly glob: Glob;
  readonly ignores: boolean;
  readonly foldersOnly: boolean;
}

/** The rules of the `.gitignore` file in one folder, the last one first. Paths are relative to it. */
export interface IgnoreFile {
  /** The folder, relative to the start of the walk: "" or "src/". */
  readonly below: string;
  readonly rules: readonly IgnoreRule[];
}

function ruleOf(line: string): IgnoreRule[] {
  const kept = line.trimEnd();
  // A blank after a backslash belongs to the rule.
  const text = kept.endsWith("\\") && line[kept.length] === " " ? `${kept} ` : kept;
  if (text === "" || text.startsWith("#")) return [];
  const ignores = !text.startsWith("!");
  const glob = ignores ? text : text.slice(1);
  const foldersOnly = glob.endsWith("/");
  try {
    return [{ glob: readGlob(foldersOnly ? glob.slice(0, -1) : glob, false), ignores, foldersOnly }];
  } catch {
    // Git, too, skips a rule that it can't read.
    return [];
  }
}

/** Reads a `.gitignore` file. */
export function readIgnoreFile(below: string, text: string, steps: Steps): IgnoreFile {
  steps.left -= text.length;
  return { below, rules: text.split("\n").flatMap(ruleOf).toReversed() };
}

/** Returns whether the files, outermost first, exclude this path from a search. */
export function isIgnored(
  files: readonly IgnoreFile[],
  path: string,
  isFolder: boolean,
  steps: Steps,
): boolean {
  for (const { below, rules } of files.toReversed()) {
    const names = path.slice(below.length).split("/");
    for (const { glob, ignores, foldersOnly } of rules) {
      steps.left -= 1;
      if (steps.left < 0) return false;
      if ((isFolder || !foldersOnly) && glob.some((parts) => matchesParts(parts, names, steps)))
        return ignores;
    }
  }
  return false;
}
