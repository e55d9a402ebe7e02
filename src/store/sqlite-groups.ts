// Owns how transactions of the embedded store share a commit: those that are ready at once are one
// transaction of the database, written and synced together.
// SG1: a transaction's promise settles after the commit that carries it, so that nobody is told of what is
//      not on disk (I2).
// SG2: transactions run one after the other, in the order of asking; one that fails undoes its own part only.
// SG3: where the database gives up the whole group (full disk, I/O error), or its commit fails, no member
//      of it is told that it succeeded.
// SG4: a group waits for nobody: it is what had been asked for by the time when it is its turn.

import { StoreProblem } from "./problems.ts";
import type { Store, Tx } from "./sql.ts";
import type { TransactionConnection } from "./transaction.ts";

/** Transactions that share a commit, at most: so many wait for each other. */
const GROUP_MAX = 32;

export interface GroupConnection extends TransactionConnection {
  begin(): void;
  /** Resolves once other work has had its turn. Undefined: that is not due. */
  rest(): Promise<void> | undefined;
  /** Fails where the database has given up the transaction by itself. */
  commit(): void;
  rollback(): void;
  /** Opens a part of the transaction, and takes it into the whole. */
  savepoint(): void;
  keepPart(): void;
  /** Undoes the open part. Fails where the database has given up the whole transaction by itself. */
  undoPart(): void;
}

interface Member {
  run(): Promise<() => void>;
  reject(error: unknown): void;
}

/** Functions that are called around a group. */
export interface GroupHooks {
  /** Lets everything ask that is about to. Default: who asked in the same step is all. */
  readonly gather?: (() => Promise<void>) | undefined;
  /** A group was committed. Must not throw. */
  readonly committed?: () => void;
}

interface GroupParts extends GroupHooks {
  readonly connection: GroupConnection;
  /** A transaction for one piece of work, and what makes it take no further statement. */
  readonly open: () => { readonly tx: Tx; readonly end: () => void };
}

async function gathered({ gather }: GroupParts): Promise<void> {
  try {
    await gather?.();
  } catch {
    // Without it the group is smaller, and nothing else.
  }
}

/** Runs transactions in groups, on a connection that nobody else writes by. */
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
  /** Told once the group is on disk. */
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
      connection.commit();
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

/** Alone it needs no part to be undone: all of it is. Undefined: it failed, and there is no group yet. */
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

/** Throws where it has cost the others their transaction. */
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
    // It may have failed for what the others wrote, and they are not on disk yet.
    return { tell: () => reject(error), reject };
  }
}

/** What a member of a group is told that was lost with another one: it may be tried again. */
function lost(error: unknown): StoreProblem {
  if (error instanceof StoreProblem) return error;
  const why = error instanceof Error ? error.message : String(error);
  const detail = `a group of transactions was given up: ${why}`;
  return new StoreProblem("io", "", { detail });
}
