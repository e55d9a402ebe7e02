// Defines the errors of a store that are not bugs (for example a full disk), and their texts.
// Each text names the store and says how to fix the problem. Nothing has been overwritten when a problem is
// reported.
// A problem lasts for a while, or until somebody fixes it, so callers wait before they retry. A conflict is
// over immediately, so callers retry at once.

/**
 * `in_use`: another gateway uses the store. `locked`: another program has locked the file or a table. `busy`:
 * too many queries of this gateway are waiting. `unreachable`: also reported if the answer to a commit was
 * lost, so that its outcome is unknown. `unfit`: another program uses the database, or the database does not
 * meet a requirement.
 */
export type StoreProblemKind =
  | "newer"
  | "unreleased"
  | "locked"
  | "busy"
  | "readonly"
  | "full"
  | "corrupt"
  | "behind"
  | "in_use"
  | "not_a_directory"
  | "not_a_file"
  | "no_token"
  | "io"
  | "unsynced"
  | "unreachable"
  | "refused"
  | "too_old"
  | "unfit"
  | "absent"
  | "older"
  | "bad_address";

interface Words {
  readonly what: string;
  readonly wayOut: string;
}

const WORDS: Record<StoreProblemKind, Words> = {
  newer: {
    what: "was written by a newer version of this program",
    wayOut:
      "Install the newer version, or move the store away and restore a backup that this version made. " +
      "Nothing was changed.",
  },
  unreleased: {
    what: "was written by an unreleased version of this program",
    wayOut:
      "Stores of version 0.1 and of the last unreleased version are converted: start that last version " +
      "once with this store, or point store.dir at another directory. Nothing was changed.",
  },
  locked: {
    what: "is locked by another program",
    wayOut: "Close the program that has the file open (a database browser, a backup) and try again.",
  },
  busy: {
    what: "is overloaded at the moment",
    wayOut: "Try again in a moment.",
  },
  readonly: {
    what: "cannot be written",
    wayOut:
      "Give the user that runs the gateway write access to the directory and every file in it, " +
      "or point store.dir at a directory that can be written.",
  },
  full: {
    what: "cannot grow: the disk or the quota is full",
    wayOut: "Free some space and try again. Data that was stored before is intact.",
  },
  corrupt: {
    what: "is damaged or is not a store of this program",
    wayOut:
      "Run npx parley-gateway store recover, which rebuilds it and keeps the old files. Or move it away, " +
      "with its -wal, -shm and -mark files, and restore a backup.",
  },
  behind: {
    what: "has lost data",
    wayOut:
      "If you still have the missing file, put it back. Otherwise run npx parley-gateway store recover, " +
      "which rebuilds the store and keeps the old files. Nothing was changed.",
  },
  in_use: {
    what: "belongs to a gateway that is running",
    wayOut: "Stop that gateway, connect to it, or set another store.dir for this one.",
  },
  not_a_directory: {
    what: "is not a directory",
    wayOut: "Point store.dir at a directory; it is created if it does not exist.",
  },
  not_a_file: {
    what: "is not a regular file, or its -wal or -shm file is not a regular file",
    wayOut: "Move it away and try again.",
  },
  no_token: {
    what: "should hold the gateway's token, and is empty or damaged",
    wayOut: "Delete it and start again: the gateway generates a new token, which clients then need.",
  },
  io: {
    what: "could not be read or written",
    wayOut: "Check the disk and the file's permissions, then try again.",
  },
  unsynced: {
    what: "is no longer used, because its disk failed to store a transaction",
    wayOut: "Check the disk, then restart the gateway, which finds out what was stored.",
  },
  unreachable: {
    what: "cannot be reached",
    wayOut:
      "Check that the database server runs, accepts connections from this machine, has free " +
      "ones, and is not a read-only standby.",
  },
  refused: {
    what: "was refused by its database server",
    wayOut:
      "Check the user, the password, the database and the TLS settings in store.postgresUrl. The user must " +
      "be allowed to create a schema in that database, or own the schema.",
  },
  too_old: {
    what: "is on a database server that is too old",
    wayOut: "Upgrade the server, or name another one in store.postgresUrl. Nothing was changed.",
  },
  unfit: {
    what: "cannot use this database",
    wayOut:
      "Name another database, or another schema with ?schema=name, in store.postgresUrl. Nothing was " +
      "changed.",
  },
  absent: {
    what: "does not exist",
    wayOut:
      "Check the database and ?schema=name in store.postgresUrl; a gateway's first start creates the store.",
  },
  older: {
    what: "was written by an older version of this program",
    wayOut:
      "Use that version. To upgrade the store, start a gateway of this version once with this store. " +
      "Nothing was changed.",
  },
  bad_address: {
    what: "has an address that cannot be used",
    wayOut:
      "Write store.postgresUrl as postgresql://user:password@host:5432/database, with special characters " +
      "of user and password percent-encoded: # is %23, / is %2F.",
  },
};

