// Lets transactions of the embedded store share a commit: those that are ready at once become one transaction
// of the database, written and synced together.
// SG1: a transaction's promise settles after the commit that contains it, so that nobody sees a result that
//      is not on disk (I2).
// SG2: transactions run one after the other, in the order of the calls; one that fails undoes only its own
//      part.
// SG3: if the database rolls back the whole group (full disk, I/O error) or the commit fails, every member of
//      it fails.
// SG4: a group never waits for more members: it takes those that are queued when it begins.

import { StoreProblem } from "../problems.ts";
import type { Store, Tx } from "../sql.ts";
import type { TransactionConnection } from "../transaction.ts";

/** Maximum number of transactions that share a commit: they all wait for it. */
const GROUP_MAX = 32;

export interface GroupConnection extends TransactionConnection {
  begin(): void;
  /** Resolves after other work had a turn. Undefined: no pause is due. */
  rest(): Promise<void> | undefined;
  /** Resolves when the commit is on disk. Fails if the database has already rolled back the transaction. */
  commit(): Promise<void> | undefined;
  rollback(): void;
  /** Opens a savepoint; `keepPart` merges it into the transaction. */
  savepoint(): void;
  keepPart(): void;
  /** Undoes the open savepoint. Fails if the database has already rolled back the whole transaction. */
  undoPart(): void;
}

interface Member {
  run(): Promise<() => void>;
  reject(error: unknown): void;
}

/** Hooks that run before and after a group. */
export interface GroupHooks {
  /** Runs before a group begins, so that more callers can queue. Default: only those of the same step. */
  readonly gather?: (() => Promise<void>) | undefined;
  /** Runs after a group was committed. Must not throw. */
  readonly committed?: () => void;
}

interface GroupParts extends GroupHooks {
  readonly connection: GroupConnection;
  /** Opens the transaction of one member; `end` makes it refuse further statements. */
  readonly open: () => { readonly tx: Tx; readonly end: () => void };
}

async function gathered({ gather }: GroupParts): Promise<void> {
  try {
    await gather?.();
  } catch {
    // A failure here only makes the group smaller.
  }
}

/** Runs transactions in groups, on a connection that nothing else writes through. */
export function groupedTransactions(parts: GroupParts): Store["transaction"] {
  const waiting: Member[] = [];
  let isBusy = false;
  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      await gathered(parts);
      await runGroup(parts, waiting);
    }
    isBusy = false;
  };
  return (task) =>
    new Promise((resolve, reject) => {
      const run = async (): Promise<() => void> => {
        const { tx, end } = parts.open();
        try {
          const value = await task(tx);
          return () => resolve(value);
        } finally {
          end();
        }
      };
      waiting.push({ run, reject });
      if (isBusy) return;
      isBusy = true;
      void work();
    });
}

interface Done {
  /** Settles the member's promise once the group is on disk. */
  tell(): void;
  reject(error: unknown): void;
}

async function runGroup({ connection, committed }: GroupParts, waiting: Member[]): Promise<void> {
  const done: Done[] = [];
  try {
    for (let count = 0; count < GROUP_MAX; count += 1) {
      const member = waiting.shift();
      if (member === undefined) break;
      const one = await (done.length === 0 ? runFirst : runPart)(connection, member);
      if (one !== undefined) done.push(one);
    }
    if (done.length > 0) {
      await connection.rest();
      await connection.commit();
      committed?.();
      await connection.rest();
    }
  } catch (error) {
    connection.rollback();
    for (const { reject } of done) reject(done.length === 1 ? error : lost(error));
    return;
  }
  for (const { tell } of done) tell();
}

/**
 * Runs the first member without a savepoint: if it fails, the whole transaction is rolled back. Undefined:
 * the member failed, so the group does not exist yet.
 */
async function runFirst(connection: GroupConnection, member: Member): Promise<Done | undefined> {
  const { reject } = member;
  try {
    connection.begin();
    return { tell: await member.run(), reject };
  } catch (error) {
    connection.rollback();
    reject(error);
    return undefined;
  }
}

/** Runs a further member in a savepoint. Throws if the member's failure rolled back the whole group. */
async function runPart(connection: GroupConnection, member: Member): Promise<Done> {
  const { reject } = member;
  try {
    connection.savepoint();
    const tell = await member.run();
    connection.keepPart();
    return { tell, reject };
  } catch (error) {
    try {
      connection.undoPart();
    } catch {
      reject(error);
      throw lost(error);
    }
    // The statement may have failed because of uncommitted rows of other members, so it waits for their
    // commit, too.
    return { tell: () => reject(error), reject };
  }
}

/** Returns the error of a member that was rolled back with another one. It may be retried. */
function lost(error: unknown): StoreProblem {
  if (error instanceof StoreProblem) return error;
  const why = error instanceof Error ? error.message : String(error);
  const detail = `a group of transactions was rolled back: ${why}`;
  return new StoreProblem("io", "", { detail });
}
