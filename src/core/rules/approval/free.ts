// Reads the few command lines that run without a question, because they only read files of the workspace.
// FR1: a short line is free only if it consists of plain commands, joined by `&&`, `||`, `;` or `|`, and
//      every word of a command is a listed program, an option on that program's closed list, or a plain
//      word. A plain word counts as a path, whatever the program does with it, and the caller resolves each
//      one. So no list of dangerous options is needed, nor of options that take a value.
// FR2: a listed program, with listed options and any words, opens no files but those words and what is below
//      them, follows no links below them, writes nothing, uses no network, and starts no program. Given input
//      instead of words, it treats it as data: `node` is not listed, because it would run its input.
// FR3: git runs with settings that disable hooks, pagers, drivers and submodules. The caller checks its
//      repository (GC1).
// GC1: the configuration of a repository is harmless only if each line has one of the plain forms below, with
//      a listed key. The keys neither start a program nor name another place or file. So `.gitattributes` is
//      harmless as well: it names drivers and filters that only the configuration can define.

import { quoted } from "../../text/cut.ts";

const LINE_MAX_CHARS = 1_000;
const SHOWN_MAX_CHARS = 60;

interface Program {
  /** Matches each option that it may get. */
  readonly options: RegExp;
  /** Maximum number of words that are no options. Default: any number. */
  readonly wordsMax?: number;
  /** Matches the first word that is no option. */
  readonly first?: RegExp;
}

const NO_OPTIONS = /^$/;

/** Programs by name. All letters of a bundle are options without a value (FR1). */
const PROGRAMS: ReadonlyMap<string, Program> = new Map([
  ["cat", { options: /^-[AnE]+$/ }],
  ["date", { options: /^-u$/, wordsMax: 0 }],
  ["echo", { options: /^-[neE]+$/ }],
  ["find", { options: /^-(name|iname|path|type|maxdepth|mindepth|empty|size|mtime|not|a|o|print)$/ }],
  ["grep", { options: /^(-[EFHILchilnorsvwx]+|-[ABCm]\d*|-e|--)$/ }],
  ["head", { options: /^-([nc]?\d+|[nc])$/ }],
  ["ls", { options: /^(-[1aAFhlrRSt]+|--)$/ }],
  ["pwd", { options: NO_OPTIONS, wordsMax: 0 }],
  ["sed", { options: /^-n$/, first: /^\d+(,(\d+|\$))?p$/ }],
  ["sort", { options: /^(-[bdfghinrsuV]+|-[kt])$/ }],
  ["tail", { options: /^-([nc]?\d+|[nc])$/ }],
  ["true", { options: NO_OPTIONS }],
  // Its second word is a file that it writes.
  ["uniq", { options: /^-[cdiu]+$/, wordsMax: 0 }],
  ["wc", { options: /^-[clmw]+$/ }],
  ["which", { options: /^-a$/ }],
]);

const GIT_SHOWING: Program = {
  options: new RegExp(
    "^(-\\d+|-n\\d*|-U\\d+|-[psw]|--|--(oneline|graph|all|decorate|merges|no-merges|first-parent|reverse|" +
      "follow|patch|no-patch|stat|shortstat|numstat|summary|name-only|name-status|cached|staged))$",
  ),
};
const GIT: ReadonlyMap<string, Program> = new Map([
  ["status", { options: /^(-[sb]+|--short|--branch|--porcelain|--)$/ }],
  ...["log", "diff", "show"].map((name) => [name, GIT_SHOWING] as const),
]);
const GIT_RUN =
  "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_NO_LAZY_FETCH=1 git --git-dir=.git" +
  " --work-tree=. --no-pager --no-optional-locks -c core.hooksPath=/dev/null -c core.fsmonitor=false";

/**
 * Matches the next part of a line. A word is wholly quoted or wholly plain. Plain words have no `=`, because
 * bash could read them as assignments, and no `~` at their start.
 */
const PART = new RegExp(
  String.raw`(?<discard>2>&1|2?>/dev/null)(?=[ ;|]|$)|(?<joint>&&|\|\||\||;)|` +
    String.raw`(?:'(?<single>[^'\p{C}]*)'|"(?<double>[^"$\x60\\!\p{C}]*)"|` +
    String.raw`(?<plain>[\w./+%\-][\w./+%:,^~@\-]*))(?=[ ;|&]|$)`,
  "uy",
);
const BLANKS = / */y;

/** A line that runs without a question if each of its paths is inside the workspace. */
export interface FreeLine {
  /** The line for bash: the same words, with settings for git (FR3). */
  readonly line: string;
  readonly paths: readonly string[];
  readonly usesGit: boolean;
}

export type FreeReading =
  | ({ readonly kind: "free" } & FreeLine)
  | { readonly kind: "asks"; readonly why: string };

