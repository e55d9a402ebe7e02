// Owns the state of the session list: what was read from the gateway, which rows are expanded, and whether
// rows may move now.
// - If the filter has changed or the connection was lost, answers to earlier requests are ignored.
// - Events are collected, and the changed rows are read together. Hundreds of rows are drawn at once.
// - While the pointer is over a row, rows change in place, and no row moves (`hold`).

import { effect, signal, untracked } from "@preact/signals";
import type { ListedRow, ParamsOf, PayloadOf } from "../../../src/contract/client/web.ts";
import { optional } from "../../../src/core/optional.ts";
import { after, batched } from "../clock.ts";
import { listSessions, on, stage, whenConnected } from "../gateway.ts";
import { learnNames } from "../parts/names.ts";
import { filter, queries } from "../route.ts";
import { Forest, type ForestLine, TOP } from "./forest.ts";
import { isFiltered, queryOf, type Wish, wish, wishOf } from "./wish.ts";

/**
 * Number of rows in a page. Also the maximum number for the first page when it replaces all loaded rows of a
 * branch.
 */
const PAGE_ROWS = 100;
const AGAIN_ROWS_MAX = 1_000;
/** Maximum number of keys in one request, a limit of the gateway. */
const KEYS_MAX = 200;
/** Changed sessions that are read one by one. If there are more, reading the list again is quicker. */
const NEWS_MAX = 2_000;
const BATCH_MS = 250;
const KEPT_ROWS_MAX = 300;
const HELD_MS = 2_500;
/** Delay between an event and reading the counts beside the filters. */
const COUNTS_MS = 2_000;
/** Maximum number of ancestors of the open session that are read. It is larger than any spawn depth. */
const LEVELS_MAX = 8;

type Counts = NonNullable<PayloadOf<"sessions.list">["counts"]>;

/** `moved`: rows may have moved since it was last drawn. `loading`: nothing was read yet. */
interface Picture {
  readonly lines: readonly ForestLine[];
  readonly moved: boolean;
  readonly loading?: boolean;
}

const UNREAD: Picture = { lines: [], moved: false, loading: true };

export const picture = signal<Picture>(UNREAD);
/** Number of sessions that match each filter. */
export const counts = signal<Counts | undefined>(undefined);
/** Number of rows that will move, appear or disappear when rows may move again. */
export const unsettled = signal(0);

const open = new Set<string>();
const isFlat = (): boolean => wish.value.shape === "list" || isFiltered.value;
let forest = new Forest(isFlat());
/** Incremented when the list is cleared or read again, so that answers to earlier requests are ignored. */
let generation = 0;
const news = new Set<string>();
let isReadingNews = false;
/** The open session, until its ancestors are expanded or a person has collapsed a row. */
let opening: string | undefined;
/** Reasons why rows must stay in place, for example that the pointer is over them. */
const holders = new Set<string>();

function draw(moved: boolean): void {
  const top = forest.branch(TOP);
  // Keep the old rows visible until the first page of the new list arrives.
  if (top?.busy === true && top.keys.length === 0 && picture.value.lines.length > 0) return;
  unsettled.value = forest.unsettled();
  picture.value = { lines: forest.lines((key) => open.has(key)), moved };
}

function filters(): ParamsOf<"sessions.list"> {
  const { search, only, kind, agentId, archived } = wish.value;
  return optional({
    only: only || undefined,
    search: search.trim() || undefined,
    kinds: kind === "" ? undefined : [kind],
    agentId: agentId || undefined,
    includeArchived: archived,
  });
}

function pageOf(parent: string, cursor: string | undefined, limit: number): ParamsOf<"sessions.list"> {
  const at = optional({ limit, cursor });
  if (forest.flat) return { ...filters(), includeChildren: true, ...at };
  const which = parent === TOP ? { roots: true } : { spawnedBy: parent };
  return { ...which, includeChildren: true, includeArchived: wish.value.archived, ...at };
}

/** Reads the next page of a branch. `anew`: reads from the start, and at least as many rows as are shown. */
export async function readBranch(parent: string, anew = false): Promise<void> {
  const [mine, target] = [generation, forest];
  const { busy, keys, cursor } = target.branch(parent) ?? {};
  if (busy === true && !anew) return;
  const limit = anew ? Math.min(Math.max(PAGE_ROWS, keys?.length ?? 0), AGAIN_ROWS_MAX) : PAGE_ROWS;
  const includeCounts = parent === TOP && anew;
  target.mark(parent, { busy: true });
  try {
    const place = pageOf(parent, anew ? undefined : cursor, limit);
    const page = await listSessions({ ...place, includeCounts });
    if (mine !== generation) return;
    if (includeCounts) counts.value = page.counts;
    target.add(parent, page, anew);
    learnNames(page.sessions);
  } catch (problem) {
    if (mine !== generation) return;
    target.mark(parent, { busy: false, problem });
  }
  draw(anew);
}

export type FirstRows = Pick<PayloadOf<"sessions.list">, "sessions" | "counts" | "nextCursor">;

/** Returns the beginning of the tree. Undefined if another or a very long list is shown. */
export function shownRows(): FirstRows | undefined {
  const { keys = [], cursor } = forest.branch(TOP) ?? {};
  if (queryOf(wish.value) !== "" || keys.length === 0 || keys.length > KEPT_ROWS_MAX) return undefined;
  const sessions = keys.flatMap((key) => forest.row(key) ?? []);
  return { sessions, ...optional({ counts: counts.value, nextCursor: cursor }) };
}

/** Shows the beginning of the unfiltered tree, which was read before the connection was open. */
export function showFirstRows(page: FirstRows): void {
  if (queryOf(wish.value) !== "") return;
  counts.value = page.counts;
  forest.add(TOP, page, true);
  learnNames(page.sessions);
  draw(true);
}

