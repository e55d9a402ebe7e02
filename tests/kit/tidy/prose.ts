// Finds the prose of a source file (comments, test titles, messages and labels), and the words in it against
// which docs/ARCHITECTURE.md and CONTRIBUTING.md advise.

export type ProseKind = "comment" | "title" | "message";

export interface Prose {
  readonly kind: ProseKind;
  readonly path: string;
  readonly line: number;
  /** One comment block, one title or one message, with its lines joined. */
  readonly text: string;
  /** The code line below a comment, or the `describe` blocks around a title. */
  readonly context: string;
}

const COMMENT_LINE = /^\s*(?:\/\/+|\/\*\*?|\*(?!\/))\s?(.*?)\s*(?:\*\/)?\s*$/;
const QUOTED = String.raw`("(?:\\.|[^"\\\n])*"|\`(?:\\.|[^\`\\])*\`)`;
const TITLE = new RegExp(
  String.raw`\b(?:test|it|both)(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*${QUOTED}`,
  "g",
);
const MESSAGE_CALLS = [
  String.raw`\bfail\(\s*(?:"[\w.]+"|\w+),\s*${QUOTED}`,
  String.raw`\blog\.(?:debug|info|warn|error)\((?:\{[^{}]*\},\s*)?${QUOTED}`,
  String.raw`\bnew \w*(?:Error|Problem|Usage)\(\s*${QUOTED}`,
  String.raw`\b(?:summary|description|help|hint|title|label|placeholder|error|empty)(?::\s*|=)${QUOTED}`,
  String.raw`\baria-label=${QUOTED}`,
];
const MESSAGE = new RegExp(MESSAGE_CALLS.join("|"), "g");
/** Folders in which every text is a description or a label of a generated page or of the command line. */
const DESCRIBED = /^(?:src\/(?:contract|config\/schema|cli)|tests\/kit\/reference)\//;
const TEXT = new RegExp(String.raw`${QUOTED}(?:\s*\+\s*${QUOTED})*`, "g");
const JSX_TEXT =
  /<(?:h[1-6]|p|button|label|legend|th|dt|summary|option|span|strong)\b[^<>]*>([A-Z][^<>{}]+)</g;

const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Maximum characters of a code line as context. */
const CODE_CHARS_MAX = 80;
const COMMENT_PART = /^\s*(?:\/\/|\/\*|\*)/;