interface Word {
  readonly text: string;
  /** As it is written in the line. */
  raw: string;
}

const asks = (why: string) => ({ kind: "asks", why }) as const;
const quote = (text: string): string => quoted(text, SHOWN_MAX_CHARS);

/** A path that the program could open as another one than it was resolved as. */
const ODD_PATH = /^[-~@:]|(^|\/)\.\.(\/|$)/;

/** Returns the paths among the words of a program, or why they are not free. */
function readWords(name: string, program: Program, words: readonly Word[]): string[] | string {
  const paths: string[] = [];
  let onlyPaths = false;
  for (const { text } of words) {
    if (!onlyPaths && text.startsWith("-")) {
      if (!program.options.test(text)) return `${name}: option ${quote(text)} is not on its list`;
      onlyPaths = text === "--";
    } else {
      if (ODD_PATH.test(text)) return `${quote(text)} is not a plain path inside of the workspace`;
      paths.push(text);
    }
  }
  if (paths.length > (program.wordsMax ?? Number.POSITIVE_INFINITY)) return `${name}: it has too many words`;
  if (program.first === undefined) return paths;
  return program.first.test(paths[0] ?? "") ? paths : `${name}: ${quote(paths[0] ?? "")} is not on its list`;
}

/** Reads one command. Adds settings to a git command. */
function readCommand(words: readonly Word[]): string[] | string {
  const isGit = words[0]?.text === "git";
  const [first, second, ...others] = words.filter(
    ({ text }, at) => !(isGit && at === 1 && text === "--no-pager"),
  );
  if (first === undefined) return "a part of the command is empty";
  const { text: name } = first;
  const program = PROGRAMS.get(name);
  if (program !== undefined) return readWords(name, program, words.slice(1));
  const subcommand = second?.text ?? "";
  const git = isGit ? GIT.get(subcommand) : undefined;
  if (git === undefined || second === undefined) {
    const command = isGit ? `git ${subcommand}` : name;
    return `${quote(command)} is not on the list of commands that only read`;
  }
  first.raw = GIT_RUN;
  const plain = subcommand === "status" ? "" : "--no-ext-diff --no-textconv ";
  second.raw = `${subcommand} ${plain}--ignore-submodules=all`;
  return readWords(`git ${subcommand}`, git, others);
}

/** Reads a command line (FR1). */
export function readFree(command: string): FreeReading {
  if (command.length > LINE_MAX_CHARS) return asks("the command is long");
  const line: { raw: string }[] = [];
  const commands: Word[][] = [[]];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(command);
    at += match?.[0].length ?? 0;
    return match;
  };
  for (take(BLANKS); at < command.length; take(BLANKS)) {
    const match = take(PART);
    if (match === null) return asks(`the command has more than plain words, at ${quote(command.slice(at))}`);
    const { discard, joint, single, double, plain } = match.groups ?? {};
    const part: Word = { text: single ?? double ?? plain ?? "", raw: match[0] };
    line.push(part);
    if (joint !== undefined) commands.push([]);
    else if (discard === undefined) commands.at(-1)?.push(part);
  }
  const paths: string[] = [];
  for (const words of commands) {
    const read = readCommand(words);
    if (typeof read === "string") return asks(read);
    paths.push(...read);
  }
  const usesGit = commands.some(([first]) => first?.text === "git");
  return { kind: "free", line: line.map(({ raw }) => raw).join(" "), paths, usesGit };
}

const HEADER = /^\[(core|user|(?:remote|branch) "[\w./@+-]+")\]$/;
const SETTING = /^([\w-]+) = ([\w ./:@+*%~-]*)$/;
const IGNORED = /^$|^[#;][^\\]*$/;

const OF_FILES = "filemode|ignorecase|symlinks|precomposeunicode|autocrlf|logallrefupdates";
const KEYS: Readonly<Record<string, RegExp>> = {
  core: new RegExp(`^(repositoryformatversion = 0|bare = false|(${OF_FILES}) = \\w+)$`, "i"),
  user: /^(name|email) = /,
  remote: /^(url|pushurl|fetch) = /,
  branch: /^(remote|merge|rebase|vscode-merge-base) = /,
};

/** Returns the first line of a configuration file that may not be harmless, or undefined (GC1). */
export function findGitRisk(config: string): string | undefined {
  let section = "";
  return config.split("\n").find((text) => {
    const line = text.replace(/^[\t ]+/, "");
    const header = HEADER.exec(line)?.[1];
    if (header !== undefined) section = header.split(" ")[0] ?? "";
    return !(header !== undefined || IGNORED.test(line) || (SETTING.test(line) && KEYS[section]?.test(line)));
  });
}