/** Texts for a database server. Kinds that are missing here have the same text as for a file. */
const SERVER_WORDS: Partial<Record<StoreProblemKind, Words>> = {
  newer: {
    what: WORDS.newer.what,
    wayOut:
      "Install the newer version, or name another schema with ?schema=name in store.postgresUrl and " +
      "restore a backup that this version made. Nothing was changed.",
  },
  unreleased: {
    what: WORDS.unreleased.what,
    wayOut: WORDS.unreleased.wayOut.replace(
      "point store.dir at another directory",
      "name another schema with ?schema=name in store.postgresUrl",
    ),
  },
  in_use: {
    what: "is used by running gateways of an earlier version",
    wayOut: "Stop all of them and start again: they could not work with the converted store.",
  },
  locked: {
    what: "is locked by another program",
    wayOut:
      "A database session has locked one of its tables: find it in pg_stat_activity, end it, and try " +
      "again. Nothing was changed.",
  },
  full: {
    what: "cannot grow: the disk of its database server is full",
    wayOut: "Free some space there and try again. Data that was stored before is intact.",
  },
  io: {
    what: "could not be read or written by its database server",
    wayOut: "Read the server's log and check its disks.",
  },
};

interface Circumstances {
  readonly detail?: string;
  readonly cause?: unknown;
  /** Type of `place`: a file or a database server. Default "file". */
  readonly on?: "file" | "server";
  /** See `StoreProblem.inDoubt`. Default false. */
  readonly inDoubt?: boolean;
}

/** A problem of the store that lasts until a person fixes it or time passes. */
export class StoreProblem extends Error {
  readonly problem: StoreProblemKind;
  /** Path of the file, or host, port and name of the database; never a password. */
  readonly place: string;
  /** Description of the problem without a path, for clients that must not see paths. */
  readonly what: string;
  readonly wayOut: string;
  /** True if the answer to a commit was lost: the transaction may or may not be committed, now or later. */
  readonly inDoubt: boolean;

  constructor(problem: StoreProblemKind, place: string, more: Circumstances = {}) {
    const { what, wayOut } = (more.on === "server" ? SERVER_WORDS[problem] : undefined) ?? WORDS[problem];
    const detail = more.detail === undefined ? "" : ` (${more.detail})`;
    super(
      `The store ${place} ${what}${detail}. ${wayOut}`,
      more.cause === undefined ? {} : { cause: more.cause },
    );
    this.name = "StoreProblem";
    this.problem = problem;
    this.place = place;
    this.what = what;
    this.wayOut = wayOut;
    this.inDoubt = more.inDoubt ?? false;
  }
}

/** Returns the error of a failed commit, marked as in doubt: the outcome of the commit is unknown. */
export function asInDoubt(error: unknown): unknown {
  if (!(error instanceof StoreProblem)) return error;
  const { problem, place, message, cause } = error;
  const doubtful = new StoreProblem(problem, place, { cause, inDoubt: true });
  doubtful.message = message;
  return doubtful;
}

/** Returns whether the outcome of the failed transaction is unknown. */
export function isInDoubt(error: unknown): boolean {
  return error instanceof StoreProblem && error.inDoubt;
}

/**
 * A transaction conflicted with another one, or violated a unique index. It was rolled back completely and
 * can be retried immediately.
 */
export class StoreConflict extends Error {
  /** SQLSTATE. */
  readonly code: string;
  /** Name of the violated index. */
  readonly constraint?: string;

  constructor(code: string, message: string, constraint?: string) {
    super(message);
    this.name = "StoreConflict";
    this.code = code;
    if (constraint !== undefined) this.constraint = constraint;
  }
}

/** Maps the SQLite result codes that concern the file rather than the statement. */
const PROBLEM_OF_RESULT: ReadonlyMap<number, StoreProblemKind> = new Map([
  [3, "readonly"], // PERM
  [5, "locked"], // BUSY
  [6, "locked"], // LOCKED
  [8, "readonly"], // READONLY
  [10, "io"], // IOERR
  [11, "corrupt"], // CORRUPT
  [13, "full"], // FULL
  [14, "readonly"], // CANTOPEN
  [15, "locked"], // PROTOCOL
  [23, "readonly"], // AUTH
  [26, "corrupt"], // NOTADB
]);

const PROBLEM_OF_SYSTEM: ReadonlyMap<string, StoreProblemKind> = new Map([
  ["EACCES", "readonly"],
  ["EPERM", "readonly"],
  ["EROFS", "readonly"],
  ["ENOSPC", "full"],
  ["EDQUOT", "full"],
  ["ENOTDIR", "not_a_directory"],
  ["EEXIST", "not_a_directory"],
  ["EISDIR", "not_a_file"],
  ["EIO", "io"],
]);

/** Converts an error into a problem of `file`. Returns an error that does not concern the file unchanged. */
export function asStoreProblem(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof StoreProblem) return error;
  const { errcode, code } = error as { errcode?: number; code?: string };
  const problem =
    errcode === undefined ? PROBLEM_OF_SYSTEM.get(code ?? "") : PROBLEM_OF_RESULT.get(errcode & 0xff);
  if (problem === undefined) return error;
  return new StoreProblem(problem, file, { detail: error.message, cause: error });
}