/** Returns the first line of code at or below a line, counted from 1. */
function codeBelow(lines: readonly string[], line: number): string {
  const code = lines.slice(line - 1).find((text) => !COMMENT_PART.test(text)) ?? "";
  return code.trim().slice(0, CODE_CHARS_MAX);
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Returns the names of the `describe` blocks around a line, the outermost first. */
function suitesAround(lines: readonly string[], line: number): string {
  const names: string[] = [];
  let indent = indentOf(lines[line - 1] ?? "");
  for (let at = line - 2; at >= 0 && indent > 0; at -= 1) {
    const text = lines[at] ?? "";
    const [, name] = /^\s*describe\b[^"`]*["`]([^"`]*)["`]/.exec(text) ?? [];
    if (name === undefined || indentOf(text) >= indent) continue;
    names.unshift(name);
    indent = indentOf(text);
  }
  return names.join(" > ");
}

function commentsOf(path: string, text: string): Prose[] {
  const found: Prose[] = [];
  const lines = text.split("\n");
  let block: { line: number; words: string[] } | undefined;
  const end = (): void => {
    const joined = block?.words.join(" ").trim() ?? "";
    if (block !== undefined && /[a-z] [a-z]/i.test(joined) && !/^biome-|^@/.test(joined))
      found.push({
        kind: "comment",
        path,
        line: block.line,
        text: joined,
        context: codeBelow(lines, block.line),
      });
    block = undefined;
  };
  for (const [at, line] of lines.entries()) {
    const words = COMMENT_LINE.exec(line)?.[1];
    if (words === undefined) end();
    else {
      if (/^\s*\/\*\*/.test(line)) end();
      block ??= { line: at + 1, words: [] };
      block.words.push(words);
      if (/\*\/\s*$/.test(line)) end();
    }
  }
  end();
  return found;
}

function quotedOf(kind: ProseKind, pattern: RegExp, path: string, text: string): Prose[] {
  const lines = text.split("\n");
  return [...text.matchAll(pattern)].flatMap((match) => {
    const quoted = match.slice(1).find((part) => part !== undefined) ?? "";
    const words = quoted
      .replace(/^["`]|["`]$/g, "")
      .replaceAll('\\"', '"')
      .replace(/\s+/g, " ");
    const isProse = /[a-z]{2} [a-z]/i.test(words) || (pattern === JSX_TEXT && /[a-z]/.test(words));
    if (!isProse) return [];
    const line = lineAt(text, match.index);
    const context = kind === "title" ? suitesAround(lines, line) : "";
    return [{ kind, path, line, text: words.trim(), context }];
  });
}

/** Returns all texts of a file that are sentences or labels; texts joined by `+` are one. */
function textsOf(path: string, text: string): Prose[] {
  const code = text.replace(/^\s*(?:\/\/|\/\*|\*).*$/gm, "");
  return [...code.matchAll(TEXT)].flatMap(({ 0: joined, index }) => {
    const words = [...joined.matchAll(new RegExp(QUOTED, "g"))]
      .map(([quoted]) => quoted.slice(1, -1))
      .join("");
    if (!/[a-z]{2,} [a-z]/i.test(words)) return [];
    const line = lineAt(code, index);
    return [{ kind: "message" as const, path, line, text: words.replace(/\s+/g, " ").trim(), context: "" }];
  });
}

/** Returns the prose of one file, unsorted. */
export function proseOf(path: string, text: string): Prose[] {
  const isTest =
    path.endsWith(".test.ts") || path.endsWith(".contract.ts") || path.startsWith("tests/contract/");
  return [
    ...commentsOf(path, text),
    ...(isTest ? quotedOf("title", TITLE, path, text) : []),
    ...(DESCRIBED.test(path)
      ? textsOf(path, text)
      : /^(src|ui|bin)\//.test(path)
        ? quotedOf("message", MESSAGE, path, text)
        : []),
    ...(path.endsWith(".tsx") ? quotedOf("message", JSX_TEXT, path, text) : []),
  ];
}

/** Discouraged words and their replacements. */
const DISCOURAGED: Readonly<Record<string, string>> = {
  turnstile: "advisory lock",
  aside: "read worker",
  "so many": "the number, or `as many as`",
  "is none of": "is not",
  "are none of": "are not",
  "once more": "again",
  whoever: "a noun such as `the caller`",
  whosoever: "a noun such as `the caller`",
  "no such one": "the noun",
  "of foreign make": "untrusted",
  "thrown away": "dropped",
  "goes on": "continues",
  "go on": "continue",
  "went on": "continued",
};
const DISCOURAGED_PATTERN = new RegExp(String.raw`\b(${Object.keys(DISCOURAGED).join("|")})\b`, "i");
const RULE_NUMBER = /^[A-Z]{1,4}\d{1,3}(?:, [A-Z]{1,4}\d{1,3})*: /;
/** Verbs that a title must not begin with, because they need a subject. A title may begin with "keeps". */
const WITHOUT_SUBJECT = /^(?:is|are|was|were|has|have|and|end|come|go)\b/;

const SENTENCE_START = /^\*{0,2}(What|Who|Whose|Which)(?:ever)?\b/;
/** Like `SENTENCE_START`, for labels, which may begin in lower case. */
const LABEL_START = new RegExp(SENTENCE_START, "i");

function problemsOf({ kind, text }: Prose): string[] {
  const found: string[] = [];
  // Words in backquotes are code or examples, which may contain any word.
  const plain = text.replace(/`[^`]*`/g, "`x`");
  for (const sentence of plain.split(/(?<=[.!?:])\s+(?=[A-Z])/)) {
    const bare = sentence.replace(RULE_NUMBER, "");
    const [, first] =
      (kind === "message" && sentence === plain ? LABEL_START : SENTENCE_START).exec(bare) ?? [];
    if (first !== undefined && !bare.endsWith("?"))
      found.push(`begins with ${first}: "${bare.slice(0, 60)}"`);
  }
  if (/\bSPEC\b/.test(plain)) found.push("refers to SPEC, which is not in the repository");
  const word = DISCOURAGED_PATTERN.exec(plain)?.[1]?.toLowerCase();
  if (word !== undefined) found.push(`says "${word}": say ${DISCOURAGED[word]}`);
  if (kind === "title" && /^(?:[A-Z]+\d+[^:]*: )?should\b/i.test(plain))
    found.push("states a wish: state a fact in the present tense");
  if (kind === "title" && WITHOUT_SUBJECT.test(plain.replace(RULE_NUMBER, "")))
    found.push(`has no subject, only that of its describe block: "${plain.slice(0, 60)}"`);
  return found;
}

/** Finds those flaws of prose that a program can detect. */
export function wordProblems(texts: ReadonlyMap<string, string>): string[] {
  return [...texts].flatMap(([path, text]) =>
    proseOf(path, text).flatMap((prose) =>
      problemsOf(prose).map((problem) => `${path}:${prose.line}: a ${prose.kind} ${problem}`),
    ),
  );
}
