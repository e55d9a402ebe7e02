// Lists the programs that only read, and checks their arguments.
// AP1: a program is listed only if, with the allowed arguments, it changes no file, uses no network, and runs
//      no other program, whatever the workspace contains. So `npm test` and `make` are not listed: they run
//      files that the agent can write.

import type { Word } from "./words.ts";

/** Returns why the arguments may do more than read, or undefined if they only read. */
type ArgumentCheck = (args: readonly Word[]) => string | undefined;

const anything: ArgumentCheck = () => undefined;

/** Allows words that are no options, short options that match, and these long options. */
const options =
  (short: RegExp, long = ""): ArgumentCheck =>
  (args) => {
    const names = long.split(" ");
    const isListed = (text: string): boolean =>
      short.test(text) || (text.startsWith("--") && names.includes(text.slice(2).replace(/=.*$/s, "")));
    const wrong = args.find(({ text }) => text.startsWith("-") && text !== "--" && !isListed(text));
    return wrong === undefined ? ofFileNames(args) : `option ${wrong.text} is not on the list`;
  };

const NONE = /^$/;

/** `rg` never shortens the names of options, so the dangerous ones can be listed. */
const rg: ArgumentCheck = (args) => {
  const wrong = args.find(({ text }) => /^(--(pre|hostname|search-zip)|-[^-]*z)/.test(text));
  return wrong === undefined ? ofFileNames(args) : `option ${wrong.text} is not on the list`;
};

/** Refuses a pattern that could become an option if a file has such a name. */
function ofFileNames(args: readonly Word[]): string | undefined {
  const wrong = args.find((word) => word.mayBecomeOption);
  return wrong === undefined ? undefined : `${wrong.text} may stand for an option: write ./${wrong.text}`;
}

const positional = (args: readonly Word[]): Word[] => args.filter(({ text }) => !text.startsWith("-"));

/** Checks with `check`, and allows at most `max` words that are no options. A pattern may become several. */
const atMost =
  (max: number, check: ArgumentCheck): ArgumentCheck =>
  (args) =>
    positional(args).length > max || args.some(({ isPattern }) => isPattern)
      ? "too many arguments"
      : check(args);

const onlyVersion: ArgumentCheck = ([first, ...more]) =>
  first?.text === "--version" && more.length === 0 ? undefined : "only --version is on the list";

const cd: ArgumentCheck = (args) => (args.length === 1 ? options(NONE)(args) : "one folder is needed");

const date: ArgumentCheck = (args) =>
  positional(args).some(({ text }) => !text.startsWith("+"))
    ? "this may set the clock"
    : options(/^-([uR]|I\w*)$/, "utc iso-8601 rfc-3339 rfc-email")(args);

/** `sed` has commands that write files and run programs, so only the printing of lines is allowed. */
const sed: ArgumentCheck = ([first, script, ...files]) =>
  first?.text === "-n" && script !== undefined && /^\d+(,(\d+|\$))?p$/.test(script.text)
    ? options(NONE)(files)
    : "only sed -n 'FROM,TOp' is on the list";

/** A program of jq can read other files by `import`. */
const jq: ArgumentCheck = (args) =>
  args.some(({ text }) => /\b(import|include|modulemeta)\b/.test(text))
    ? "a program that imports files"
    : options(/^-[cnrsSejRMa]+$/)(args);

/** The tests and actions of find, which begin with one dash. */
const FIND = new Set(
  [
    "name iname path ipath wholename regex iregex regextype type xtype maxdepth mindepth size empty not a",
    "and o or amin atime cmin ctime mmin mtime anewer cnewer newer print print0 printf ls prune quit perm",
    "user group readable writable executable xdev mount true false links inum samefile depth daystart follow",
    "L H P",
  ].flatMap((line) => line.split(" ")),
);

const find: ArgumentCheck = (args) => {
  const isListed = (text: string): boolean =>
    FIND.has(text.slice(1)) || /^-(newer[aBcm][aBcmt]|\d+[a-zA-Z]?)$/.test(text);
  const wrong = args.find(({ text }) => text.startsWith("-") && !isListed(text));
  return wrong === undefined ? ofFileNames(args) : `${wrong.text} is not on the list`;
};

const GIT_LONG = [
  "oneline stat shortstat numstat summary name-only name-status name graph decorate all cached staged merges",
  "no-merges reverse follow first-parent patch no-patch color no-color word-diff abbrev-commit abbrev short",
  "long porcelain branch branches tags heads remotes exit-code quiet check no-ext-diff no-textconv ignored",
  "show-toplevel abbrev-ref is-inside-work-tree others exclude-standard modified deleted left-right count",
  "ignore-all-space ignore-space-change minimal histogram full-index raw topo-order date-order no-renames",
  "find-renames author committer since until after before grep format pretty max-count date unified skip",
  "untracked-files diff-filter",
].join(" ");
const git = options(/^-(\d+|[pusnbwMCSGaviIlrtz]+|n\d+|U\d+|L[\d,]+:\S+)$/, GIT_LONG);
/** Without a name these subcommands only list. */
const listing: ArgumentCheck = atMost(
  0,
  options(
    /^-([arvl]+|n\d*)$/,
    "show-current list all remotes verbose sort contains merged no-merged points-at format",
  ),
);

/** Subcommands of git that only read. */
const GIT: ReadonlyMap<string, ArgumentCheck> = new Map([
  ...["status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "rev-list"].map(
    (name) => [name, git] as const,
  ),
  ...["merge-base", "describe", "shortlog", "cat-file"].map((name) => [name, git] as const),
  ...["branch", "tag", "remote"].map((name) => [name, listing] as const),
]);

function gitCheck(args: readonly Word[]): string | undefined {
  const [first, ...more] = args[0]?.text === "--no-pager" ? args.slice(1) : args;
  const name = first?.text ?? "";
  const check = GIT.get(name);
  return check === undefined ? `${name} is not on the list of commands that only read` : check(more);
}

const named = (names: string, check: ArgumentCheck): (readonly [string, ArgumentCheck])[] =>
  names.split(" ").map((name) => [name, check]);

/** Programs that only read, with the check of their arguments (AP1). */
export const READING_PROGRAMS: ReadonlyMap<string, ArgumentCheck> = new Map([
  ...named("ls cat head tail wc pwd echo true false basename dirname realpath readlink stat", anything),
  ...named("du df id whoami uname nproc uptime which type sleep seq", anything),
  ...named("grep egrep fgrep cut tr nl rev tac comm cmp paste fold od strings", anything),
  ...named("md5sum sha1sum sha256sum cksum", anything),
  ...named("node npm python python3 gcc clang make cmake perl bash", onlyVersion),
  ["cd", cd],
  ["date", date],
  ["sed", sed],
  ["jq", jq],
  ["git", gitCheck],
  ["find", find],
  ["rg", rg],
  ["sort", options(/^-([bdfgiMhnRrVucsz]+|[kt].*)$/, "reverse unique numeric-sort version-sort")],
  ["uniq", atMost(1, options(/^-[cdDuiz]+$/))],
  ["diff", options(/^-([uqrNwbBiyac]+|U\d+)$/, "brief recursive unified")],
  ["file", options(/^-[bi]+$/, "brief mime mime-type")],
  ["tree", options(/^-[adfilsphugDFCLIP]+$/, "dirsfirst gitignore noreport")],
]);
