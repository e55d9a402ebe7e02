// Owns the order and depth of the loaded sessions in the list, as branches of a tree. Pure: this file uses
// neither the time nor the gateway.
// FO1: the newest row of a branch comes first. New data of a row is shown immediately, but the row's position
//      changes only in `settle`, so that rows do not move under the pointer.
// FO2: a row is shown once. If it is older than all loaded rows of its branch, it is shown only when its page
//      is loaded.
// FO3: a deleted row keeps its position, marked as deleted, until `settle`.

import type { ListedRow } from "../../../src/contract/client/web.ts";

/** Key of the top branch, which contains the sessions without a parent. */
export const TOP = "";
/** Maximum depth of the tree. It is larger than any spawn depth, and ends a cycle in damaged data. */
const DEPTH_MAX = 32;

interface Branch {
  readonly keys: readonly string[];
  /** Cursor of the next page. Absent if all pages were read. */
  readonly cursor?: string | undefined;
  readonly busy: boolean;
  readonly problem?: unknown;
}

export type ForestLine =
  | {
      readonly kind: "row";
      readonly key: string;
      readonly row: ListedRow;
      /** Depth of the row; 1 at the top. */
      readonly level: number;
      readonly parent: string;
      /** Position of the row in its branch; 1 for the first row. */
      readonly position: number;
      /** Number of rows in the row's branch, or -1 if that is not known, because not all rows were read. */
      readonly size: number;
      /** True if the row's children are shown. Undefined if the row has no children. */
      readonly open: boolean | undefined;
      readonly gone: boolean;
    }
  | {
      /** The end of the loaded rows of a branch. The next page will be shown here. */
      readonly kind: "more";
      readonly key: string;
      readonly level: number;
      readonly parent: string;
      readonly problem?: unknown;
    };

export type RowLine = Extract<ForestLine, { kind: "row" }>;

interface Page {
  readonly sessions: readonly ListedRow[];
  readonly nextCursor?: string | undefined;
}

function isNewer(a: ListedRow, b: ListedRow): boolean {
  return a.updatedAt === b.updatedAt ? a.key > b.key : a.updatedAt > b.updatedAt;
}

interface Loaded {
  readonly row: ListedRow;
  /** Key of the branch that contains the row. Undefined if `settle` has still to add it. */
  readonly place: string | undefined;
  /** `settle` moves a row that was touched, and removes one that is gone. */
  readonly state: "settled" | "touched" | "gone";
}

export class Forest {
  /** True if all rows are in one branch, as the matches of a search are. */
  readonly flat: boolean;
  readonly #loaded = new Map<string, Loaded>();
  readonly #branches = new Map<string, Branch>();

  constructor(flat: boolean) {
    this.flat = flat;
  }

  row(key: string | undefined): ListedRow | undefined {
    return this.#loaded.get(key ?? "")?.row;
  }

  branch(parent: string): Branch | undefined {
    return this.#branches.get(parent);
  }

  branches(): IterableIterator<string> {
    return this.#branches.keys();
  }

  /** Notes that a branch is being read, or why it could not be read. */
  mark(parent: string, state: { readonly busy: boolean; readonly problem?: unknown }): void {
    const { keys = [], cursor } = this.#branches.get(parent) ?? {};
    this.#branches.set(parent, { keys, cursor, ...state });
  }

  /** Adds the next page of a branch. `anew`: the page replaces all loaded rows of the branch. */
  add(parent: string, page: Page, anew: boolean): void {
    const before = this.#branches.get(parent)?.keys ?? [];
    if (anew) for (const key of before) this.#loaded.delete(key);
    const keys = anew ? [] : [...before];
    for (const row of page.sessions) {
      const place = this.#loaded.get(row.key)?.place;
      this.#loaded.set(row.key, { row, place: place ?? parent, state: "settled" });
      if (place === undefined) keys.push(row.key);
    }
    this.#branches.set(parent, { keys, cursor: page.nextCursor, busy: false });
  }

  drop(parent: string): void {
    const { keys = [] } = this.#branches.get(parent) ?? {};
    this.#branches.delete(parent);
    for (const key of keys) {
      this.drop(key);
      this.#loaded.delete(key);
    }
  }

