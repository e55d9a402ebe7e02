// Finds the files that a command names, so that an approval counts for their content as well.
// NF1: every part of the command that could be a path counts, in each folder that the command names. The
//      command is not interpreted: a name that bash makes of variables or patterns is not found.
// NF2: the target of a redirection does not count, because the command itself writes it.

/** The files that a program reads without being told. */
const IMPLIED: readonly (readonly [program: RegExp, files: readonly string[]])[] = [
  [/^(npm|npx|pnpm|yarn|bun|bunx)$/, ["package.json"]],
  [/^g?make$/, ["Makefile", "makefile", "GNUmakefile"]],
];

const REDIRECTION = /\d*>{1,2}[|&]?[ \t]*("[^"]*"|'[^']*'|[^\s;|&<>()]+)/g;
const QUOTED = /'([^']*)'|"([^"]*)"/g;
const BETWEEN_NAMES = /[\s;|&<>()$`"'=:,{}!#\\]+/;

/** Returns everything in a command that may be the path of a file (NF1). */
export function readNames(command: string): string[] {
  const read = command.replaceAll(REDIRECTION, " ");
  const quoted = [...read.matchAll(QUOTED)].map(([, single, double]) => single ?? double ?? "");
  const words = read.split(/[\s;|&<>()]+/);
  const names = new Set([...read.split(BETWEEN_NAMES), ...words, ...quoted].filter((name) => name !== ""));
  const implied = IMPLIED.filter(([program]) => [...names].some((name) => program.test(name)));
  return [...names, ...implied.flatMap(([, files]) => files)];
}

/** Characters by which bash makes other names of a word, and quotes inside a word. */
const MAKES_NAMES = /[~$`*?[\]{}\\]|[^\s=(;|&<>]"x"|"x"[^\s);|&<>]/;

/** Returns whether all names in a command can be found (NF1), so that it may be allowed for longer. */
export function hasPlainNames(command: string): boolean {
  const read = command.replaceAll(QUOTED, (text) => (/[$`\\<>]/.test(text) ? "~" : '"x"'));
  return !MAKES_NAMES.test(read);
}

/** Paths of files, with what tells their content. */
export type NamedFiles = readonly (readonly [path: string, content: string])[];

/** Returns the first file that differs between two times, or undefined if none does. */
export function findChange(before: NamedFiles, now: NamedFiles): string | undefined {
  const [old, current] = [new Map(before), new Map(now)];
  return [...current.keys(), ...old.keys()].find((path) => old.get(path) !== current.get(path));
}
