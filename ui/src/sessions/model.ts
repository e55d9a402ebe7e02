// Owns what the reader of the session list sees and does: what is read from the gateway and when, what of it
// is open, and whether rows may move now.
// SM1: what was asked before a filter changed, or before the connection broke, counts for nothing any more.
// SM2: news are gathered for a moment and read together; an answer of hundreds of rows is drawn once.
// SM3: while somebody aims at a row, rows change where they are and none moves (`hold`); what waits is
//      counted.

import { computed, effect, signal } from "@preact/signals";
import { optional } from "../../../src/core/optional.ts";
import type { ListedRow, ParamsOf } from "../../../src/gateway/client/web.ts";
import { after, batched } from "../clock.ts";
import { ask, on, stage, whenConnected } from "../gateway.ts";
import { Forest, type Line, TOP } from "./forest.ts";

/** Rows of one page, and of the first one that replaces what was read before. */
const PAGE_ROWS = 100;
const AGAIN_ROWS_MAX = 1_000;
/** Rows asked for by name in one question: the gateway's limit. */
const KEYS_MAX = 200;
/** News of so many sessions at once: it is quicker to read what is shown anew. */
const NEWS_MAX = 2_000;
const BATCH_MS = 250;
/** How far up the spawners of a session are looked for: beyond any spawn depth. */
const LEVELS_MAX = 8;

type SessionKind = NonNullable<ParamsOf<"sessions.list">["kinds"]>[number];

/** What the reader wants to see. */
export interface Wish {
  readonly shape: "tree" | "list";
  readonly search: string;
  readonly kind: SessionKind | "";
  readonly agentId: string;
  readonly archived: boolean;
}

const FIRST_WISH: Wish = { shape: "tree", search: "", kind: "", agentId: "", archived: false };

export const wish = signal<Wish>(FIRST_WISH);
/** True while a search or a filter picks sessions out: matches stand in one list, wherever they hang. */
export const isFiltered = computed(() => {
  const { search, kind, agentId } = wish.value;
  return search.trim() !== "" || kind !== "" || agentId !== "";
});

/** The list as it is drawn. `moved`: rows may have changed their places since the last one. */
interface Picture {
  readonly lines: readonly Line[];
  readonly moved: boolean;
}

export const picture = signal<Picture>({ lines: [], moved: false });
/** Rows that will move, come or go once nobody aims at any. */
export const unsettled = signal(0);

const open = new Set<string>();
let forest = new Forest(false);
/** Rises with every new beginning (SM1). */
let generation = 0;
const news = new Set<string>();
let isReadingNews = false;
/** The session that the reader looks at. */
let revealed: string | undefined;
/** Who holds the rows in their places: a pointer above them, keys pressed a moment ago. */
const holders = new Set<string>();

function draw(moved: boolean): void {
  const top = forest.branch(TOP);
  // What was there before stays until the first page of what comes instead.
  if (top?.busy === true && top.keys.length === 0 && picture.value.lines.length > 0) return;
  unsettled.value = forest.unsettled();
  picture.value = { lines: forest.lines((key) => open.has(key)), moved };
}

function filters(): Pick<ParamsOf<"sessions.list">, "kinds" | "agentId" | "search" | "includeArchived"> {
  const { search, kind, agentId, archived } = wish.value;
  return optional({
    search: search.trim() || undefined,
    kinds: kind === "" ? undefined : [kind],
    agentId: agentId || undefined,
    includeArchived: archived,
  });
}

/** The question for a page of a branch. */
function pageOf(parent: string, cursor: string | undefined, limit: number): ParamsOf<"sessions.list"> {
  const at = optional({ limit, cursor });
  if (forest.flat) return { ...filters(), ...at };
  const which = parent === TOP ? { roots: true } : { spawnedBy: parent };
  return { ...which, includeChildren: true, includeArchived: wish.value.archived, ...at };
}

/** Reads the next page of a branch; `anew`: the first one again, as long as what was read before. */
async function readBranch(parent: string, anew = false): Promise<void> {
  const [mine, asked] = [generation, forest];
  const before = asked.branch(parent);
  if (before?.busy === true && !anew) return;
  const known = before?.keys.length ?? 0;
  const limit = anew ? Math.min(Math.max(PAGE_ROWS, known), AGAIN_ROWS_MAX) : PAGE_ROWS;
  asked.begin(parent);
  try {
    const page = await ask("sessions.list", pageOf(parent, anew ? undefined : before?.cursor, limit));
    if (mine !== generation) return;
    asked.add(parent, page, anew);
    draw(anew);
  } catch (problem) {
    if (mine !== generation) return;
    asked.fail(parent, problem);
    draw(false);
  }
}