  /**
   * Applies rows that were read. `asked`: the keys that were requested; one that was not found is deleted.
   * Returns true if the children of a deleted session may now belong to the top branch.
   */
  learn(asked: readonly string[], found: readonly ListedRow[]): boolean {
    const there = new Set(found.map((row) => row.key));
    for (const row of found) {
      const place = this.#loaded.get(row.key)?.place;
      if (place !== undefined || this.#branches.has(this.#homeOf(row)))
        this.#loaded.set(row.key, { row, place, state: "touched" });
    }
    let orphans = false;
    for (const key of asked) {
      const known = this.#loaded.get(key);
      if (there.has(key) || known === undefined) continue;
      this.#loaded.set(key, { ...known, state: "gone" });
      orphans ||= !this.flat && (known.row.children ?? 0) > 0;
    }
    return orphans;
  }

  /** Returns the number of rows that `settle` would move, add or remove. */
  unsettled(): number {
    return this.#changed().filter((one) => one.state === "gone" || this.#wouldMove(one)).length;
  }

  /** Moves changed rows to their current position, and removes deleted rows. */
  settle(): void {
    const changed = this.#changed();
    for (const { row, place } of changed) this.#takeOut(row.key, place);
    for (const { row, state } of changed) {
      if (state === "touched") continue;
      this.drop(row.key);
      this.#loaded.delete(row.key);
    }
    for (const { row, place } of changed) if (this.#loaded.has(row.key)) this.#putIn(row, place);
  }

  /** Returns the visible lines, from top to bottom. */
  lines(isOpen: (key: string) => boolean): ForestLine[] {
    const lines: ForestLine[] = [];
    this.#draw(TOP, 1, isOpen, lines);
    return lines;
  }

  #draw(parent: string, level: number, isOpen: (key: string) => boolean, lines: ForestLine[]): void {
    const branch = this.#branches.get(parent);
    const { keys = [], cursor, problem } = branch ?? {};
    const isRead = branch !== undefined && (!branch.busy || keys.length > 0);
    const isWhole = isRead && cursor === undefined && problem === undefined;
    keys.forEach((key, index) => {
      const known = this.#loaded.get(key);
      if (known === undefined) return;
      const { row } = known;
      const hasChildren = (row.children ?? 0) > 0 || (this.#branches.get(key)?.keys.length ?? 0) > 0;
      const open = hasChildren && !this.flat && level < DEPTH_MAX ? isOpen(key) : undefined;
      const size = isWhole ? keys.length : -1;
      const gone = known.state === "gone";
      lines.push({ kind: "row", key, row, level, parent, position: index + 1, size, open, gone });
      if (open === true) this.#draw(key, level + 1, isOpen, lines);
    });
    if (!isWhole) lines.push({ kind: "more", key: `more of ${parent}`, level, parent, problem });
  }

  #changed(): Loaded[] {
    return [...this.#loaded.values()].filter(({ state }) => state !== "settled");
  }

  /** Returns the key of a row's branch. A loaded child stays where it is, also without its parent. */
  #homeOf({ key, spawnedBy }: ListedRow): string {
    if (this.flat || spawnedBy === undefined) return TOP;
    return this.#loaded.get(key)?.place ?? spawnedBy;
  }

  #wouldMove({ row, place }: Loaded): boolean {
    if (place === undefined) return this.#isRead(row);
    const keys = this.#branches.get(place)?.keys ?? [];
    const at = keys.indexOf(row.key);
    const [above, below] = [this.row(keys[at - 1]), this.row(keys[at + 1])];
    return (above !== undefined && isNewer(row, above)) || (below !== undefined && isNewer(below, row));
  }

  /** Returns whether a row belongs to the loaded part of its branch, and not to a later page (FO2). */
  #isRead(row: ListedRow): boolean {
    const { keys, cursor } = this.#branches.get(this.#homeOf(row)) ?? {};
    const last = this.row(keys?.at(-1));
    return keys !== undefined && (cursor === undefined || last === undefined || isNewer(row, last));
  }

  #takeOut(key: string, place: string | undefined): void {
    const branch = this.#branches.get(place ?? "");
    if (place === undefined || branch === undefined) return;
    this.#branches.set(place, { ...branch, keys: branch.keys.filter((one) => one !== key) });
  }

  #putIn(row: ListedRow, place: string | undefined): void {
    const { key } = row;
    const home = this.#homeOf(row);
    const branch = this.#branches.get(home);
    if (branch === undefined || (place === undefined && !this.#isRead(row))) {
      this.#loaded.delete(key);
      return;
    }
    const at = branch.keys.findIndex((one) => {
      const other = this.row(one);
      return other !== undefined && isNewer(row, other);
    });
    const keys = branch.keys.toSpliced(at === -1 ? branch.keys.length : at, 0, key);
    this.#branches.set(home, { ...branch, keys });
    this.#loaded.set(key, { row, place: home, state: "settled" });
  }
}
