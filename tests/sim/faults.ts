// Owns the store as one process has it: where the process dies, stands still, waits, or finds the disk full.
// FT1: each statement, read and commit is an operation. A process can die before or after any of them; from then on
//      nothing of it happens any more: its next step never ends, and what it had not committed is undone.
// FT2: a commit that was made is kept, also when the process dies before it hears of it.

import { type KyselyPlugin, type OperationNode, type RootOperationNode, TableNode } from "kysely";
import { StoreProblem } from "../../src/store/problems.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import type { VirtualTime } from "./time.ts";

/** Thrown into what was on its way to the store when its process died. */
export class Dead extends Error {}

/** Places between two steps: anywhere, just before a commit, or after it and before anybody hears of it. */
export type Place = "operation" | "commit" | "committed";

export interface DeathPlan {
  readonly place: Place;
  /** At which place of this kind. */
  readonly count: number;
  /** Counts only commits of transactions that wrote into this table. */
  readonly table?: string;
}

export interface FaultPlan {
  /** Where the process dies. Default: nowhere. */
  readonly dieAt?: DeathPlan;
  /** How long it takes to get past a place, asked for each; 0: no time at all. */
  delayMs(place: Place): number;
  /** Told of each operation. */
  passed(): void;
  /** Whether the disk is full at this moment, asked at each statement of a transaction and at each commit. */
  isFull(): boolean;
  /** Whether the answer to a commit is lost, asked after each. */
  losesAnswer(): boolean;
}

export class ProcessFaults {
  /** Operations so far. */
  operations = 0;
  commits = 0;
  /** Operations that have begun and not ended. */
  underWay = 0;
  /** When the store last refused something, or an answer of it was lost. */
  refusedAt = Number.NEGATIVE_INFINITY;
  readonly #plan: FaultPlan;
  readonly #time: VirtualTime;
  readonly #kill: () => void;
  /** Places so far of the kind at which it is to die. */
  #passed = 0;
  #dead = false;
  #pause: PromiseWithResolvers<void> | undefined;

  /** `kill`: takes the process's connection away. */
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
    this.#pause ??= Promise.withResolvers();
  }

  resume(): void {
    this.#pause?.resolve();
    this.#pause = undefined;
  }

  /** The store with these faults in it. */
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
          // Nobody is there any more to be told.
          if (this.#dead) await forever();
          throw error;
        } finally {
          this.underWay -= 1;
        }
      },
    };
  }

  /** `tables`: of a transaction; the tables that it writes into are noted there. */
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

  /** `tables`: what the transaction wrote into that is, or was, to be committed. */
  async #pass(place: Place, tables?: ReadonlySet<string>): Promise<void> {
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

/** The table that a statement of the query builder changes. */
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