/** Reads the rows of some sessions, and puts them where they belong. */
async function readRows(keys: readonly string[]): Promise<void> {
  const mine = generation;
  const asked = forest;
  const shared = asked.flat ? filters() : { includeChildren: true, includeArchived: wish.value.archived };
  const chunks = Array.from({ length: Math.ceil(keys.length / KEYS_MAX) }, (_, n) =>
    keys.slice(n * KEYS_MAX, (n + 1) * KEYS_MAX),
  );
  let orphans = false;
  try {
    const found = await Promise.all(
      chunks.map((some) => ask("sessions.list", { ...shared, keys: some, limit: KEYS_MAX })),
    );
    if (mine !== generation) return;
    noteParents(found.flatMap((page) => page.sessions));
    chunks.forEach((some, n) => {
      orphans = asked.learn(some, found[n]?.sessions ?? []) || orphans;
    });
  } catch {
    // The connection broke: once it stands again, all is read anew.
    return;
  }
  if (orphans) void readBranch(TOP, true);
  moveOrHold();
}

/** A session that was spawned just now is news of the one that spawned it, too. */
function noteParents(rows: readonly ListedRow[]): void {
  if (forest.flat) return;
  for (const { key, spawnedBy } of rows) {
    if (spawnedBy === undefined || forest.row(key) !== undefined || forest.row(spawnedBy) === undefined)
      continue;
    news.add(spawnedBy);
    tellNews();
  }
}

function moveOrHold(): void {
  const held = holders.size > 0;
  if (!held) forest.settle();
  draw(!held);
}

const tellNews = batched(BATCH_MS, async () => {
  // One question at a time: of two answers about a row the later one must come last.
  if (isReadingNews) return;
  const keys = [...news];
  news.clear();
  if (keys.length > NEWS_MAX) return readAgain();
  if (keys.length === 0) return;
  isReadingNews = true;
  await readRows(keys).finally(() => {
    isReadingNews = false;
  });
  if (news.size > 0) tellNews();
});

/** All that is shown, anew: after a break nobody knows what happened. */
function readAgain(): void {
  generation++;
  news.clear();
  for (const parent of [...forest.branches()]) {
    if (parent === TOP || open.has(parent)) void readBranch(parent, true);
    else forest.drop(parent);
  }
  if (forest.branch(TOP) === undefined) void readBranch(TOP, true);
  reveal(revealed);
}

/** Another list than before. */
function beginAnew(): void {
  generation++;
  news.clear();
  forest = new Forest(wish.value.shape === "list" || isFiltered.value);
  void readBranch(TOP, true);
  draw(false);
  reveal(revealed);
}

/** A row that was read, whether it is in sight or not. */
export function knownRow(key: string): ListedRow | undefined {
  return forest.row(key);
}

/** Changes what is asked for. */
export function want(change: Partial<Wish>): void {
  wish.value = { ...wish.value, ...change };
  beginAnew();
}

/** Opens or closes what a session spawned. */
export function toggle(key: string, isOpen: boolean): void {
  if (isOpen) open.add(key);
  else open.delete(key);
  draw(false);
}

/** Opens what is above a session, so that it can be seen in the tree. */
export function reveal(key: string | undefined): void {
  revealed = key;
  if (key !== undefined) void openAbove(key);
}

async function openAbove(key: string): Promise<void> {
  const mine = generation;
  const above: string[] = [];
  let at: string | undefined = key;
  while (at !== undefined && above.length < LEVELS_MAX) {
    const row: ListedRow | undefined = forest.row(at) ?? (await rowOf(at));
    if (mine !== generation || revealed !== key) return;
    at = row?.spawnedBy;
    if (at === undefined || above.includes(at)) break;
    above.push(at);
  }
  if (forest.flat || above.every((one) => open.has(one))) return;
  for (const one of above) {
    open.add(one);
    // Their places may be out of sight, where nothing is read by itself.
    if (forest.branch(one) === undefined) void readBranch(one);
  }
  draw(false);
}

async function rowOf(key: string): Promise<ListedRow | undefined> {
  const found = await ask("sessions.list", { keys: [key], includeArchived: true }).catch(() => undefined);
  return found?.sessions[0];
}

/** Reads on where a branch ends. */
export function readMore(parent: string): void {
  void readBranch(parent);
}

/** Keeps rows where they are until the same `who` lets go. */
export function hold(who: string): void {
  holders.add(who);
}

export function letGo(who: string): void {
  if (holders.delete(who) && holders.size === 0) showNews();
}

const timers = new Map<string, () => void>();

/** Keeps rows where they are for a while. */
export function holdFor(who: string, ms: number): void {
  timers.get(who)?.();
  hold(who);
  timers.set(
    who,
    after(ms, () => letGo(who)),
  );
}

/** Lets the rows move now, whoever aims at them. */
export function showNews(): void {
  if (forest.unsettled() === 0) return;
  forest.settle();
  draw(true);
}

/** Follows the gateway for as long as the list is shown. Returns the function that ends it. */
export function follow(): () => void {
  const ends = [
    on("sessions", ({ key }) => {
      news.add(key);
      tellNews();
    }),
    whenConnected(readAgain),
  ];
  return () => {
    for (const end of ends) end();
    for (const end of timers.values()) end();
    holders.clear();
    generation++;
  };
}

// Nothing of one reader is left to the next.
effect(() => {
  if (stage.value.kind !== "signed-out") return;
  open.clear();
  forest = new Forest(false);
  wish.value = FIRST_WISH;
  picture.value = { lines: [], moved: false };
});