/** Reads changed rows, and notes that their parents have changed, too, because they count their children. */
async function readRows(keys: readonly string[]): Promise<void> {
  const [mine, target] = [generation, forest];
  const chosen = target.flat ? filters() : { includeArchived: wish.value.archived };
  const request = { ...chosen, includeChildren: true, keys, limit: KEYS_MAX };
  // If the connection was lost, everything is read again after the reconnect.
  const page = await listSessions(request).catch(() => undefined);
  if (page === undefined || mine !== generation) return;
  for (const row of [...keys.map((key) => target.row(key)), ...page.sessions]) {
    const parent = row?.spawnedBy;
    // A parent that is not loaded may be below a row that is.
    if (parent !== undefined && (!target.flat || target.row(parent) !== undefined)) news.add(parent);
  }
  learnNames(page.sessions);
  if (target.learn(keys, page.sessions)) void readBranch(TOP, true);
  const held = holders.size > 0;
  if (!held) target.settle();
  draw(!held);
}

const readNews = batched(BATCH_MS, async () => {
  // Send only one request at a time. Otherwise an older answer about a row could be applied after a newer
  // one.
  if (isReadingNews || news.size === 0) return;
  if (news.size > NEWS_MAX) return readAgain();
  const keys = [...news].slice(0, KEYS_MAX);
  for (const key of keys) news.delete(key);
  isReadingNews = true;
  await readRows(keys).finally(() => {
    isReadingNews = false;
  });
  readNews();
});

const readCounts = batched(COUNTS_MS, async () => {
  const mine = generation;
  const page = await listSessions({ keys: [], includeCounts: true }).catch(() => undefined);
  if (page !== undefined && mine === generation) counts.value = page.counts;
});

/** Reads all visible rows again, because events were missed while the connection was lost. */
function readAgain(): void {
  generation++;
  news.clear();
  for (const parent of [...forest.branches()]) {
    if (parent === TOP || open.has(parent)) void readBranch(parent, true);
    else forest.drop(parent);
  }
  if (forest.branch(TOP) === undefined) void readBranch(TOP, true);
  void openAbove();
}

async function beginAnew(): Promise<void> {
  generation++;
  news.clear();
  forest = new Forest(isFlat());
  const read = readBranch(TOP, true);
  draw(false);
  void openAbove();
  await read;
}

/** Resolves when the first rows that fit were read. */
export async function want(change: Partial<Wish>): Promise<void> {
  wish.value = { ...wish.value, ...change };
  filter("sessions", queryOf(wish.value));
  await beginAnew();
}

/** Expands or collapses a session, so that its children are shown or hidden. */
export function toggle(key: string, isOpen: boolean): void {
  if (isOpen) open.add(key);
  else {
    open.delete(key);
    opening = undefined;
  }
  draw(false);
}

/** Expands the ancestors of a session, so that it is visible in the tree. */
export function reveal(key: string | undefined): void {
  opening = key;
  void openAbove();
}

async function openAbove(): Promise<void> {
  const [mine, key] = [generation, opening];
  const above: string[] = [];
  let at = key;
  while (at !== undefined && above.length < LEVELS_MAX) {
    const row: ListedRow | undefined = forest.row(at) ?? (await readRow(at));
    if (mine !== generation || opening !== key) return;
    at = row?.spawnedBy;
    if (at === undefined || above.includes(at)) break;
    above.push(at);
  }
  if (key === undefined || forest.flat) return;
  opening = undefined;
  for (const one of above) {
    open.add(one);
    // Read the branch here, because it may not be visible, and only visible branches are read automatically.
    if (forest.branch(one) === undefined) void readBranch(one);
  }
  draw(false);
}

async function readRow(key: string): Promise<ListedRow | undefined> {
  const page = await listSessions({ keys: [key], includeArchived: true }).catch(() => undefined);
  return page?.sessions[0];
}

/** Keeps the rows in place until `letGo` is called for the same reason. */
export function hold(reason: "pointer" | "use"): void {
  holders.add(reason);
}

export function letGo(reason: "pointer" | "use"): void {
  if (holders.delete(reason) && holders.size === 0) showNews();
}

let endUse = (): void => {};

/** Keeps the rows in place for a time after a key press, a touch or a scroll. */
export function holdForUse(): void {
  endUse();
  hold("use");
  endUse = after(HELD_MS, () => letGo("use"));
}

/** Moves the rows now, even if they should be kept in place. */
export function showNews(): void {
  if (forest.unsettled() === 0) return;
  forest.settle();
  draw(true);
}

/** Handles events of the gateway while the list is shown. Returns a function that ends this. */
export function follow(): () => void {
  const ends = [
    on("sessions", ({ key }) => {
      news.add(key);
      readNews();
      readCounts();
    }),
    whenConnected(readAgain),
  ];
  return () => {
    for (const end of [...ends, endUse]) end();
    holders.clear();
    generation++;
  };
}

// Apply the filters of the address when a link or the history changes it.
effect(() => {
  const text = queries.sessions.value;
  untracked(() => {
    if (text === queryOf(wish.value)) return;
    wish.value = wishOf(text);
    if (stage.value.kind === "signed-in") void beginAnew();
    else forest = new Forest(isFlat());
  });
});

// Clear the list when the reader signs out, so that the next reader does not see it.
let wasIn = false;
effect(() => {
  const { kind } = stage.value;
  const left = wasIn && kind === "signed-out";
  wasIn = kind === "signed-in";
  if (!left) return;
  untracked(() => {
    open.clear();
    wish.value = wishOf("");
    filter("sessions", "");
    forest = new Forest(false);
    counts.value = undefined;
    picture.value = UNREAD;
  });
});
