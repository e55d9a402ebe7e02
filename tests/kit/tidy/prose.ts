// Finds the prose of a source file (comments, test titles, messages and labels), and the words in it against
// which docs/internals/ARCHITECTURE.md and CONTRIBUTING.md advise.

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
/**
 * Matches a test function with its properties up to the first call, for example `test.each`, but not in a
 * string.
 */
const TEST_FUNCTION = /(?<![\w"'`.])(?:test|it|both)(?:\.\w+)*(?=[(<`])/g;
const SUITE_FUNCTION = /(?<![\w"'`.])describe(?:\.\w+)*(?=[(<`])/g;
const FIRST_ARGUMENT = new RegExp(String.raw`\(\s*${QUOTED}`, "y");
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
/** Patterns of texts that are not prose: SQL, JSX class names and pieces of code. */
const SQL_WORDS = [
  String.raw`^\W*(?:with recursive|with \w+ (?:\(|as \()|select|insert into|update \w+ set|delete from|deallocate)\b`,
  String.raw`^\W*(?:create|alter) (?:unique |virtual |unlogged )?(?:table|index|trigger|schema|role)\b|^grant .* on\b`,
  String.raw`^(?:pragma|rollback|attach|analyze|commit(?=;)|lock table|set (?:local|transaction|search_path))\b`,
  String.raw`^order by\b|\b(?:case when|is (?:not )?null|row_number|coalesce|count|exists|max|substr|extract) ?\(`,
  String.raw`\bcase when\b|\bis (?:not )?null\b|\bnot exists\b|\bescape '|\bunion (?:all )?select\b|\(select\b`,
  String.raw`\bjoin \w+ \w+ on\b|^\)\} then`,
  String.raw`^[\w.]+ (?:as \w+|desc\b.*)$|^(?:and )?[\w.(]+ (?:(?:not )?in \(|[<=] [\$'])`,
  String.raw`^\W*\$\{\w+\} (?:and|or) \w+ [<=]`,
];
const SQL = new RegExp(SQL_WORDS.join("|"));
const JSX_CLASS = /\bclass=(?:"[^"]*"|\{[^\n]*?\}(?=[\s/>]))/g;
const CODE =
  /^\w+[A-Z]\w* \w+[A-Z]|[;{}]\s*\w+ ?[=(.]|=>|\breturn\b.*[;(]|^\W*[a-z]+(?:[ -][a-z]+)*-[a-z]+(?: \$\{.*\})?$/;
/** Matches at least three words. The name of an event or of a column has fewer. */
const SENTENCE = /[a-z]{2,}\S* \S+ \S+/i;
/** Matches a regular expression literal, whose backticks do not begin a text. */
const REGEXP_LITERAL =
  /(?<=[=(,:[]\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*(?=[;,).\s])/g;
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

/** Matches brackets, and the texts, regular expressions and comments in which a bracket has no meaning. */
const GROUP_PARTS = new RegExp(
  [
    String.raw`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\`(?:\\.|[^\`\\])*\`|//.*|=>|[()<>]`,
    String.raw`/(?![/*\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+/[a-z]*`,
  ].join("|"),
  "g",
);

/** Returns the index after the call, type arguments or template that begins at `from`. */
function endOfGroup(text: string, from: number): number {
  const close = { "(": ")", "<": ">" }[text[from] ?? ""];
  GROUP_PARTS.lastIndex = from;
  let depth = 0;
  for (let part = GROUP_PARTS.exec(text); part !== null; part = GROUP_PARTS.exec(text)) {
    if (part[0] === text[from]) depth += 1;
    else if (part[0] === close) depth -= 1;
    if (depth === 0) return GROUP_PARTS.lastIndex;
  }
  return text.length;
}

/** Finds calls with a title as their first argument, even after the table of an `each`. */
function titledCalls(text: string, callee: RegExp): { from: number; at: number; title: string }[] {
  return [...text.matchAll(callee)].flatMap(({ 0: name, index }) => {
    let at = index + name.length;
    for (let groups = 0; groups < 4 && /[(<`]/.test(text[at] ?? ""); groups += 1) {
      FIRST_ARGUMENT.lastIndex = at;
      const [, title] = FIRST_ARGUMENT.exec(text) ?? [];
      if (title !== undefined) return [{ from: index, at, title }];
      at = endOfGroup(text, at);
      at += /^(?:\.\w+)*/.exec(text.slice(at, at + 40))?.[0].length ?? 0;
    }
    return [];
  });
}

/** Returns the titles of tests, each with the names of the `describe` blocks around it. */
function titlesOf(path: string, text: string): Prose[] {
  const lines = text.split("\n");
  const suites = titledCalls(text, SUITE_FUNCTION).map(({ from, title }) => {
    const line = lineAt(text, from);
    return { line, indent: indentOf(lines[line - 1] ?? ""), name: title.slice(1, -1) };
  });
  return titledCalls(text, TEST_FUNCTION).flatMap(({ from, at, title }) => {
    const line = lineAt(text, from);
    let indent = indentOf(lines[line - 1] ?? "");
    const names: string[] = [];
    for (const suite of suites.filter((one) => one.line < line).reverse()) {
      if (suite.indent >= indent) continue;
      names.unshift(suite.name);
      indent = suite.indent;
    }
    return made("title", path, lineAt(text, at), title, names.join(" > "));
  });
}

/** Returns the quoted text as a prose entry, or nothing if it is not prose. */
function made(kind: ProseKind, path: string, line: number, quoted: string, context = "", always = false) {
  const words = quoted
    .replace(/^["`]|["`]$/g, "")
    .replaceAll('\\"', '"')
    .replace(/\s+/g, " ");
  const isProse = /[a-z]{2} [a-z]/i.test(words) || (always && /[a-z]/.test(words));
  return isProse ? [{ kind, path, line, text: words.trim(), context }] : [];
}

function messagesOf(pattern: RegExp, path: string, text: string): Prose[] {
  return [...text.matchAll(pattern)].flatMap((match) => {
    const quoted = match.slice(1).find((part) => part !== undefined) ?? "";
    return made("message", path, lineAt(text, match.index), quoted, "", pattern === JSX_TEXT);
  });
}

/** Returns all texts of a file that `isProse` accepts. Texts joined by `+` count as one. */
function textsOf(path: string, text: string, isProse: (words: string) => boolean): Prose[] {
  const code = text
    .replace(/^[ \t]*(?:\/\/|\/\*|\*).*$/gm, "")
    .replace(JSX_CLASS, "")
    .replace(REGEXP_LITERAL, "");
  return [...code.matchAll(TEXT)].flatMap(({ 0: joined, index }) => {
    const words = [...joined.matchAll(new RegExp(QUOTED, "g"))]
      .map(([quoted]) => quoted.slice(1, -1))
      .join("")
      .replace(/\s+/g, " ")
      .trim();
    if (!/[a-z]{2,} [a-z]/i.test(words) || !isProse(words)) return [];
    const line = lineAt(code, index);
    return [{ kind: "message" as const, path, line, text: words, context: "" }];
  });
}

/**
 * Returns the texts that people or models read: texts in known calls, and all other texts that are sentences.
 */
function sentencesOf(path: string, text: string): Prose[] {
  const known = messagesOf(MESSAGE, path, text);
  const others = textsOf(
    path,
    text,
    (words) => SENTENCE.test(words) && !SQL.test(words) && !CODE.test(words),
  );
  const isKnown = (other: Prose): boolean =>
    known.some((one) => one.text.includes(other.text) || other.text.includes(one.text));
  return [...known, ...others.filter((other) => !isKnown(other))];
}

/** Returns the prose of one file, unsorted. */
export function proseOf(path: string, text: string): Prose[] {
  const isTest =
    path.endsWith(".test.ts") || path.endsWith(".contract.ts") || path.startsWith("tests/contract/");
  return [
    ...commentsOf(path, text),
    ...(isTest ? titlesOf(path, text) : []),
    ...(DESCRIBED.test(path)
      ? textsOf(path, text, () => true)
      : /^(src|ui|bin)\//.test(path)
        ? sentencesOf(path, text)
        : []),
    ...(path.endsWith(".tsx") ? messagesOf(JSX_TEXT, path, text) : []),
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
  // Ignores words in backquotes, because they are code or examples.
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
