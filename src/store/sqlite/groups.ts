// Lets transactions of the embedded store share a commit. Transactions that are queued at the same time
// become one database transaction, which is written and synced once.
// SG1: a transaction's promise settles after the commit that contains it, so nobody sees a result that is not
//      on disk (I2).
// SG2: transactions run one after the other, in the order of the calls. If one fails, only its own changes
//      are undone.
// SG3: if the database rolls back the whole group (full disk, I/O error) or the commit fails, all members of
//      the group fail.
// Work for the end of a transaction (`atCommit`) runs before the commit of the group, for all its members.
// SG4: a running group does not wait for more members. It ends when no further transaction is queued, or when
//      it has `GROUP_MAX` members.

import { StoreProblem } from "../problems.ts";
import type { Store, Tx } from "../sql.ts";
import { type LastWork, notesOf, type TransactionConnection } from "../transaction.ts";

/**
 * Maximum number of transactions that share a commit. It is limited because each member waits for the whole
 * group.
 */
const GROUP_MAX = 32;

export interface GroupConnection extends TransactionConnection {
  begin(): void;
  /** Lets other work run, and resolves afterwards. Undefined if no pause is due. */
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
  run(): Promise<Ended>;
  reject(error: unknown): void;
}

/**
 * Outcome of a member that has run. `tell` settles the member's promise; it is called once the group is on
 * disk.
 */
interface Ended {
  tell(): void;
  readonly last: readonly LastWork[];
}

export interface GroupHooks {
  /** Called before a group begins, so that more callers can queue. If absent, the group begins at once. */
  readonly gather?: (() => Promise<void>) | undefined;
  /** Called after a group was committed. Must not throw. */
  readonly onCommitted?: () => void;
}

interface GroupParts extends GroupHooks {
  readonly connection: GroupConnection;
  /** Opens the transaction of one member. After `end` it refuses further statements. */
  readonly open: () => { readonly tx: Tx; readonly end: () => void };
}

/** Runs transactions in groups. Nothing else may write through the connection. */
export function groupedTransactions(parts: GroupParts): Store["transaction"] {
  const waiting: Member[] = [];
  let isBusy = false;
  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      // After a failure the group contains fewer members, which does no harm.
      await parts.gather?.().catch(() => {});
      await runGroup(parts, waiting);
    }
    isBusy = false;
  };
  return (task) =>
    new Promise((resolve, reject) => {
      const run = async (): Promise<Ended> => {
        const { tx, end } = parts.open();
        const last = notesOf(tx);
        try {
          const value = await task(tx);
          return { tell: () => resolve(value), last };
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

/** A member that has run. `reject` rejects the member's promise if the group fails. */
interface Done extends Ended {
  reject(error: unknown): void;
}

async function runLast({ open }: GroupParts, done: readonly Done[]): Promise<void> {
  const { tx, end } = open();
  try {
    for (const { last } of done) for (const work of last) await work(tx);
  } finally {
    end();
  }
}

async function runGroup(parts: GroupParts, waiting: Member[]): Promise<void> {
  const { connection, onCommitted } = parts;
  const done: Done[] = [];
  try {
    for (let count = 0; count < GROUP_MAX; count += 1) {
      const member = waiting.shift();
      if (member === undefined) break;
      const one = await (done.length === 0 ? runFirst : runPart)(connection, member);
      if (one !== undefined) done.push(one);
    }
    if (done.length > 0) {
      await runLast(parts, done);
      await connection.rest();
      await connection.commit();
      onCommitted?.();
      await connection.rest();
    }
  } catch (error) {
    connection.rollback();
    for (const { reject } of done) reject(done.length === 1 ? error : describeLoss(error));
    return;
  }
  for (const { tell } of done) tell();
}

/**
 * Runs the first member without a savepoint. If it fails, rolls back the whole transaction, and returns
 * undefined because the group then has no member.
 */
async function runFirst(connection: GroupConnection, member: Member): Promise<Done | undefined> {
  const { reject } = member;
  try {
    connection.begin();
    return { ...(await member.run()), reject };
  } catch (error) {
    connection.rollback();
    reject(error);
    return undefined;
  }
}

/**
 * Runs a further member in a savepoint. Throws if the member's failure made the database roll back the whole
 * group.
 */
async function runPart(connection: GroupConnection, member: Member): Promise<Done> {
  const { reject } = member;
  try {
    connection.savepoint();
    const ended = await member.run();
    connection.keepPart();
    return { ...ended, reject };
  } catch (error) {
    try {
      connection.undoPart();
    } catch {
      reject(error);
      throw describeLoss(error);
    }
    // The member may have failed because of uncommitted rows of other members, so the error is reported only
    // after their commit.
    return { tell: () => reject(error), last: [], reject };
  }
}

/**
 * Returns the error for members that were rolled back only because another member failed. They may be
 * retried.
 */
function describeLoss(error: unknown): StoreProblem {
  if (error instanceof StoreProblem) return error;
  const why = error instanceof Error ? error.message : String(error);
  const detail = `a group of transactions was rolled back: ${why}`;
  return new StoreProblem("io", "", { detail });
}
