// A process's store with faults: the process can die, pause or wait at an operation, and the disk can be
// full. Each statement, read and commit is an operation. A process can die before or after each of them. From
// then on its operations never end, and its uncommitted writes are rolled back. A commit that succeeded is
// kept, even if the process dies before the answer.

import { type KyselyPlugin, type OperationNode, type RootOperationNode, TableNode } from "kysely";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import type { VirtualTime } from "./time.ts";

/** Thrown into a pending operation when its process dies. */
export class Dead extends Error {}

/**
 * The kind of a point between two operations: any, directly before a commit, or directly after it and
 * before its answer.
 */
export type FaultPoint = "operation" | "commit" | "committed";

export interface DeathPlan {
  readonly place: FaultPoint;
  /** The process dies at the point with this number, counted among the points of that kind. */
  readonly count: number;
  /** Counts only commits of transactions that wrote into this table. */
  readonly table?: string;
}

export interface FaultPlan {
  /** The point at which the process dies. If absent, it does not die. */
  readonly dieAt?: DeathPlan;
  /** Returns the delay at a point in ms. 0 means no delay. */
  delayMs(place: FaultPoint): number;
  /** Called for each operation. */
  passed(): void;
  /** Returns true if the disk is full. Called for each statement of a transaction and for each commit. */
  isFull(): boolean;
  /** Returns true if the answer to a commit is lost. Called after each commit. */
  losesAnswer(): boolean;
}

export class ProcessFaults {
  /** Number of operations so far. */
  operations = 0;
  commits = 0;
  /** Number of operations that have begun and not ended. */
  underWay = 0;
  /**
   * The last time at which the store refused an operation or an answer was lost. A later pause moves it on,
   * because the process can repair nothing while it is paused.
   */
  refusedAt = Number.NEGATIVE_INFINITY;
  readonly #plan: FaultPlan;
  readonly #time: VirtualTime;
  readonly #kill: () => void;
  /** Number of points that were passed so far, of the kind at which the process dies. */
  #passed = 0;
  #dead = false;
  #pause: PromiseWithResolvers<void> | undefined;
  #pausedAt = 0;

  /** Creates the faults. `kill` closes the process's connection. */
  constructor(plan: FaultPlan, time: VirtualTime, kill: () => void) {
    this.#plan = plan;
    this.#time = time;
    this.#kill = kill;
  }

  get dead(): boolean {
    return this.#dead;
  }

  die(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#kill();
  }

  pause(): void {
    if (this.#pause !== undefined) return;
    this.#pause = Promise.withResolvers();
    this.#pausedAt = this.#time.now();
  }

  resume(): void {
    if (this.#pause === undefined) return;
    this.#pause.resolve();
    this.#pause = undefined;
    this.refusedAt += this.#time.now() - this.#pausedAt;
  }

  /** Returns the store with these faults. */
  wrap(store: Store): Store {
    return {
      ...store,
      db: store.db.withPlugin(this.#plugin()),
      transaction: async <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
        this.underWay += 1;
        await this.#pass("operation");
        try {
          const tables = new Set<string>();
          const value = await store.transaction(async (tx) => {
            const result = await work(tx.withPlugin(this.#plugin(tables)));
            await this.#pass("commit", tables);
            this.#refuse();
            return result;
          });
          this.commits += 1;
          await this.#pass("committed", tables);
          if (this.#plan.losesAnswer()) {
            this.refusedAt = this.#time.now();
            throw new StoreProblem("unreachable", "the store of the story", { inDoubt: true });
          }
          return value;
        } catch (error) {
          // A dead process gets no result.
          if (this.#dead) await forever();
          throw error;
        } finally {
          this.underWay -= 1;
        }
      },
    };
  }

  /**
   * Returns a plugin that makes statements fail. `tables`: collects the tables into which a transaction
   * writes.
   */
  #plugin(tables?: Set<string>): KyselyPlugin {
    return {
      transformQuery: ({ node }) => {
        if (this.#dead) throw new Dead("the process is dead");
        if (tables === undefined) return node;
        this.#refuse();
        const table = writtenBy(node);
        if (table !== undefined) tables.add(table);
        return node;
      },
      transformResult: async ({ result }) => {
        this.underWay += 1;
        await this.#pass("operation");
        this.underWay -= 1;
        return result;
      },
    };
  }

  #refuse(): void {
    if (!this.#plan.isFull()) return;
    this.refusedAt = this.#time.now();
    throw new StoreProblem("full", "the store of the story");
  }

  /**
   * Passes a point: may delay, pause or kill the process. `tables`: the tables into which the commit
   * writes.
   */
  async #pass(place: FaultPoint, tables?: ReadonlySet<string>): Promise<void> {
    this.operations += 1;
    this.#plan.passed();
    const { dieAt } = this.#plan;
    const counts =
      dieAt !== undefined &&
      (dieAt.place === "operation" || dieAt.place === place) &&
      (dieAt.table === undefined || tables?.has(dieAt.table) === true);
    if (counts) this.#passed += 1;
    if (counts && this.#passed === dieAt.count) this.die();
    if (this.#dead) await forever();
    const ms = this.#plan.delayMs(place);
    if (ms > 0) await this.#time.pass(ms);
    while (this.#pause !== undefined) await this.#pause.promise;
    if (this.#dead) await forever();
  }
}

function nameOf(node: OperationNode | undefined): string | undefined {
  return node !== undefined && TableNode.is(node) ? node.table.identifier.name : undefined;
}

/** Returns the table into which a statement of the query builder writes. */
function writtenBy(node: RootOperationNode): string | undefined {
  switch (node.kind) {
    case "InsertQueryNode":
      return node.into?.table.identifier.name;
    case "UpdateQueryNode":
      return nameOf(node.table);
    case "DeleteQueryNode":
      return nameOf(node.from.froms[0]);
    default:
      return undefined;
  }
}

function forever(): Promise<never> {
  return new Promise(() => {});
}
