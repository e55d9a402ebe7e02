// Owns what can be wrong with a store that is nobody's bug, and the words for it.
// P1: a problem names the file and the way out; nothing was overwritten when it is reported.

/** `in_use`: by another gateway. `locked`: by any other program. */
export type StoreProblemKind =
  | "newer"
  | "locked"
  | "readonly"
  | "full"
  | "corrupt"
  | "in_use"
  | "not_a_directory"
  | "io";

const WORDS: Record<StoreProblemKind, { readonly what: string; readonly wayOut: string }> = {
  newer: {
    what: "was written by a newer version of this program",
    wayOut: "Start the newer version, or point store.dir at another directory. The file was not touched.",
  },
  locked: {
    what: "is locked by another program",
    wayOut: "Close the program that has the file open (a database browser, a backup) and try again.",
  },
  readonly: {
    what: "cannot be written",
    wayOut:
      "Give the user that runs the gateway write access to the directory and every file in it, " +
      "or point store.dir at a directory that can be written.",
  },
  full: {
    what: "cannot grow: the disk or the quota is full",
    wayOut: "Free some space and try again. What was stored before is intact.",
  },
  corrupt: {
    what: "is damaged or is not a store of this program",
    wayOut:
      "Move it away together with its -wal and -shm files and put a backup in its place, or start with " +
      "an empty directory. The file was not changed, so that it can still be examined.",
  },
  in_use: {
    what: "belongs to a gateway that is running",
    wayOut: "Stop that gateway, talk to it instead, or give this one another store.dir.",
  },
  not_a_directory: {
    what: "is not a directory",
    wayOut: "Point store.dir at a directory; it is made if it does not exist.",
  },
  io: {
    what: "could not be read or written",
    wayOut: "Check the disk and the file's permissions, then try again.",
  },
};

/** Something is wrong with the store's files that a person has to put right. */
export class StoreProblem extends Error {
  readonly problem: StoreProblemKind;
  readonly file: string;
  readonly wayOut: string;

  constructor(problem: StoreProblemKind, file: string, more: { detail?: string; cause?: unknown } = {}) {
    const detail = more.detail === undefined ? "" : ` (${more.detail})`;
    super(
      `The store ${file} ${WORDS[problem].what}${detail}. ${WORDS[problem].wayOut}`,
      more.cause === undefined ? {} : { cause: more.cause },
    );
    this.name = "StoreProblem";
    this.problem = problem;
    this.file = file;
    this.wayOut = WORDS[problem].wayOut;
  }
}

/** Primary result codes of SQLite that speak of the file and not of the statement. */
const PROBLEM_OF_RESULT: ReadonlyMap<number, StoreProblemKind> = new Map([
  [3, "readonly"],
  [5, "locked"],
  [6, "locked"],
  [8, "readonly"],
  [10, "io"],
  [11, "corrupt"],
  [13, "full"],
  [14, "readonly"],
  [23, "readonly"],
  [26, "corrupt"],
]);

const PROBLEM_OF_SYSTEM: ReadonlyMap<string, StoreProblemKind> = new Map([
  ["EACCES", "readonly"],
  ["EPERM", "readonly"],
  ["EROFS", "readonly"],
  ["ENOSPC", "full"],
  ["EDQUOT", "full"],
  ["ENOTDIR", "not_a_directory"],
  ["EEXIST", "not_a_directory"],
  ["EIO", "io"],
]);

/** The error as a problem of `file`, or as it is when it says nothing about the file. */
export function asStoreProblem(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof StoreProblem) return error;
  const { errcode, code } = error as { errcode?: number; code?: string };
  const problem =
    errcode === undefined ? PROBLEM_OF_SYSTEM.get(code ?? "") : PROBLEM_OF_RESULT.get(errcode & 0xff);
  if (problem === undefined) return error;
  return new StoreProblem(problem, file, { detail: error.message, cause: error });
}
